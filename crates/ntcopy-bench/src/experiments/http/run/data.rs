//! The data set: where it lies, and how it gets there.

use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::body_reader::seed;
use super::commands::{Example, storaged};
use super::daemon::Daemon;
use super::scratch::Scratch;
use crate::experiments::http::HttpMode;
use crate::experiments::http::{Backend, HttpCell, Stack};
use crate::experiments::turns::program::Endpoint;
use crate::run::{Failure, Patience, Stop, pattern};

/// An object's path in a URL, and below nginx's root.
pub fn path(object: u64) -> String {
    format!("/o/{object:08}")
}

/// The objects of a cell, as the stacks' backends want them.
pub struct Data {
    /// A folder of storaged's. Each storaged gets one of its own whose files are these.
    ours: Option<PathBuf>,
    theirs: Option<PathBuf>,
    /// The example backend, whose file has all objects one after another.
    example: Option<Example>,
}

impl Data {
    /// Makes every object of a cell. `stacks` are those that can be had here.
    pub fn make(
        cell: &HttpCell,
        scratch: &Scratch,
        stacks: &[Stack],
        patience: Patience<'_>,
    ) -> Result<Data, Failure> {
        let stop = patience.stop;
        let needs = |backend| stacks.iter().any(|stack| stack.backend() == backend);
        let ours = needs(Backend::Storaged).then(|| scratch.path().join("seed"));
        let theirs = needs(Backend::Nginx).then(|| scratch.path().join("root"));
        if let Some(folder) = &ours {
            store(objects(cell), folder, patience)?;
        }
        if let Some(root) = &theirs {
            write_files(objects(cell), root, stop)?;
        }
        let example = needs(Backend::Example).then(|| {
            let file = scratch.path().join("objects");
            write_file(objects(cell), &file, stop)?;
            Example::compile(file)
        });
        Ok(Data { ours, theirs, example: example.transpose()? })
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

    pub fn folder_of_theirs(&self) -> Option<&Path> {
        self.theirs.as_deref()
    }

    pub(super) fn example(&self) -> Option<&Example> {
        self.example.as_ref()
    }
}

struct Object {
    /// Its path in a URL, and below nginx's root.
    path: String,
    seed: u64,
    bytes: u64,
}

impl Object {
    fn write(&self, room: &mut [u8], to: &mut impl Write) -> io::Result<()> {
        pattern::write(self.seed, self.bytes, room, to)
    }
}

fn objects(cell: &HttpCell) -> impl Iterator<Item = Object> {
    let bytes = cell.object_bytes;
    (0..cell.objects()).map(move |object| Object { path: path(object), seed: seed(object), bytes })
}

const PIECE_BYTES: usize = 64 << 10;

/// Stores every object in a folder of storaged's, by way of a storaged, as anybody would.
fn store(
    objects: impl Iterator<Item = Object>,
    data: &Path,
    patience: Patience<'_>,
) -> Result<(), Failure> {
    let socket = data.with_extension("sock");
    let at = Endpoint::Unix(socket.clone());
    let mut storaged =
        Daemon::start("storaged", storaged(HttpMode::Plain, 1, 0, data, &at)?, None)?;
    storaged.program.accepts(&at, patience)?;
    let failed = || Failure::io("cannot store an object");
    let mut stream = UnixStream::connect(&socket).map_err(failed())?;
    stream.set_read_timeout(Some(patience.limit)).map_err(failed())?;
    let (mut room, mut answer) = (vec![0; PIECE_BYTES], [0; 4096]);
    for object in objects {
        patience.stop.check()?;
        let Object { path, bytes, .. } = &object;
        let host = "Host: localhost";
        let head = format!("PUT {path} HTTP/1.1\r\n{host}\r\nContent-Length: {bytes}\r\n\r\n");
        stream.write_all(head.as_bytes()).map_err(failed())?;
        object.write(&mut room, &mut stream).map_err(failed())?;
        // One small answer; what follows it is the next.
        let bytes = stream.read(&mut answer).map_err(failed())?;
        if !answer[..bytes].starts_with(b"HTTP/1.1 201 ") {
            let text = String::from_utf8_lossy(&answer[..bytes]);
            let first = text.lines().next().unwrap_or("nothing").to_owned();
            return Err(Failure::Answer(format!("storaged did not store an object: {first}")));
        }
    }
    drop(stream);
    storaged.program.goodbye()
}

fn write_files(
    objects: impl Iterator<Item = Object>,
    root: &Path,
    stop: &Stop,
) -> Result<(), Failure> {
    let failed = || Failure::io("cannot write the data set");
    let mut room = vec![0; PIECE_BYTES];
    for object in objects {
        stop.check()?;
        let name = root.join(&object.path[1..]);
        fs::create_dir_all(name.parent().unwrap_or(root)).map_err(failed())?;
        let written = File::create(&name).and_then(|mut file| object.write(&mut room, &mut file));
        written.map_err(failed())?;
    }
    Ok(())
}

fn write_file(
    objects: impl Iterator<Item = Object>,
    path: &Path,
    stop: &Stop,
) -> Result<(), Failure> {
    let failed = || Failure::io(format!("cannot write {}", path.display()));
    let mut file = File::create(path).map_err(failed())?;
    let mut room = vec![0; PIECE_BYTES];
    for object in objects {
        stop.check()?;
        object.write(&mut room, &mut file).map_err(failed())?;
    }
    Ok(())
}

/// A tree whose folders are new and whose files are those of another, but for an index: that one is
/// written to, so each has its own.
fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
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
    fn files_hold_the_pattern_of_their_number() {
        let folder = tempfile::tempdir().unwrap();
        let cell = HttpCell {
            object_bytes: 1000,
            dataset_bytes: 3000,
            connections: 1,
            form: crate::experiments::http::HttpForm::Closed,
        };
        let root = folder.path();
        let all = root.join("all");
        write_file(objects(&cell), &all, &Stop::default()).unwrap();
        let all = fs::read(all).unwrap();
        assert_eq!(all.len(), 3000);
        write_files(objects(&cell), root, &Stop::default()).unwrap();
        for object in 0..3 {
            let bytes = fs::read(root.join(&path(object)[1..])).unwrap();
            assert_eq!((bytes.len(), pattern::first_wrong(seed(object), 0, &bytes)), (1000, None));
            assert_eq!(bytes, all[object as usize * 1000..][..1000]);
        }
        assert!(!root.join(&path(3)[1..]).exists());
    }
}
