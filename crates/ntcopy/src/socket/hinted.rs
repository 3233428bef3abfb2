//! A socket with the answer that its sends need.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::{SendAncillaryBuffer, SendFlags, Setting, Support, enable, send, sendmsg};
use crate::hint::Hint;

/// A socket that opted in, with what [`enable`] answered: whoever has it sends with a hint.
///
/// ```
/// use std::os::unix::net::UnixStream;
///
/// use ntcopy::Hint;
/// use ntcopy::socket::{Hinted, SendFlags, Setting};
///
/// let (here, _there) = UnixStream::pair()?;
/// let here = Hinted::new(here, Setting::Flagged)?;
/// let sent = here.send(b"twelve bytes", SendFlags::NOSIGNAL, Hint::Nontemporal)?;
/// assert_eq!(sent, 12);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hinted<S> {
    socket: S,
    support: Support,
}

impl<S: AsFd> Hinted<S> {
    /// Opts a socket in. One that is borrowed (`&socket`) is still there after an error.
    ///
    /// # Errors
    ///
    /// Those of [`enable`].
    pub fn new(socket: S, setting: Setting) -> Result<Hinted<S>, Errno> {
        let support = enable(&socket, setting)?;
        Ok(Hinted { socket, support })
    }

    /// What a listener accepted that [opted in](enable), with the answer that the listener got.
    pub fn accepted(socket: S, support: Support) -> Hinted<S> {
        Hinted { socket, support }
    }

    /// Who takes the socket's hints.
    pub fn support(&self) -> Support {
        self.support
    }

    /// The socket, to read from or to set what it has.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket, for what wants it mutable, such as [`std::io::Read`].
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// The socket alone; it stays opted in.
    pub fn into_socket(self) -> S {
        self.socket
    }

    /// [`send`].
    ///
    /// # Errors
    ///
    /// Those of `send(2)`.
    pub fn send(&self, bytes: &[u8], flags: SendFlags, hint: Hint) -> Result<usize, Errno> {
        send(&self.socket, bytes, flags, hint, self.support)
    }

    /// [`sendmsg`].
    ///
    /// # Errors
    ///
    /// Those of `sendmsg(2)`.
    pub fn sendmsg(
        &self,
        slices: &[IoSlice<'_>],
        control: &mut SendAncillaryBuffer<'_, '_, '_>,
        flags: SendFlags,
        hint: Hint,
    ) -> Result<usize, Errno> {
        sendmsg(&self.socket, slices, control, flags, hint, self.support)
    }
}

impl<S: AsFd> AsFd for Hinted<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::super::{kernel_support, mode};
    use super::*;

    #[test]
    fn a_socket_has_its_answer_with_it() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let here = Hinted::new(here, Setting::Flagged).unwrap();
        assert_eq!(here.support(), kernel_support());
        assert_eq!(mode(&here).unwrap().0, here.support());
        let slices = [IoSlice::new(b"one "), IoSlice::new(b"message")];
        let mut none = SendAncillaryBuffer::default();
        for hint in Hint::ALL {
            assert_eq!(here.send(b"here: ", SendFlags::NOSIGNAL, hint), Ok(6));
            assert_eq!(here.sendmsg(&slices, &mut none, SendFlags::NOSIGNAL, hint), Ok(11));
        }
        drop(here.into_socket());
        let mut got = String::new();
        there.read_to_string(&mut got).unwrap();
        assert_eq!(got, "here: one message".repeat(3));
    }

    #[test]
    fn what_is_accepted_has_the_listener_s_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = Hinted::new(UnixListener::bind(&path).unwrap(), Setting::Flagged).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        let (socket, _) = listener.socket().accept().unwrap();
        let served = Hinted::accepted(socket, listener.support());
        assert_eq!(served.send(b"x", SendFlags::NOSIGNAL, Hint::Nontemporal), Ok(1));
        let mut got = [0];
        client.read_exact(&mut got).unwrap();
        assert_eq!(got, *b"x");
    }

    #[test]
    fn what_is_no_socket_is_an_error_and_stays_the_caller_s() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(Hinted::new(&file, Setting::Flagged).err(), Some(Errno::NOTSOCK));
        assert!(file.metadata().is_ok());
    }
}
