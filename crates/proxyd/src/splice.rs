//! Socket to pipe and pipe to socket: the only place that splices.
//!
//! Both ends are non-blocking, and EAGAIN is an error like any other. It has two readings, of which
//! the pipe's count tells the right one: see both functions.

use std::os::fd::AsFd;

use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{SpliceFlags, splice};

use crate::pipe::Pipe;

/// Bodies, and the insides of chunks, of at least this number of bytes are spliced: below, a copy
/// costs less than the two calls of a splice.
pub const SPLICE_MIN_BYTES: u64 = 16 << 10;

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

/// Splices from a socket into the pipe, at most `limit` bytes, which must not be 0; 0 is the
/// socket's end.
///
/// EAGAIN: the socket is empty, or the pipe is full. Bytes alone don't tell: a pipe is full when its
/// slots are taken, and a slot may hold a single byte. With an empty pipe the socket has nothing now;
/// with another the caller has to ask.
pub fn to_pipe(socket: impl AsFd, pipe: &mut Pipe, limit: usize) -> Result<usize, Errno> {
    debug_assert!(pipe.held < pipe.capacity && limit > 0);
    let limit = limit.min(pipe.capacity - pipe.held);
    let bytes = retry_on_intr(|| splice(&socket, None, &pipe.write, None, limit, FLAGS))?;
    pipe.held += bytes;
    Ok(bytes)
}

/// Splices from the pipe, which must hold bytes, to a socket.
///
/// EAGAIN: the socket has no room now, for the pipe's count says that it is not empty.
pub fn from_pipe(pipe: &mut Pipe, socket: impl AsFd) -> Result<usize, Errno> {
    debug_assert!(pipe.held > 0);
    let bytes = retry_on_intr(|| splice(&pipe.read, None, &socket, None, pipe.held, FLAGS))?;
    pipe.held -= bytes;
    // Writers of the pipe are all here, so it has not ended: no progress, no end.
    if bytes > 0 { Ok(bytes) } else { Err(Errno::AGAIN) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::pipe::Pool;

    #[test]
    fn a_full_socket_blocks_and_a_gone_one_is_an_error() {
        let mut pipe = Pool::new(1, 64 << 10).take().unwrap();
        let (sink, drain) = UnixStream::pair().unwrap();
        sink.set_nonblocking(true).unwrap();
        while rustix::io::write(&sink, &[7; 4096]).is_ok() {}
        rustix::io::write(&pipe.write, b"x").unwrap();
        pipe.held = 1;
        assert_eq!(from_pipe(&mut pipe, &sink), Err(Errno::AGAIN));
        drop(drain);
        assert_eq!(from_pipe(&mut pipe, &sink), Err(Errno::PIPE));
        assert_eq!(pipe.held, 1);
    }
}
