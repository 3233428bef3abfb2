//! Where clients come from.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::address::Address;

/// Connections that wait to be accepted.
pub(super) const BACKLOG: i32 = 1024;

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("unix:{path} is in use: a process listens there; stop it, or choose another path")]
    InUse { path: PathBuf },
    #[error("{path} is there and is no socket: choose another path")]
    NotASocket { path: PathBuf },
    #[error("cannot listen on {address}: {cause}")]
    Io { address: Address, cause: io::Error },
}

/// A socket in the file system, that is removed with this.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode: another process's socket of that name is not removed.
    file: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = self.path.symlink_metadata().is_ok_and(|m| (m.dev(), m.ino()) == self.file);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket");
        }
    }
}

/// What listens on one address: a socket for each worker, or one for all of them.
#[derive(Debug)]
pub struct Listening {
    /// The address, with the port that was found.
    pub address: Address,
    /// One, or one a worker.
    pub sockets: Vec<OwnedFd>,
    pub file: Option<SocketFile>,
}

/// Listens on an address, for all workers.
pub fn listen(
    address: &Address,
    workers: usize,
    mode: Option<u32>,
) -> Result<Listening, ListenError> {
    let io = |cause| ListenError::Io { address: address.clone(), cause };
    match address {
        Address::Unix(path) => {
            let listener = bind_unix(path)?;
            let metadata = path.symlink_metadata().map_err(io)?;
            let file = SocketFile { path: path.clone(), file: (metadata.dev(), metadata.ino()) };
            if let Some(mode) = mode {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(io)?;
            }
            listener.set_nonblocking(true).map_err(io)?;
            // The second call only makes the queue longer.
            rustix::net::listen(&listener, BACKLOG).map_err(|errno| io(errno.into()))?;
            let sockets = vec![listener.into()];
            Ok(Listening { address: address.clone(), sockets, file: Some(file) })
        }
        Address::Tcp(wanted) => {
            refuse_shared(*wanted).map_err(io)?;
            let first = bind_tcp(*wanted).map_err(io)?;
            // The other workers take the port that the first one got.
            let found = first.local_addr().map_err(io)?;
            let mut sockets = vec![first.into()];
            for _ in 1..workers {
                sockets.push(bind_tcp(found).map_err(io)?.into());
            }
            Ok(Listening { address: Address::Tcp(found), sockets, file: None })
        }
    }
}

/// A socket whose process is dead refuses connections; it is replaced.
fn bind_unix(path: &Path) -> Result<UnixListener, ListenError> {
    let io = |cause| ListenError::Io { address: Address::Unix(path.to_owned()), cause };
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
        result => return result.map_err(io),
    }
    if !path.symlink_metadata().map_err(io)?.file_type().is_socket() {
        return Err(ListenError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(io)?;
            tracing::info!(path = %path.display(), "replaced the socket of a process that died");
            UnixListener::bind(path).map_err(io)
        }
        Ok(_) => Err(ListenError::InUse { path: path.to_owned() }),
        // A full backlog has a listener, too.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(ListenError::InUse { path: path.to_owned() })
        }
        Err(error) => Err(io(error)),
    }
}

fn open_tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

/// `SO_REUSEPORT` would give another daemon of the same user a share of this one's connections
/// without a word. A socket without it can't be bound where another one listens.
fn refuse_shared(address: SocketAddr) -> io::Result<()> {
    Ok(rustix::net::bind(&open_tcp(address)?, &address)?)
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = open_tcp(address)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_socket_is_replaced_a_live_one_and_a_file_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let address = Address::Unix(path.clone());
        drop(UnixListener::bind(&path).unwrap());
        let listening = listen(&address, 3, Some(0o600)).unwrap();
        assert_eq!(listening.sockets.len(), 1);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(matches!(listen(&address, 1, None), Err(ListenError::InUse { .. })));
        drop(listening);
        assert!(!path.exists());

        fs::write(&path, "kept").unwrap();
        assert!(matches!(listen(&address, 1, None), Err(ListenError::NotASocket { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn another_s_socket_is_left_alone_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listening = listen(&Address::Unix(path.clone()), 1, None).unwrap();
        fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(listening);
        assert!(path.exists());
    }

    #[test]
    fn every_worker_has_a_socket_of_one_port() {
        let listening = listen(&"tcp:127.0.0.1:0".parse().unwrap(), 3, None).unwrap();
        assert_eq!(listening.sockets.len(), 3);
        let Address::Tcp(found) = listening.address else { panic!() };
        assert_ne!(found.port(), 0);
        let Err(ListenError::Io { cause, .. }) = listen(&Address::Tcp(found), 1, None) else {
            panic!("another daemon gets a share");
        };
        assert_eq!(cause.kind(), io::ErrorKind::AddrInUse);
    }
}
