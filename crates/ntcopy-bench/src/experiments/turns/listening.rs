//! On what a program listens, and what it leaves of that.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

/// Whether a socket of one of these processes listens.
pub fn listens(pids: &[Pid]) -> bool {
    pids.first().is_some_and(|first| {
        let listening = listening(*first);
        let is_known = |inode: String| listening.iter().any(|socket| socket.inode == inode);
        pids.iter().any(|pid| inodes(*pid).into_iter().any(is_known))
    })
}

/// The file of a unix socket that a program listens on.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    path: PathBuf,
    file: (u64, u64),
}

/// The files of the unix sockets that these processes listen on.
pub fn names(pids: &[Pid]) -> Vec<Name> {
    let Some(first) = pids.first() else { return Vec::new() };
    let listening = listening(*first);
    let of = |pid: &Pid| {
        let home = fs::read_link(process(*pid).join("cwd")).unwrap_or_default();
        let own = inodes(*pid);
        let ours = listening.iter().filter(move |socket| own.contains(&socket.inode));
        ours.filter_map(move |socket| Name::new(home.join(socket.path.as_ref()?)))
            .collect::<Vec<_>>()
    };
    pids.iter().flat_map(of).collect()
}

impl Name {
    fn new(path: PathBuf) -> Option<Name> {
        socket_file(&path).map(|file| Name { path, file })
    }

    /// Removes the file that a server has left when it ended: the next one could not bind it. One
    /// that somebody else has put there stays.
    pub fn clear(&self) {
        if socket_file(&self.path) == Some(self.file) {
            // What stays is named by the server that cannot bind it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What tells the file of a socket from another one.
fn socket_file(path: &Path) -> Option<(u64, u64)> {
    let file = fs::symlink_metadata(path).ok()?;
    file.file_type().is_socket().then(|| (file.dev(), file.ino()))
}

/// A word of a command that names a socket on which nobody listens any more.
pub fn abandoned(words: &[std::ffi::OsString]) -> Option<&Path> {
    words.iter().map(Path::new).find(|path| {
        let refused = |error: std::io::Error| error.kind() == ErrorKind::ConnectionRefused;
        socket_file(path).is_some() && UnixStream::connect(path).is_err_and(refused)
    })
}

struct Socket {
    inode: String,
    /// The name of a unix socket that has a file.
    path: Option<PathBuf>,
}

/// The sockets that listen in the network namespace of a process.
fn listening(pid: Pid) -> Vec<Socket> {
    let read = |name: &str| {
        let text = fs::read(process(pid).join("net").join(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    };
    // Columns as in proc(5): state 0A is TCP_LISTEN; the unix flag __SO_ACCEPTCON is 0x10000.
    let column = |text: String, is: &str, inode: usize| -> Vec<Socket> {
        let of = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let inode = (*words.get(inode)?).to_owned();
            (words[3] == is).then(|| Socket { path: path_behind(line, &inode), inode })
        };
        text.lines().filter_map(of).collect()
    };
    let mut sockets = column(read("unix"), "00010000", 6);
    for tcp in ["tcp", "tcp6"] {
        let of_tcp = column(read(tcp), "0A", 9).into_iter();
        sockets.extend(of_tcp.map(|socket| Socket { path: None, ..socket }));
    }
    sockets
}

/// The file of a unix socket, which comes last and may hold spaces; none of one without a file.
fn path_behind(line: &str, inode: &str) -> Option<PathBuf> {
    let (_, path) = line.split_once(&format!(" {inode} "))?;
    (!path.starts_with('@')).then(|| PathBuf::from(path))
}

/// The inodes of a process's sockets.
fn inodes(pid: Pid) -> Vec<String> {
    let fds = fs::read_dir(process(pid).join("fd")).into_iter().flatten().flatten();
    fds.filter_map(|fd| {
        let link = fs::read_link(fd.path()).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        Some(inode.to_owned())
    })
    .collect()
}

fn process(pid: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, Instant};

    use rustix::process::getpid;

    use super::*;

    #[test]
    fn a_socket_that_listens_is_seen() {
        let own = getpid();
        let folder = tempfile::tempdir().unwrap();
        let unix = UnixListener::bind(folder.path().join("a socket")).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listens(&[own]));
        let of = |fd: &dyn std::os::fd::AsFd| rustix::fs::fstat(fd).unwrap().st_ino.to_string();
        let inodes: Vec<String> = listening(own).into_iter().map(|socket| socket.inode).collect();
        assert!(inodes.contains(&of(&unix)) && inodes.contains(&of(&tcp)));
    }

    /// A child that another test starts holds what was open here until it is its program.
    fn eventually(holds: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < end, "never");
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_file_that_a_server_has_left_goes_and_that_of_another_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a socket");
        let listener = UnixListener::bind(&path).unwrap();
        let word = std::ffi::OsString::from(&path);
        assert_eq!(abandoned(std::slice::from_ref(&word)), None, "somebody listens");
        let all = names(&[getpid()]);
        let name = all.iter().find(|name| name.path == path).expect("it is listed");
        drop(listener);
        let words = ["/dev/null".into(), word];
        eventually(|| abandoned(&words) == Some(&*path));
        // Kept under another name, so that the new file is another one.
        fs::rename(&path, folder.path().join("old")).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        name.clear();
        assert!(path.exists(), "another server's");
        drop(other);
        fs::rename(folder.path().join("old"), &path).unwrap();
        eventually(|| {
            name.clear();
            !path.exists()
        });
    }
}
