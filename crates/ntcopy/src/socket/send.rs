//! Sends with a hint.

use std::io::IoSlice;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use rustix::io::Errno;
pub use rustix::net::{SendAncillaryBuffer, SendFlags};

use super::module::{self, Answer};
use super::{Support, kernel_support};
use crate::hint::Hint;
use crate::uapi;

/// What became of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that were taken; fewer than offered where a send without the hint takes fewer.
    pub bytes: usize,
    /// Who was given the hint: [`Support::None`] where it was an ordinary send, because there was
    /// no hint to give or nobody to take it. What the kernel then did with the hint is in its
    /// [counters](super::counters).
    pub hinted: Support,
}

/// `send(2)` with a hint for the copy that the kernel makes: [`Hint::Nontemporal`] if the sender
/// doesn't expect these bytes to be read while they are in cache.
///
/// The hint travels as `MSG_NTCOPY`, and only where somebody takes it: kernels that don't know
/// the flag ignore it on most sockets, but refuse it on some. The kernel takes it on every socket,
/// the module on those for which [`enable`](super::enable) was called, with any setting; it is
/// asked before each such send, which is one more system call, without a lock. With any other hint this is the
/// plain `send`, and a socket that was enabled keeps its own way. Bytes, errno, order and partial
/// sends are the same with and without.
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
/// enable(&here, Setting::None)?;
/// let sent = send(&here, b"twelve bytes", SendFlags::NOSIGNAL, Hint::Nontemporal)?;
/// assert_eq!(sent.bytes, 12);
/// println!("the hint went to: {}", sent.hinted.name());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn send(socket: impl AsFd, bytes: &[u8], flags: SendFlags, hint: Hint) -> Result<Sent, Errno> {
    let (flags, hinted) = with_hint(&socket, flags, hint);
    let bytes = rustix::net::send(socket, bytes, flags)?;
    Ok(Sent { bytes, hinted })
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
) -> Result<Sent, Errno> {
    let (flags, hinted) = with_hint(&socket, flags, hint);
    let bytes = rustix::net::sendmsg(socket, slices, control, flags)?;
    Ok(Sent { bytes, hinted })
}

/// The flags with the hint in them, if it is one for the kernel's copy and somebody is there to
/// take it on this socket, and who that is: what [`send`] does, for programs that make the call
/// themselves. A question that could not be put counts as nobody; the send will say what is wrong.
pub fn with_hint(socket: impl AsFd, flags: SendFlags, hint: Hint) -> (SendFlags, Support) {
    if hint != Hint::Nontemporal {
        return (flags, Support::None);
    }
    let support = match asked_once() {
        Support::Module => match module::query(socket.as_fd()) {
            Ok(Answer::Done(_)) => Support::Module,
            _ => Support::None,
        },
        other => other,
    };
    match support {
        Support::None => (flags, support),
        _ => (flags | SendFlags::from_bits_retain(uapi::MSG_NTCOPY), support),
    }
}

/// Neither the kernel nor the library's view of the module changes under a process; they are
/// asked at the first send.
fn asked_once() -> Support {
    static ANSWER: OnceLock<Support> = OnceLock::new();
    *ANSWER.get_or_init(kernel_support)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::super::{Setting, enable};
    use super::*;

    const HINTS: [Hint; 3] = Hint::ALL;

    /// A pair whose first socket takes hints, if any does.
    fn pair() -> (UnixStream, UnixStream) {
        let (here, there) = UnixStream::pair().unwrap();
        assert_eq!(enable(&here, Setting::None), Ok(kernel_support()));
        (here, there)
    }

    fn expected(hint: Hint) -> Support {
        if hint == Hint::Nontemporal { kernel_support() } else { Support::None }
    }

    #[test]
    fn the_bytes_are_the_same_with_every_hint_and_the_caller_is_told() {
        for hint in HINTS {
            let (here, mut there) = pair();
            let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
            let reader = thread::spawn(move || {
                let mut got = Vec::new();
                there.read_to_end(&mut got).map(|_| got)
            });
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let sent = send(&here, rest, SendFlags::NOSIGNAL, hint).unwrap();
                assert_eq!(sent.hinted, expected(hint));
                rest = &rest[sent.bytes..];
            }
            drop(here);
            assert!(reader.join().unwrap().unwrap() == bytes, "{}", hint.name());
        }
    }

    #[test]
    fn slices_arrive_in_order() {
        for hint in HINTS {
            let (here, mut there) = pair();
            let slices = [IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"message")];
            let mut none = SendAncillaryBuffer::default();
            let sent = sendmsg(&here, &slices, &mut none, SendFlags::NOSIGNAL, hint).unwrap();
            assert_eq!(sent, Sent { bytes: 11, hinted: expected(hint) });
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
            assert_eq!(send(&file, b"x", SendFlags::NOSIGNAL, hint), Err(Errno::NOTSOCK));

            let (here, there) = pair();
            drop(there);
            assert_eq!(send(&here, b"x", SendFlags::NOSIGNAL, hint), Err(Errno::PIPE));

            let (here, _there) = pair();
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let much = vec![0; 8 << 20];
            taken.push(send(&here, &much, flags, hint).unwrap().bytes);
            assert_eq!(send(&here, &much, flags, hint), Err(Errno::AGAIN));
        }
        assert!(taken[0] < 8 << 20, "{taken:?}");
        assert!(taken.iter().all(|bytes| *bytes == taken[0]), "{taken:?}");
    }

    #[test]
    fn a_hint_that_nobody_takes_on_this_socket_is_not_given() {
        // The kernel takes it everywhere, the module where it was told to.
        let (here, mut there) = UnixStream::pair().unwrap();
        let support =
            if kernel_support() == Support::Kernel { Support::Kernel } else { Support::None };
        let (flags, hinted) = with_hint(&here, SendFlags::NOSIGNAL, Hint::Nontemporal);
        assert_eq!(hinted, support);
        assert_eq!(flags.bits() & uapi::MSG_NTCOPY != 0, support == Support::Kernel);
        let sent = send(&here, b"x", SendFlags::NOSIGNAL, Hint::Nontemporal).unwrap();
        assert_eq!(sent, Sent { bytes: 1, hinted: support });
        let mut got = [0];
        there.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"x");
    }
}
