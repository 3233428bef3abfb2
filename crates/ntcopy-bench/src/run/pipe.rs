//! Pipes of a wanted size.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use ntcopy_record::units::Bytes;
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::Failure;

/// No pipe is made smaller than this to please a limit: Linux's own default.
const LEAST_PIPE_BYTES: u64 = 64 << 10;
/// The default of fs.pipe-max-size; what a pipe may have without privilege.
const MOST_PIPE_BYTES: u64 = 1 << 20;

/// A pipe whose size is known.
pub struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
    /// Its size as the kernel has it: a power of two of pages.
    pub bytes: u64,
}

impl Pipe {
    /// Makes a pipe of at least this size; unless `exact`, of less where the
    /// system's limits say so.
    pub fn new(wanted_bytes: u64, exact: bool) -> Result<Pipe, Failure> {
        let (read, write) =
            pipe_with(PipeFlags::CLOEXEC).map_err(Failure::os("cannot make a pipe"))?;
        let mut asked = if exact { wanted_bytes } else { wanted_bytes.max(LEAST_PIPE_BYTES) };
        loop {
            match fcntl_setpipe_size(&write, usize::try_from(asked).unwrap_or(usize::MAX)) {
                Ok(got) if got as u64 >= asked => {
                    return Ok(Pipe { read, write, bytes: got as u64 });
                }
                Err(_) if !exact && asked > LEAST_PIPE_BYTES => {
                    asked = (asked / 2).max(LEAST_PIPE_BYTES);
                }
                refused => return Err(too_small(wanted_bytes, refused)),
            }
        }
    }

    /// A pipe that holds one object, where such a pipe may be.
    pub fn for_object(object_bytes: u64) -> Result<Pipe, Failure> {
        Pipe::new(Pipe::bytes_for_object(object_bytes), false)
    }

    /// The size to ask for, for one object.
    pub fn bytes_for_object(object_bytes: u64) -> u64 {
        object_bytes.clamp(LEAST_PIPE_BYTES, MOST_PIPE_BYTES)
    }
}

/// Where bytes are dropped unread: a pipe, and `/dev/null` behind it.
pub struct Sink {
    pub pipe: Pipe,
    null: File,
}

impl Sink {
    pub fn new(pipe: Pipe) -> Result<Sink, Failure> {
        let null = File::options().write(true).open("/dev/null");
        Ok(Sink { pipe, null: null.map_err(Failure::io("cannot open /dev/null"))? })
    }

    /// Moves what there is to the pipe, at most `most` bytes.
    pub fn fill(
        &self,
        from: impl AsFd,
        most: usize,
        flags: SpliceFlags,
    ) -> rustix::io::Result<usize> {
        splice(from, None, &self.pipe.write, None, most, SpliceFlags::MOVE | flags)
    }

    /// Drops exactly what is in the pipe.
    pub fn empty(&self, bytes: usize) -> rustix::io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let (pipe, null) = (&self.pipe.read, &self.null);
            match retry_on_intr(|| splice(pipe, None, null, None, left, SpliceFlags::MOVE))? {
                // The pipe ran dry.
                0 => return Err(Errno::NODATA),
                gone => left -= gone,
            }
        }
        Ok(())
    }
}

fn too_small(wanted: u64, refused: rustix::io::Result<usize>) -> Failure {
    let why = match refused {
        Ok(got) => format!("the kernel made one of {}", Bytes(got as u64)),
        Err(errno) => errno.to_string(),
    };
    Failure::Limit(format!(
        "a pipe of {} is not to be had: {why}; fs.pipe-max-size and fs.pipe-user-pages-soft bound \
         it: raise them, or use a smaller pipe",
        Bytes(wanted)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_pipe_has_at_least_the_size_or_is_an_error_that_names_the_limit() {
        assert_eq!(Pipe::new(128 << 10, true).unwrap().bytes, 128 << 10);
        assert_eq!(Pipe::new(5000, true).unwrap().bytes, 8192);
        let error = Pipe::new(1 << 40, true).err().unwrap().to_string();
        assert!(error.contains("fs.pipe-max-size") && error.contains("1024 GiB"), "{error}");
    }

    #[test]
    fn an_inexact_pipe_gives_way_to_limits() {
        let pipe = Pipe::new(1 << 40, false).unwrap();
        assert!(pipe.bytes >= LEAST_PIPE_BYTES);
        assert_eq!(Pipe::for_object(1).unwrap().bytes, LEAST_PIPE_BYTES);
    }
}
