//! The data set: where it lies, and how it gets there.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::body_reader::seed;
use super::daemon::Daemon;
use super::programs::Program;
use super::scratch::Scratch;
use crate::experiments::http::Stack;
use crate::experiments::http::plan::HttpCell;
use crate::experiments::turns::program::Endpoint;
use crate::run::{Failure, Stop, pattern};

/// An object's path in a URL, and below nginx's root.
pub fn path(object: u64) -> String {
    format!("/o/{object:08}")
}

/// The objects of a cell, as the stacks' backends want them.
pub struct Data {
    /// A folder of storaged's. Each storaged gets one of its own whose files are these.
    ours: Option<PathBuf>,
    theirs: Option<PathBuf>,
}

impl Data {
    /// Makes every object of a cell. `stacks` are those that can be had here.
    pub fn make(
        cell: &HttpCell,
        scratch: &Scratch,
        stacks: &[Stack],
        (patience, stop): (Duration, &Stop),
    ) -> Result<Data, Failure> {
        let mut data = Data { ours: None, theirs: None };
        if stacks.iter().any(|stack| stack.has_storaged()) {
            data.ours = Some(put_all(cell, scratch.path(), patience, stop)?);
        }
        if stacks.iter().any(|stack| !stack.has_storaged()) {
            data.theirs = Some(write_all(cell, scratch.path(), stop)?);
        }
        Ok(data)
    }

    /// Makes a folder for one storaged, whose files are those of all: the same pages of memory,
    /// so that no mode has luckier ones.
    pub fn folder_of_ours(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let to = folder.join("data");
        if let Some(from) = &self.ours {
            link_tree(from, &to).map_err(Failure::io("cannot link the data set"))?;
        }
        Ok(to)
    }

    /// The root of plain files.
    pub fn folder_of_theirs(&self) -> Option<&Path> {
        self.theirs.as_deref()
    }
}

/// A storaged that takes the objects of a new data set.
fn seeding(data: &Path, at: &Endpoint) -> Result<Command, Failure> {
    let mut command = Command::new(Program::Storaged.find().map_err(Failure::Limit)?);
    command.args(["--workers", "1", "--log-level", "warn", "--listen", &at.to_string(), "--data"]);
    command.arg(data);
    Ok(command)
}

/// Stores every object by way of a storaged, as anybody would.
fn put_all(
    cell: &HttpCell,
    folder: &Path,
    patience: Duration,
    stop: &Stop,
) -> Result<PathBuf, Failure> {
    let data = folder.join("seed");
    let socket = folder.join("seed.sock");
    let endpoint = Endpoint::Unix(socket.clone());
    let mut storaged = Daemon::start("storaged", seeding(&data, &endpoint)?, None)?;
    storaged.program.accepts(&endpoint, patience, stop)?;
    let failed = || Failure::io("cannot store an object");
    let mut stream = UnixStream::connect(&socket).map_err(failed())?;
    stream.set_read_timeout(Some(patience)).map_err(failed())?;
    let mut body = vec![0; usize::try_from(cell.object_bytes).unwrap_or(usize::MAX)];
    let mut answer = [0; 4096];
    for object in 0..cell.objects() {
        stop.check()?;
        pattern::fill(seed(object), 0, &mut body);
        let head = format!(
            "PUT {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            path(object),
            body.len()
        );
        stream.write_all(head.as_bytes()).map_err(failed())?;
        stream.write_all(&body).map_err(failed())?;
        // One small answer; what follows it is the next.
        let bytes = stream.read(&mut answer).map_err(failed())?;
        if !answer[..bytes].starts_with(b"HTTP/1.1 201 ") {
            let text = String::from_utf8_lossy(&answer[..bytes]);
            let first = text.lines().next().unwrap_or("nothing").to_owned();
            return Err(Failure::Answer(format!("storaged did not store an object: {first}")));
        }
    }
    drop(stream);
    storaged.program.goodbye()?;
    Ok(data)
}

fn write_all(cell: &HttpCell, folder: &Path, stop: &Stop) -> Result<PathBuf, Failure> {
    let root = folder.join("root");
    let failed = || Failure::io("cannot write the data set");
    fs::create_dir_all(root.join("o")).map_err(failed())?;
    let mut body = vec![0; usize::try_from(cell.object_bytes).unwrap_or(usize::MAX)];
    for object in 0..cell.objects() {
        stop.check()?;
        pattern::fill(seed(object), 0, &mut body);
        fs::write(root.join(&path(object)[1..]), &body).map_err(failed())?;
    }
    Ok(root)
}

/// A tree whose folders are new and whose files are those of another, but for an index: that one is
/// written to, so each has its own.
pub fn link_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link_tree(&entry.path(), &target)?;
        } else if entry.file_name() == "index" {
            fs::copy(entry.path(), target)?;
        } else {
            fs::hard_link(entry.path(), target)?;
        }
    }
    Ok(())
}

/// An address of this machine for itself that is free.
pub fn free_address() -> Result<SocketAddr, Failure> {
    let failed = || Failure::io("cannot find a free port of the loopback");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed())?;
    listener.local_addr().map_err(failed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_trees_share_their_files_and_not_their_index() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("blobs")).unwrap();
        fs::write(from.join("blobs/1"), "1").unwrap();
        fs::write(from.join("index"), "7").unwrap();
        link_tree(&from, &to).unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(&from.join("blobs/1")), inode(&to.join("blobs/1")));
        assert_ne!(inode(&from.join("index")), inode(&to.join("index")));
        assert_eq!(fs::read(to.join("index")).unwrap(), b"7");
    }

    #[test]
    fn plain_files_hold_the_pattern_of_their_number() {
        let folder = tempfile::tempdir().unwrap();
        let cell = HttpCell {
            object_bytes: 1000,
            dataset_bytes: 3000,
            connections: 1,
            form: crate::experiments::http::plan::HttpForm::Closed,
        };
        let root = write_all(&cell, folder.path(), &Stop::default()).unwrap();
        for object in 0..3 {
            let bytes = fs::read(root.join(&path(object)[1..])).unwrap();
            assert_eq!((bytes.len(), pattern::first_wrong(seed(object), 0, &bytes)), (1000, None));
        }
        assert!(!root.join(&path(3)[1..]).exists());
    }
}
