//! How a socket is set: by the kernel's option, or by the module.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use ntcopy::recommended::Kind;
use ntcopy::socket::{Support, kernel_support};
use ntcopy::uapi;

use super::hold;
use crate::cmd::hinted::kernel_obstacle;

/// Who takes the numbers of sockets here.
pub enum Way {
    Kernel,
    /// Its device, which stays open for one look at a program: the module cannot be unloaded then.
    Module(File),
}

impl Way {
    /// Or why there is none.
    pub fn here() -> Result<Way, String> {
        match kernel_support() {
            Support::Kernel => {
                // The first socket that opts in has the kernel patch itself: better not one of
                // somebody else's, which is held meanwhile.
                let (own, _) = UnixStream::pair().map_err(|error| format!("no socket: {error}"))?;
                match hold::set(own.as_fd(), uapi::SO_NTCOPY, uapi::MIN_BYTES) {
                    Ok(()) => Ok(Way::Kernel),
                    Err(error) => Err(format!("this kernel's SO_NTCOPY takes no number: {error}")),
                }
            }
            Support::Module => {
                let path = Path::new(std::ffi::OsStr::from_bytes(uapi::MODULE_PATH.to_bytes()));
                let device = OpenOptions::new().read(true).write(true).open(path);
                let device = device.map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(Way::Module(device))
            }
            Support::None => Err(kernel_obstacle().unwrap_or_default()),
        }
    }

    /// What becomes of this number: the module takes powers of two.
    pub fn taken(&self, number: c_int) -> io::Result<c_int> {
        let (own, _) = UnixStream::pair()?;
        self.set(own.as_fd(), number)?;
        self.number(own.as_fd())
    }

    pub fn support(&self) -> Support {
        match self {
            Way::Kernel => Support::Kernel,
            Way::Module(_) => Support::Module,
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Way::Kernel => "the kernel",
            Way::Module(_) => "the module",
        }
    }

    /// Whether sockets of this kind can be set.
    pub fn takes(&self, kind: Kind) -> bool {
        match self {
            Way::Kernel => true,
            Way::Module(_) => kind.module_bytes().is_some(),
        }
    }

    /// From how many bytes on the socket's sends are hinted; 0: none.
    pub fn number(&self, socket: BorrowedFd<'_>) -> io::Result<c_int> {
        match self {
            Way::Kernel => hold::int(socket, uapi::SO_NTCOPY),
            Way::Module(device) => {
                let answer = match ask(device, uapi::IOC_QUERY, socket, 0) {
                    // No unix stream, or other kernel code has its operations.
                    Err(error) if is_declined(&error) => return Ok(0),
                    answer => answer?,
                };
                let is_attached = answer.flags & uapi::SOCKET_ATTACHED != 0;
                Ok(if is_attached { answer.min_bytes } else { 0 })
            }
        }
    }

    pub fn set(&self, socket: BorrowedFd<'_>, number: c_int) -> io::Result<()> {
        match self {
            Way::Kernel => hold::set(socket, uapi::SO_NTCOPY, number),
            Way::Module(device) => {
                let request = if number == 0 { uapi::IOC_DETACH } else { uapi::IOC_ATTACH };
                ask(device, request, socket, number).map(drop)
            }
        }
    }
}

fn is_declined(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EBUSY))
}

fn ask(
    device: &File,
    request: u32,
    socket: BorrowedFd<'_>,
    min_bytes: c_int,
) -> io::Result<uapi::Socket> {
    let mut argument = uapi::Socket { fd: socket.as_raw_fd(), min_bytes, ..Default::default() };
    // SAFETY: it is the structure of these requests, and both descriptors are open.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), request.into(), &raw mut argument) };
    if result == 0 { Ok(argument) } else { Err(io::Error::last_os_error()) }
}
