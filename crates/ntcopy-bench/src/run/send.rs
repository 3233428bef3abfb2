//! Sending an object, by mode, and what a mode needs of kernel and socket.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use memmap2::Advice;
use ntcopy::socket::{Setting, Support, kernel_support, other_series};
use ntcopy::uapi;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::pipe::{IoSliceRaw, SpliceFlags, splice, vmsplice};

use super::pipe::Pipe;
use super::{Failure, Stop, datagram, map};
use crate::experiment::{Family, Mode};

pub struct Sender {
    family: Family,
    /// The way of `vmsplice` into the socket.
    pipe: Pipe,
    patience: Duration,
    stop: Stop,
}

impl Sender {
    pub fn new(
        family: Family,
        object_bytes: u64,
        patience: Duration,
        stop: Stop,
    ) -> Result<Sender, Failure> {
        Ok(Sender { family, pipe: Pipe::for_object(object_bytes)?, patience, stop })
    }

    /// Sends all of `bytes`. A socket that takes no more of them is a failure,
    /// at once where the socket does not block, else after the patience that
    /// is set on it.
    pub fn send(&self, socket: BorrowedFd<'_>, mode: Mode, bytes: &[u8]) -> Result<(), Failure> {
        match mode {
            Mode::Plain => self.send_copying(socket, bytes, SendFlags::NOSIGNAL),
            Mode::Hinted => {
                let hint = SendFlags::from_bits_retain(uapi::MSG_NTCOPY);
                self.send_copying(socket, bytes, SendFlags::NOSIGNAL | hint)
            }
            Mode::Vmsplice => self.send_pages(socket, bytes),
            Mode::Idle => Ok(()),
        }
    }

    fn send_copying(
        &self,
        socket: BorrowedFd<'_>,
        bytes: &[u8],
        flags: SendFlags,
    ) -> Result<(), Failure> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = if self.family.is_datagram() {
                datagram::send(socket, rest, flags.bits())
            } else {
                send(socket, rest, flags)
            };
            match taken {
                Ok(taken) => rest = &rest[taken..],
                Err(Errno::INTR) => self.stop.check()?,
                Err(Errno::AGAIN) => return Err(self.stuck(bytes.len() - rest.len())),
                Err(errno) => return Err(Failure::os("cannot send")(errno)),
            }
        }
        Ok(())
    }

    fn send_pages(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Failure> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let piped = self.pages_to_pipe(rest)?;
            let mut left = piped;
            while left > 0 {
                match splice(&self.pipe.read, None, socket, None, left, SpliceFlags::MOVE) {
                    Ok(0) => return Err(self.stuck(bytes.len() - rest.len() + piped - left)),
                    Ok(taken) => left -= taken,
                    Err(Errno::INTR) => self.stop.check()?,
                    Err(Errno::AGAIN) => {
                        return Err(self.stuck(bytes.len() - rest.len() + piped - left));
                    }
                    Err(errno) => return Err(Failure::os("cannot splice to the socket")(errno)),
                }
            }
            rest = &rest[piped..];
        }
        Ok(())
    }

    /// Puts the pages of the first bytes into the empty pipe, as many as it takes.
    fn pages_to_pipe(&self, bytes: &[u8]) -> Result<usize, Failure> {
        let pages = [IoSliceRaw::from_slice(bytes)];
        // SAFETY: the write end of the pipe is given, so the kernel only reads the memory, and
        // SPLICE_F_GIFT is not set.
        let piped =
            retry_on_intr(|| unsafe { vmsplice(&self.pipe.write, &pages, SpliceFlags::empty()) });
        piped.map_err(Failure::os("cannot vmsplice"))
    }

    fn stuck(&self, taken: usize) -> Failure {
        if taken > 0 {
            return Failure::Limit(format!(
                "a socket took only {taken} bytes of an object: its send buffer is too small"
            ));
        }
        Failure::Silent { what: "a socket took no byte", waited: self.patience }
    }
}

/// Why a mode is not to be had on this kernel; none if it is.
pub fn unavailable(mode: Mode) -> Result<Option<String>, Failure> {
    match mode {
        Mode::Plain | Mode::Idle => Ok(None),
        Mode::Hinted => match ntcopy::socket::probe() {
            Ok(Support::None) | Err(Errno::PROTO) => Ok(Some(no_msg_ntcopy())),
            Ok(Support::Kernel | Support::Module) => Ok(switched_off()),
            Err(errno) => Err(Failure::os("cannot ask for SO_NTCOPY")(errno)),
        },
        Mode::Vmsplice => {
            let page = map(4096, Advice::Normal)?;
            let (ours, _theirs) =
                socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                    .map_err(Failure::os("cannot make a socket pair"))?;
            let sender = Sender::new(Family::Unix, 4096, Duration::ZERO, Stop::default())?;
            let sent = sender.send(ours.as_fd(), mode, &page);
            Ok(sent.err().map(|failure| format!("this kernel does not do it: {failure}")))
        }
    }
}

/// Why hints do nothing on this kernel, if they don't.
fn switched_off() -> Option<String> {
    (ntcopy::socket::sysctl() == Some(uapi::SYSCTL_OFF)).then(|| {
        "net.core.ntcopy is 0, and hints are ignored: sysctl -w net.core.ntcopy=1".to_owned()
    })
}

pub fn setting(mode: Mode) -> Setting {
    match mode {
        // Each send carries the flag.
        Mode::Hinted => Setting::Flagged,
        Mode::Plain | Mode::Vmsplice | Mode::Idle => Setting::None,
    }
}

/// Sets the socket's own setting. Not to be called for what the socket is
/// already: the kernel's send path may change with the first call.
pub fn prepare(socket: BorrowedFd<'_>, setting: Setting) -> Result<(), Failure> {
    match ntcopy::socket::enable(socket, setting) {
        Ok(Support::None) if kernel_support() == Support::Module => {
            Err(Failure::Limit(NOT_BY_THE_MODULE.to_owned()))
        }
        Ok(Support::None) => Err(Failure::Limit(no_msg_ntcopy())),
        Ok(Support::Kernel | Support::Module) => Ok(()),
        Err(errno) => Err(Failure::os("cannot set SO_NTCOPY")(errno)),
    }
}

pub fn no_msg_ntcopy() -> String {
    match other_series() {
        None => "this kernel has no MSG_NTCOPY; try --kernel um".to_owned(),
        Some(other) => format!("{other}; or try --kernel um"),
    }
}

/// Why they are not on a socket that the module does not take.
const NOT_BY_THE_MODULE: &str =
    "this kernel has MSG_NTCOPY by ntcopy.ko, for unix streams; try --kernel um";
