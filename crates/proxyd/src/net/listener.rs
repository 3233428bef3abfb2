//! Sockets that are listened on. A TCP address has one socket a worker (`SO_REUSEPORT`), a path
//! has one socket that the workers share.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::Address;

/// Connections that wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 4096;

/// Why an address can't be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process answers on the path.
    #[error("{0}: another process answers on this socket; stop it, or choose another path")]
    Live(Address),
    /// Something that is no socket has the path.
    #[error("{0}: the path exists and is not a socket; remove it, or choose another")]
    NotASocket(Address),
    /// The kernel refuses.
    #[error("{address}: cannot {step}: {cause}")]
    System {
        /// The address.
        address: Address,
        /// What was refused.
        step: &'static str,
        /// Why.
        cause: Errno,
    },
}

/// A socket that is listened on.
#[derive(Debug, Clone)]
pub struct Listener {
    /// Where, with the port that the kernel chose if 0 was asked for.
    pub address: Address,
    socket: Arc<OwnedFd>,
}

impl Listener {
    /// Whether several workers wait on the same socket.
    pub fn is_shared(&self) -> bool {
        matches!(self.address, Address::Unix(_))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn refused(address: &Address, step: &'static str) -> impl FnOnce(Errno) -> ListenError {
    let address = address.clone();
    move |cause| ListenError::System { address, step, cause }
}

fn open(address: &Address, family: AddressFamily) -> Result<OwnedFd, ListenError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, SocketType::STREAM, flags, None)
        .map_err(refused(address, "open a socket"))
}

/// `SO_REUSEPORT` would let a second proxy of the same user take half of the connections without
/// a word. A socket without it can't be bound where another one listens.
fn refuse_shared(at: SocketAddr, family: AddressFamily) -> Result<(), ListenError> {
    let address = Address::Tcp(at);
    let socket = open(&address, family)?;
    set_socket_reuseaddr(&socket, true).map_err(refused(&address, "set SO_REUSEADDR"))?;
    rustix::net::bind(&socket, &at).map_err(refused(&address, "bind"))
}

/// One socket a worker on the same TCP address, all with the same port even if 0 was asked for.
///
/// # Errors
///
/// The kernel refuses: the address is taken, is not this machine's, or needs a privilege.
pub fn bind_tcp(asked: SocketAddr, workers: usize) -> Result<Vec<Listener>, ListenError> {
    let mut real = asked;
    let family = if asked.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    refuse_shared(asked, family)?;
    (0..workers)
        .map(|_| {
            let address = Address::Tcp(real);
            let socket = open(&address, family)?;
            set_socket_reuseaddr(&socket, true).map_err(refused(&address, "set SO_REUSEADDR"))?;
            set_socket_reuseport(&socket, true).map_err(refused(&address, "set SO_REUSEPORT"))?;
            rustix::net::bind(&socket, &real).map_err(refused(&address, "bind"))?;
            rustix::net::listen(&socket, BACKLOG).map_err(refused(&address, "listen"))?;
            let name = rustix::net::getsockname(&socket)
                .and_then(SocketAddr::try_from)
                .map_err(refused(&address, "ask for the port"))?;
            real = name;
            Ok(Listener { address: Address::Tcp(name), socket: Arc::new(socket) })
        })
        .collect()
}

/// The file of a socket that was bound here; it is removed when this is dropped, unless another
/// has taken its place.
#[derive(Debug)]
pub struct SocketFile {
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
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A socket in the file system. A stale one, which does not answer, is replaced. Without a mode
/// it has what the umask leaves.
///
/// # Errors
///
/// Another process answers on it, the path is not a socket, or the kernel refuses.
pub fn bind_unix(
    path: &Path,
    mode: Option<u32>,
    group: Option<&str>,
) -> Result<(Listener, SocketFile), ListenError> {
    let address = Address::Unix(path.to_owned());
    remove_stale(path, &address)?;
    let socket = open(&address, AddressFamily::UNIX)?;
    let name = SocketAddrUnix::new(path).map_err(refused(&address, "name the socket"))?;
    rustix::net::bind(&socket, &name).map_err(refused(&address, "bind"))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())
        .map_err(refused(&address, "look at the socket"))?;
    let file = SocketFile { path: path.to_owned(), file };
    // Before anybody can connect: that begins with the listening.
    if let Some(group) = group {
        give_to(&file.file, group).map_err(refused(&address, "give the socket to its group"))?;
    }
    if let Some(bits) = mode {
        let mode = Mode::from_raw_mode(bits);
        rustix::fs::chmod(path, mode).map_err(refused(&address, "set the socket's mode"))?;
    }
    rustix::net::listen(&socket, BACKLOG).map_err(refused(&address, "listen"))?;
    Ok((Listener { address, socket: Arc::new(socket) }, file))
}

/// Changes the group of a file, by the group's name or number.
fn give_to(file: &OwnedFd, group: &str) -> Result<(), Errno> {
    let number = match group.parse() {
        Ok(number) => number,
        Err(_) => group_number(group)?,
    };
    let gid = rustix::fs::Gid::from_raw(number);
    rustix::fs::chownat(file, "", None, Some(gid), rustix::fs::AtFlags::EMPTY_PATH)
}

/// The number of a group that the system knows by name.
fn group_number(name: &str) -> Result<u32, Errno> {
    let name = std::ffi::CString::new(name).map_err(|_| Errno::INVAL)?;
    let mut buffer = vec![0_u8; 64 << 10];
    // SAFETY: all zeroes is a group whose pointers are null; it is only read if one was found.
    let mut found: libc::group = unsafe { std::mem::zeroed() };
    let mut result = std::ptr::null_mut();
    // SAFETY: the name ends in NUL, the buffer is as long as is said, and both outlive the call,
    // which writes to `found`, `buffer` and `result` alone.
    let error = unsafe {
        libc::getgrnam_r(
            name.as_ptr(),
            &raw mut found,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &raw mut result,
        )
    };
    match (error, result.is_null()) {
        (0, false) => Ok(found.gr_gid),
        // No such group.
        (0, true) => Err(Errno::NOENT),
        (error, _) => Err(Errno::from_raw_os_error(error)),
    }
}

fn remove_stale(path: &Path, address: &Address) -> Result<(), ListenError> {
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(()) };
    if !data.file_type().is_socket() {
        return Err(ListenError::NotASocket(address.clone()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| {
                let cause = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                refused(address, "remove the stale socket")(cause)
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        // It was accepted, or the queue is full: either way there is a listener.
        _ => Err(ListenError::Live(address.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.sock");
        let (first, file) = bind_unix(&path, None, None).unwrap();
        assert!(matches!(bind_unix(&path, None, None), Err(ListenError::Live(_))));
        drop(first);
        let (second, replaced) = bind_unix(&path, None, None).unwrap();
        drop(file);
        assert!(path.exists(), "the second's file is not the first's to remove");
        drop((second, replaced));
        assert!(!path.exists());
        fs::write(&path, "").unwrap();
        assert!(matches!(bind_unix(&path, None, None), Err(ListenError::NotASocket(_))));
    }

    #[test]
    fn a_socket_has_the_mode_and_the_group_that_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.sock");
        let own = rustix::process::getgid().as_raw().to_string();
        let (_listener, _file) = bind_unix(&path, Some(0o620), Some(&own)).unwrap();
        let data = fs::symlink_metadata(&path).unwrap();
        assert_eq!((data.mode() & 0o777, data.gid().to_string()), (0o620, own));
        assert_eq!(group_number("root"), Ok(0));
        let other = folder.path().join("q.sock");
        let error = bind_unix(&other, None, Some("no such group")).unwrap_err().to_string();
        assert!(error.contains("group"), "{error}");
        assert!(!other.exists());
    }

    #[test]
    fn workers_share_a_port() {
        let listeners = bind_tcp("127.0.0.1:0".parse().unwrap(), 3).unwrap();
        assert!(listeners.iter().all(|listener| listener.address == listeners[0].address));
        let Address::Tcp(address) = listeners[0].address else { panic!("not TCP") };
        assert_ne!(address.port(), 0);
        assert!(bind_tcp(address, 1).is_err(), "another proxy does not get a share");
    }
}
