//! Who has set which socket's `SO_NTCOPY`: the program or this library.
//!
//! Each is noted by the socket's cookie, which the kernel gives to no other socket until it is
//! started again. The cookie is the same for every descriptor of the socket, also in the children,
//! so no note has to be taken away when the socket is closed.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::sys;

/// Who has set a socket's `SO_NTCOPY`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setter {
    /// This library, where it was at its default.
    Library,
    /// The program.
    Program,
}

impl Setter {
    const fn bit(self) -> u64 {
        match self {
            Setter::Library => 0,
            Setter::Program => 1,
        }
    }
}

/// A cookie, shifted, and who; 0 is none. The newer of two sockets that share a slot is known.
struct Notes<const SLOTS: usize>([AtomicU64; SLOTS]);

static NOTES: Notes<{ 1 << 14 }> = Notes::new();

impl<const SLOTS: usize> Notes<SLOTS> {
    const fn new() -> Self {
        Notes([const { AtomicU64::new(0) }; SLOTS])
    }

    /// Cookies are handed out one after the other, so neighbours don't meet.
    fn slot(&self, cookie: u64) -> Option<&AtomicU64> {
        self.0.get(cookie as usize % SLOTS)
    }

    fn note(&self, cookie: u64, setter: Setter) {
        if let Some(slot) = self.slot(cookie) {
            slot.store(cookie << 1 | setter.bit(), Relaxed);
        }
    }

    fn setter(&self, cookie: u64) -> Option<Setter> {
        let note = self.slot(cookie)?.load(Relaxed);
        [Setter::Library, Setter::Program]
            .into_iter()
            .find(|setter| cookie != 0 && note == cookie << 1 | setter.bit())
    }
}

/// Notes who sets the option of this socket.
pub fn note(fd: c_int, setter: Setter) {
    if let Ok(cookie) = sys::getsockopt(fd, libc::SO_COOKIE) {
        NOTES.note(cookie, setter);
    }
}

/// Who has set it, as far as this library has seen.
pub fn setter(fd: c_int) -> Option<Setter> {
    NOTES.setter(sys::getsockopt(fd, libc::SO_COOKIE).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_known_until_another_one_takes_its_slot() {
        let notes = Notes::<8>::new();
        assert_eq!((notes.setter(0), notes.setter(3)), (None, None));
        notes.note(3, Setter::Library);
        notes.note(4, Setter::Program);
        assert_eq!(notes.setter(3), Some(Setter::Library));
        assert_eq!(notes.setter(4), Some(Setter::Program));
        assert_eq!((notes.setter(11), notes.setter(1)), (None, None));
        notes.note(3, Setter::Program);
        assert_eq!(notes.setter(3), Some(Setter::Program));
        notes.note(11, Setter::Library);
        assert_eq!((notes.setter(3), notes.setter(11)), (None, Some(Setter::Library)));
    }

    #[test]
    fn every_descriptor_of_a_socket_is_the_same_one() {
        use std::os::fd::AsRawFd;

        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        note(one.as_raw_fd(), Setter::Program);
        let again = one.try_clone().unwrap();
        assert_eq!(setter(again.as_raw_fd()), Some(Setter::Program));
        assert_eq!(setter(other.as_raw_fd()), None);
        assert_eq!(setter(-1), None);
    }
}
