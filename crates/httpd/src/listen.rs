//! Sockets that are listened on. A TCP address has one socket a worker (`SO_REUSEPORT`), a path has
//! one socket that the workers share.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use rustix::net::sockopt::{set_socket_reuseaddr, set_socket_reuseport};

use crate::address::Address;
use crate::handed;

/// Connections that wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 4096;

/// Longer than a process takes to let go of its addresses, once it is asked to end.
const REPLACED: Duration = Duration::from_secs(2);
const ASK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Listening {
    /// With the port that was found.
    pub(crate) address: Address,
    /// One for each worker.
    pub(crate) sockets: Vec<Arc<OwnedFd>>,
    pub(crate) file: Option<SocketFile>,
    /// It is not this process's alone.
    pub(crate) outlives: bool,
}

/// The file of a socket that was bound here; it is removed with this, unless another has taken its
/// place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Held open, so that the file that takes its place can't get its inode's number.
    file: OwnedFd,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let own = rustix::fs::fstat(&self.file);
        let now = fs::symlink_metadata(&self.path);
        if let (Ok(own), Ok(now)) = (own, now)
            && (own.st_dev, own.st_ino) == (now.dev(), now.ino())
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket");
        }
    }
}

/// Tries again, for as long as a process that is being replaced may need to let go of the address.
fn once_free(mut bind: impl FnMut() -> anyhow::Result<Listening>) -> anyhow::Result<Listening> {
    let until = Instant::now() + REPLACED;
    loop {
        match bind() {
            Err(error) if error.downcast_ref() == Some(&Errno::ADDRINUSE) => {
                if Instant::now() > until {
                    return Err(error);
                }
                sleep(ASK_AGAIN);
            }
            result => return result,
        }
    }
}

pub(crate) fn listen(address: &Address, workers: usize) -> anyhow::Result<Listening> {
    if let Some(socket) = handed::socket(address) {
        let sockets = vec![socket; workers];
        return Ok(Listening { address: address.clone(), sockets, file: None, outlives: true });
    }
    let listening = once_free(|| match address {
        Address::Unix(path) => bind_unix(address, path, workers),
        Address::Tcp(at) => bind_tcp(*at, workers),
    });
    listening.with_context(|| format!("cannot listen on {address}"))
}

/// A socket with that name, which it may share with others of this user.
fn bound(at: SocketAddr, shares: bool) -> Result<OwnedFd, Errno> {
    let socket = Address::Tcp(at).socket()?;
    set_socket_reuseaddr(&socket, true)?;
    set_socket_reuseport(&socket, shares)?;
    rustix::net::bind(&socket, &at)?;
    Ok(socket)
}

/// All with one port, even if any was asked for.
fn bind_tcp(asked: SocketAddr, workers: usize) -> anyhow::Result<Listening> {
    // `SO_REUSEPORT` would let a second daemon of the same user take half of the connections
    // without a word. A socket without it can't be bound where another one listens.
    bound(asked, false)?;
    let (mut found, mut sockets) = (asked, Vec::new());
    for _ in 0..workers {
        let socket = bound(found, true)?;
        rustix::net::listen(&socket, BACKLOG)?;
        found = rustix::net::getsockname(&socket)?.try_into()?;
        sockets.push(Arc::new(socket));
    }
    Ok(Listening { address: Address::Tcp(found), sockets, file: None, outlives: false })
}

/// A stale socket, which does not answer, is replaced.
fn bind_unix(address: &Address, path: &Path, workers: usize) -> anyhow::Result<Listening> {
    remove_stale(path)?;
    let socket = address.socket()?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let file = SocketFile { path: path.to_owned(), file };
    rustix::net::listen(&socket, BACKLOG)?;
    let shared = Arc::new(socket);
    let sockets = vec![shared; workers];
    Ok(Listening { address: address.clone(), sockets, file: Some(file), outlives: false })
}

fn remove_stale(path: &Path) -> anyhow::Result<()> {
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(()) };
    if !data.file_type().is_socket() {
        bail!("the path is there and is no socket: choose another");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "replacing the socket of a process that died");
            fs::remove_file(path).context("it can't be removed")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // It was accepted, or the queue is full: either way there is a listener.
        _ => Err(Errno::ADDRINUSE)
            .context("it is in use: a process listens there; stop it, or choose another path"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn refused(path: &Path) -> String {
        format!("{:#}", at(path).unwrap_err())
    }

    fn at(path: &Path) -> anyhow::Result<Listening> {
        listen(&Address::Unix(path.to_owned()), 2)
    }

    #[test]
    fn a_dead_socket_is_replaced_a_live_one_and_a_file_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let listening = at(&path).unwrap();
        assert_eq!(listening.sockets.len(), 2);
        assert!(refused(&path).contains("a process listens there"));
        drop(listening);
        assert!(!path.exists());
        fs::write(&path, "kept").unwrap();
        assert!(refused(&path).contains("is no socket"));
        assert_eq!(fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn another_s_socket_is_left_alone_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        for _ in 0..100 {
            let listening = at(&path).unwrap();
            let inode = fs::symlink_metadata(&path).unwrap().ino();
            fs::remove_file(&path).unwrap();
            let _other = UnixListener::bind(&path).unwrap();
            // Were the file not held, some file systems would give its number again at once.
            assert_ne!(fs::symlink_metadata(&path).unwrap().ino(), inode);
            drop(listening);
            assert!(path.exists());
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn every_worker_has_a_socket_of_one_port() {
        let any = "127.0.0.1:0".parse().unwrap();
        let listening = listen(&any, 3).unwrap();
        assert_eq!(listening.sockets.len(), 3);
        let Address::Tcp(found) = listening.address else { panic!() };
        assert_ne!(found.port(), 0);
        let again = listen(&listening.address, 1).expect_err("another daemon gets a share");
        assert_eq!(again.downcast_ref(), Some(&Errno::ADDRINUSE));
    }
}
