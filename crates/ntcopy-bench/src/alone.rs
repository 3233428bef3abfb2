//! Whether another measurement runs on this machine, which would disturb this one and be disturbed.
//!
//! Each listens on an abstract unix socket of a known name, which takes no rights, leaves no file and
//! goes with the process. Who begins connects to those that are there, so each learns of the other:
//! the later one at its start, the earlier one at its end.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with, sockopt,
};

/// How many measurements at one time notice each other.
const PLACES: u32 = 16;
/// Others that may come before this one looks.
const BACKLOG: i32 = 128;

/// A measurement that others notice for as long as this lives.
#[derive(Debug)]
pub struct Alone {
    listener: Option<OwnedFd>,
    /// To those that were there before.
    _connections: Vec<OwnedFd>,
    before: BTreeSet<u32>,
}

impl Alone {
    #[must_use]
    pub fn claim() -> Alone {
        Alone::among("ntcopy-measures")
    }

    fn among(name: &str) -> Alone {
        let address =
            |place| SocketAddrUnix::new_abstract_name(format!("{name}-{place}").as_bytes());
        let places: Vec<SocketAddrUnix> =
            (0..PLACES).filter_map(|place| address(place).ok()).collect();
        let there: Vec<OwnedFd> = places.iter().filter_map(|place| connected(place).ok()).collect();
        let before = there.iter().map(peer).collect();
        let listener = places.iter().find_map(|place| listening(place).ok());
        Alone { listener, _connections: there, before }
    }

    /// The processes that measured when this began, and those that began since; 0 stands for those
    /// of another container.
    #[must_use]
    pub fn others(&self) -> BTreeSet<u32> {
        let mut others = self.before.clone();
        let Some(listener) = &self.listener else { return others };
        while let Ok(connection) = accept_with(listener, SocketFlags::CLOEXEC) {
            others.insert(peer(&connection));
        }
        others
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    // Nobody waits here for another user's process.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn connected(place: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    connect(&socket, place).map(|()| socket)
}

fn listening(place: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    bind(&socket, place)?;
    listen(&socket, BACKLOG).map(|()| socket)
}

fn peer(connection: &OwnedFd) -> u32 {
    let credentials = sockopt::socket_peercred(connection);
    credentials.map_or(0, |credentials| credentials.pid.as_raw_nonzero().get().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_one_knows_at_once_and_the_earlier_one_afterwards() {
        let (own, name) = (std::process::id(), format!("ntcopy-test-{}", std::process::id()));
        let first = Alone::among(&name);
        assert!(first.others().is_empty(), "{first:?}");
        let second = Alone::among(&name);
        assert_eq!(second.others(), [own].into());
        assert_eq!(first.others(), [own].into());
        drop(first);
        let third = Alone::among(&name);
        assert_eq!((third.others(), third._connections.len()), ([own].into(), 1));
        drop((second, third));
        assert!(Alone::among(&name).others().is_empty());
    }
}
