//! Two network namespaces and pairs of devices between them.
//!
//! The namespaces have no name: they are there as long as a process or a descriptor of this
//! program is, and what is in them goes with them, however this program ends. The namespace that
//! it was started in, and the devices there, are never touched.
//!
//! Without root they come with a user namespace, in which this process may do it.

mod ethtool;
mod route;

use std::fmt;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use self::route::Route;
use crate::run::Failure;

/// The feature of a device with which TCP copies past the caches what it sends through it.
pub const NOCACHE: &str = "tx-nocache-copy";

/// One of the namespaces, and how things are asked of it.
struct Place {
    namespace: File,
    route: Route,
    /// For questions about devices.
    socket: OwnedFd,
}

impl Place {
    fn here() -> Result<Place, Failure> {
        let path = "/proc/thread-self/ns/net";
        let namespace = File::open(path).map_err(Failure::io(format!("cannot open {path}")))?;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
                .map_err(Failure::os("cannot make a socket"))?;
        Ok(Place { namespace, route: Route::open()?, socket })
    }

    fn index(&self, device: &str) -> Result<u32, Failure> {
        netdevice::name_to_index(&self.socket, device)
            .map_err(Failure::os(format!("cannot ask for device {device}")))
    }

    fn enter(&self) -> Result<(), Failure> {
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(Failure::os("cannot go to the other network namespace"))
    }
}

/// The two namespaces; this thread is in the client's from now on.
pub struct Namespaces {
    client: Place,
    server: Place,
}

impl Namespaces {
    pub fn make() -> Result<Namespaces, Failure> {
        leave()?;
        let server = Place::here()?;
        leave()?;
        let client = Place::here()?;
        for place in [&client, &server] {
            place.route.up(place.index("lo")?).map_err(refused("set the loopback up"))?;
        }
        Ok(Namespaces { client, server })
    }

    /// Joins them by a pair of devices with addresses; `number` tells pairs apart.
    pub fn join(&self, number: u8, mtu_bytes: u32, wants_ipv6: bool) -> Result<(), Failure> {
        let name = device(number);
        let made = self.client.route.add_pair(&name, mtu_bytes, self.server.namespace.as_fd());
        made.map_err(|errno| match errno {
            Errno::OPNOTSUPP => Failure::Limit(
                "this kernel has no pairs of devices (module veth, CONFIG_VETH)".to_owned(),
            ),
            other => refused("make a pair of devices (veth)")(other),
        })?;
        let [ours, theirs] = addresses(number);
        for (place, address) in [(&self.client, ours), (&self.server, theirs)] {
            let index = place.index(&name)?;
            place.route.up(index).map_err(refused("set a device up"))?;
            let added = place.route.add_address(index, address.0.into(), 30);
            added.map_err(refused("give a device its address"))?;
            if wants_ipv6 {
                let added = place.route.add_address(index, address.1.into(), 64);
                added.map_err(refused("give a device its IPv6 address (is IPv6 off?)"))?;
            }
        }
        Ok(())
    }

    pub fn addresses(&self, number: u8, is_ipv6: bool) -> [IpAddr; 2] {
        addresses(number).map(|(v4, v6)| if is_ipv6 { v6.into() } else { v4.into() })
    }

    /// Does something while this thread is in the server's namespace: a socket that is made, or a
    /// process that is started meanwhile stays there.
    pub fn at_server<T>(&self, what: impl FnOnce() -> T) -> Result<T, Failure> {
        self.server.enter()?;
        let done = what();
        self.client.enter()?;
        Ok(done)
    }

    /// Switches [`NOCACHE`] of both ends of a pair.
    pub fn set_nocache(&self, number: u8, on: bool) -> Result<(), Failure> {
        let name = device(number);
        for place in [&self.client, &self.server] {
            ethtool::set(place.socket.as_fd(), &name, NOCACHE, on)?;
        }
        if self.nocache(number)? != on {
            let what = if on { "on" } else { "off" };
            return Err(Failure::Limit(format!("{NOCACHE} of a device does not go {what}")));
        }
        Ok(())
    }

    /// An error if [`NOCACHE`] of a pair is not as a mode wants it.
    pub fn check_nocache(
        &self,
        number: u8,
        wants: bool,
        mode: impl fmt::Display,
    ) -> Result<(), Failure> {
        let is_on = self.nocache(number)?;
        if is_on == wants {
            return Ok(());
        }
        let is = if is_on { "on" } else { "off" };
        Err(Failure::Counters(format!("in mode {mode}, {NOCACHE} of the devices is {is}")))
    }

    /// Whether [`NOCACHE`] of both ends of a pair is on.
    pub fn nocache(&self, number: u8) -> Result<bool, Failure> {
        let name = device(number);
        let is_on = |place: &Place| ethtool::is_on(place.socket.as_fd(), &name, NOCACHE);
        Ok(is_on(&self.client)? && is_on(&self.server)?)
    }
}

/// A pair's name, the same at both ends.
fn device(number: u8) -> String {
    format!("ntcopy{number}")
}

/// The addresses of a pair's ends, the client's first. No other process is in the namespaces.
fn addresses(number: u8) -> [(Ipv4Addr, Ipv6Addr); 2] {
    [1, 2].map(|end| {
        let v6 = Ipv6Addr::new(0xfd6e, 0x7463, 0x6f70, number.into(), 0, 0, 0, end.into());
        (Ipv4Addr::new(10, 78, number, end), v6)
    })
}

/// Goes to a network namespace that no other process is in.
fn leave() -> Result<(), Failure> {
    match unshare(UnshareFlags::NEWNET) {
        Ok(()) => Ok(()),
        Err(Errno::PERM) => {
            let (user, group) = (geteuid().as_raw(), getegid().as_raw());
            unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET).map_err(no_namespace)?;
            become_root(user, group)
        }
        Err(errno) => Err(no_namespace(errno)),
    }
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: only CLONE_NEWNET and CLONE_NEWUSER are given: file descriptors, memory and the
    // current directory stay shared as they were.
    unsafe { unshare_unsafe(flags) }
}

/// In a new user namespace: what this process is outside is root inside. A program that it starts
/// would lose the right to do anything there otherwise.
fn become_root(user: u32, group: u32) -> Result<(), Failure> {
    // Not there before Linux 3.19, and then not needed.
    let _ = fs::write("/proc/self/setgroups", "deny");
    for (file, id) in [("uid_map", user), ("gid_map", group)] {
        let path = format!("/proc/self/{file}");
        fs::write(&path, format!("0 {id} 1\n"))
            .map_err(Failure::io(format!("cannot write {path}")))?;
    }
    Ok(())
}

fn no_namespace(errno: Errno) -> Failure {
    Failure::Limit(format!(
        "a network namespace of its own is not to be had ({errno}): run as root, or where \
         user.max_net_namespaces and the system's policy let users make namespaces; without --veth it \
         is not needed"
    ))
}

fn refused(what: &'static str) -> impl FnOnce(Errno) -> Failure {
    move |errno| Failure::Limit(format!("this system does not {what}: {errno}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pairs_join_the_namespaces_and_their_feature_is_switched() {
        // A thread of the test's own goes; the others stay where they are.
        let namespaces = match Namespaces::make() {
            Ok(namespaces) => namespaces,
            Err(failure) => {
                println!("not run: {failure}");
                return;
            }
        };
        let before = fs::read_link("/proc/thread-self/ns/net").unwrap();
        for number in 0..2 {
            if let Err(failure) = namespaces.join(number, 1500, false) {
                println!("not run: {failure}");
                return;
            }
            assert!(!namespaces.nocache(number).unwrap(), "off by default");
        }
        namespaces.set_nocache(1, true).unwrap();
        assert_eq!((namespaces.nocache(0), namespaces.nocache(1)), (Ok(false), Ok(true)));
        namespaces.set_nocache(1, false).unwrap();
        assert_eq!(namespaces.nocache(1), Ok(false));
        let there = namespaces.at_server(|| fs::read_link("/proc/thread-self/ns/net").unwrap());
        assert_ne!(there.unwrap(), before);
        assert_eq!(fs::read_link("/proc/thread-self/ns/net").unwrap(), before);
        let unknown = ethtool::is_on(namespaces.client.socket.as_fd(), "ntcopy0", "tx-magic");
        assert!(matches!(unknown, Err(Failure::Limit(_))), "{unknown:?}");
    }

    #[test]
    fn pairs_have_networks_of_their_own() {
        let [(ours, _), (theirs, _)] = addresses(3);
        assert_eq!((ours.octets()[..3] == theirs.octets()[..3], ours == theirs), (true, false));
        assert_ne!(addresses(2)[0], addresses(3)[0]);
    }
}
