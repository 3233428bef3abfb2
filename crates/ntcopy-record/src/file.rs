//! Files of somebody else, read without waiting and with an end.
//!
//! A folder that somebody sent may hold a link to `/dev/zero`, which takes all memory, or a FIFO, at
//! which a reader waits for ever.

use std::fs::{self, File, FileType, Metadata};
use std::io::{Error, Read as _, Result};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::units::Bytes;

/// No file is larger: the largest record that there is has less than 1 MiB.
pub const LARGEST_BYTES: u64 = 64 << 20;

/// The bytes of a regular file of at most [`LARGEST_BYTES`].
pub fn read(path: &Path) -> Result<Vec<u8>> {
    read_at_most(path, LARGEST_BYTES)
}

/// As [`read`], of a file of UTF-8.
pub fn text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(Error::other)
}

fn read_at_most(path: &Path, largest: u64) -> Result<Vec<u8>> {
    // Before it is opened, since that does something to some devices, and after, since it may have
    // been replaced in between.
    check(&fs::metadata(path)?, largest)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    check(&file.metadata()?, largest)?;
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest { Err(too_large(largest)) } else { Ok(bytes) }
}

fn check(facts: &Metadata, largest: u64) -> Result<()> {
    match other_than_a_file(facts.file_type()) {
        Some(what) => Err(Error::other(format!("it is {what}, not a regular file"))),
        None if facts.len() > largest => Err(too_large(largest)),
        None => Ok(()),
    }
}

fn other_than_a_file(kind: FileType) -> Option<&'static str> {
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a folder"),
        _ if kind.is_fifo() => Some("a FIFO"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

fn too_large(largest: u64) -> Error {
    Error::other(format!("it is larger than {}", Bytes(largest)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn a_regular_file_is_read_up_to_the_largest_size_and_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| place.path().join(name));
        fs::write(&file, "12345").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(read(&link).unwrap(), b"12345");
        assert_eq!(text(&file).unwrap(), "12345");
        assert_eq!(read_at_most(&file, 5).unwrap(), b"12345");
        let error = read_at_most(&file, 4).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 4 bytes");
        File::options().write(true).open(&file).unwrap().set_len(LARGEST_BYTES + 1).unwrap();
        assert_eq!(read(&file).unwrap_err().to_string(), "it is larger than 64 MiB");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once_and_named() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink(place.path(), at("folder")).unwrap();
        let named = [
            ("fifo", "a FIFO"),
            ("socket", "a socket"),
            ("zero", "a device"),
            ("folder", "a folder"),
        ];
        for (name, what) in named {
            let error = read(&at(name)).unwrap_err().to_string();
            assert_eq!(error, format!("it is {what}, not a regular file"), "{name}");
        }
        symlink("link", at("link")).unwrap();
        assert!(read(&at("link")).is_err());
    }

    #[test]
    fn a_file_that_grows_as_it_is_read_has_an_end() {
        // Of no length, and with content: as files of /proc are.
        let error = read_at_most(Path::new("/proc/self/status"), 10).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 10 bytes");
    }
}
