//! One descriptor of another process at a time, for two system calls.
//!
//! A copy of a descriptor keeps its socket open: the peer sees no end while we have it. So it is
//! gone again before anything else is done, nothing is waited for meanwhile, and all signals are
//! blocked (`guard.rs`).

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::{fmt, io};

use ntcopy::recommended::Kind;
use ntcopy_inflight::Pid;
use ntcopy_record::foreign;
use rustix::net::{SocketAddrUnix, getsockname};
use rustix::process::{Pid as RustixPid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// A process whose descriptors can be copied.
pub struct Holder(OwnedFd);

impl Holder {
    pub fn open(pid: Pid) -> io::Result<Holder> {
        let pid = i32::try_from(pid).ok().and_then(RustixPid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        Ok(Holder(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Two system calls on a descriptor that the process has at this number.
    pub fn hold<A, B>(
        &self,
        number: RawFd,
        first: impl FnOnce(BorrowedFd<'_>) -> io::Result<A>,
        second: impl FnOnce(BorrowedFd<'_>, &A) -> io::Result<B>,
    ) -> io::Result<(A, B)> {
        let copy = pidfd_getfd(&self.0, number, PidfdGetfdFlags::empty())?;
        let told = first(copy.as_fd())?;
        let then = second(copy.as_fd(), &told)?;
        Ok((told, then))
    }

    /// What the socket is: its kind, if it is one that can be hinted, and whether it listens.
    pub fn kind(&self, number: RawFd) -> io::Result<(Option<Kind>, bool)> {
        let (domain, of_type) =
            self.hold(number, |fd| int(fd, libc::SO_DOMAIN), |fd, _| int(fd, libc::SO_TYPE))?;
        let (protocol, listens) = self.hold(
            number,
            |fd| int(fd, libc::SO_PROTOCOL),
            |fd, _| int(fd, libc::SO_ACCEPTCONN),
        )?;
        Ok((Kind::of(domain, of_type, protocol), listens != 0))
    }

    /// The address that it is bound to, if it is; a connection has that of its listener.
    pub fn address(&self, number: RawFd) -> io::Result<Option<Address>> {
        let (address, ()) = self.hold(number, address, |_, _| Ok(()))?;
        Ok(address)
    }
}

/// What a listener and the connections that it accepted have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Address {
    /// A path, or with `@` a name.
    Unix(String),
    Tcp(u16),
}

/// What a socket of this process's own is, if it is one that can be hinted.
pub fn kind(socket: BorrowedFd<'_>) -> io::Result<Option<Kind>> {
    let [domain, of_type, protocol] =
        [libc::SO_DOMAIN, libc::SO_TYPE, libc::SO_PROTOCOL].map(|name| int(socket, name));
    Ok(Kind::of(domain?, of_type?, protocol?))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => f.write_str(&foreign::visible(path)),
            Address::Tcp(port) => write!(f, "port {port}"),
        }
    }
}

fn address(socket: BorrowedFd<'_>) -> io::Result<Option<Address>> {
    let any = getsockname(socket)?;
    if let Ok(unix) = SocketAddrUnix::try_from(any.clone()) {
        let path = unix.path_bytes().filter(|path| !path.is_empty());
        let path = path.map(|path| String::from_utf8_lossy(path).into_owned());
        let name = unix.abstract_name().filter(|name| !name.is_empty());
        let name = name.map(|name| format!("@{}", String::from_utf8_lossy(name)));
        return Ok(path.or(name).map(Address::Unix));
    }
    let port = SocketAddr::try_from(any).map(|address| address.port()).ok();
    Ok(port.filter(|port| *port != 0).map(Address::Tcp))
}

/// The socket's cookie: no other socket has it until the kernel is started again.
pub fn cookie(fd: BorrowedFd<'_>) -> io::Result<u64> {
    get(fd, libc::SO_COOKIE)
}

/// A socket option that is an int.
pub fn int(fd: BorrowedFd<'_>, name: c_int) -> io::Result<c_int> {
    get(fd, name)
}

/// What a socket option may be: any bytes are one.
pub trait Value: Default {}

impl Value for c_int {}
impl Value for u64 {}

fn get<T: Value>(fd: BorrowedFd<'_>, name: c_int) -> io::Result<T> {
    let mut value = T::default();
    let mut size = size_of::<T>() as libc::socklen_t;
    let at: *mut c_void = (&raw mut value).cast();
    // SAFETY: the kernel writes at most `size` bytes to `value`, which is of that size.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, at, &raw mut size) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Sets a socket option that is an int.
pub fn set(fd: BorrowedFd<'_>, name: c_int, value: c_int) -> io::Result<()> {
    let (at, size) = ((&raw const value).cast(), size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the kernel reads `value`, which is of that size.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, at, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
