//! Sends with a hint.

use std::io::IoSlice;
use std::os::fd::AsFd;

use rustix::io::Errno;
pub use rustix::net::{SendAncillaryBuffer, SendFlags};

use super::Support;
use crate::hint::Hint;
use crate::uapi;

impl Support {
    /// The flag that a send with this hint carries on a socket for which [`enable`](super::enable)
    /// gave this answer: `MSG_NTCOPY` for [`Hint::Nontemporal`], none for any other hint, and none
    /// where the hint would reach neither the kernel nor the module. Kernels that don't know the
    /// flag ignore it on most sockets, but refuse it on some.
    pub fn flags(self, hint: Hint) -> SendFlags {
        match (self, hint) {
            (Support::Kernel | Support::Module, Hint::Nontemporal) => {
                SendFlags::from_bits_retain(uapi::MSG_NTCOPY)
            }
            _ => SendFlags::empty(),
        }
    }
}

/// `send(2)` with a hint for the copy that the kernel makes: [`Hint::Nontemporal`] if the sender
/// doesn't expect these bytes to be read while they are in cache. With any other hint this is the
/// plain `send`, and the socket keeps its own [`Setting`](super::Setting).
///
/// `support` is what [`enable`](super::enable) answered for this socket, or for the listener that
/// accepted it. It is believed: on a socket that did not opt in the kernel ignores the hint. Bytes,
/// errno, order and partial sends are the same with and without; what the kernel did with the hint
/// is in its [counters](super::counters).
///
/// # Errors
///
/// Those of `send(2)`.
///
/// ```
/// use std::os::unix::net::UnixStream;
///
/// use ntcopy::Hint;
/// use ntcopy::socket::{SendFlags, Setting, enable, send};
///
/// let (here, _there) = UnixStream::pair()?;
/// let support = enable(&here, Setting::Flagged)?;
/// println!("the hints go to: {}", support.name());
/// let sent = send(&here, b"twelve bytes", SendFlags::NOSIGNAL, Hint::Nontemporal, support)?;
/// assert_eq!(sent, 12);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn send(
    socket: impl AsFd,
    bytes: &[u8],
    flags: SendFlags,
    hint: Hint,
    support: Support,
) -> Result<usize, Errno> {
    rustix::net::send(socket, bytes, flags | support.flags(hint))
}

/// `sendmsg(2)` with a hint, as [`send`]: many slices in one message, and control messages with
/// them. The control messages are taken out of the buffer if the send succeeds.
///
/// # Errors
///
/// Those of `sendmsg(2)`.
pub fn sendmsg(
    socket: impl AsFd,
    slices: &[IoSlice<'_>],
    control: &mut SendAncillaryBuffer<'_, '_, '_>,
    flags: SendFlags,
    hint: Hint,
    support: Support,
) -> Result<usize, Errno> {
    rustix::net::sendmsg(socket, slices, control, flags | support.flags(hint))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::super::{Setting, enable, kernel_support};
    use super::*;

    const HINTS: [Hint; 3] = Hint::ALL;

    /// A pair whose first socket opted in, and who took that.
    fn pair() -> (UnixStream, UnixStream, Support) {
        let (here, there) = UnixStream::pair().unwrap();
        let support = enable(&here, Setting::Flagged).unwrap();
        assert_eq!(support, kernel_support());
        (here, there, support)
    }

    #[test]
    fn the_flag_is_for_sockets_whose_hints_are_taken_and_for_one_hint() {
        for support in [Support::Kernel, Support::Module, Support::None] {
            for hint in HINTS {
                let is_due = support != Support::None && hint == Hint::Nontemporal;
                let flag = if is_due { uapi::MSG_NTCOPY } else { 0 };
                assert_eq!(support.flags(hint).bits(), flag, "{support:?} {}", hint.name());
            }
        }
    }

    #[test]
    fn the_bytes_are_the_same_with_every_hint_whoever_takes_it() {
        // A stock kernel ignores the flag on these sockets.
        for (hint, is_flagged) in HINTS.map(|hint| [(hint, false), (hint, true)]).concat() {
            let (here, mut there, mut support) = pair();
            if is_flagged {
                support = Support::Kernel;
            }
            let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
            let reader = thread::spawn(move || {
                let mut got = Vec::new();
                there.read_to_end(&mut got).map(|_| got)
            });
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let sent = send(&here, rest, SendFlags::NOSIGNAL, hint, support).unwrap();
                rest = &rest[sent..];
            }
            drop(here);
            assert!(reader.join().unwrap().unwrap() == bytes, "{}", hint.name());
        }
    }

    #[test]
    fn slices_arrive_in_order() {
        for hint in HINTS {
            let (here, mut there, support) = pair();
            let slices = [IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"message")];
            let mut none = SendAncillaryBuffer::default();
            let sent = sendmsg(&here, &slices, &mut none, SendFlags::NOSIGNAL, hint, support);
            assert_eq!(sent, Ok(11));
            drop(here);
            let mut got = String::new();
            there.read_to_string(&mut got).unwrap();
            assert_eq!(got, "one message");
        }
    }

    #[test]
    fn errors_and_partial_sends_are_the_same_with_every_hint() {
        let mut taken = Vec::new();
        for hint in HINTS {
            let file = std::fs::File::open("/dev/null").unwrap();
            let to_file = send(&file, b"x", SendFlags::NOSIGNAL, hint, Support::Kernel);
            assert_eq!(to_file, Err(Errno::NOTSOCK));

            let (here, there, support) = pair();
            drop(there);
            assert_eq!(send(&here, b"x", SendFlags::NOSIGNAL, hint, support), Err(Errno::PIPE));

            let (here, _there, support) = pair();
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let much = vec![0; 8 << 20];
            taken.push(send(&here, &much, flags, hint, support).unwrap());
            assert_eq!(send(&here, &much, flags, hint, support), Err(Errno::AGAIN));
        }
        assert!(taken[0] < 8 << 20, "{taken:?}");
        assert!(taken.iter().all(|bytes| *bytes == taken[0]), "{taken:?}");
    }
}
