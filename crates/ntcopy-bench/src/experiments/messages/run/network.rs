//! What is between client and server.

use std::os::fd::OwnedFd;

use super::super::NetMode;
use super::super::plan::Between;
use super::netns::Namespaces;
use crate::experiment::Family;
use crate::run::{Failure, inet};

pub enum Network {
    /// The loopback of this process's namespace, and unix sockets.
    Loopback,
    /// Client and server in a namespace each.
    Veth(Namespaces),
}

impl Network {
    /// Makes what is between, for messages of these families in each of these modes. This thread
    /// may be in another network namespace afterwards.
    pub fn make(
        between: Between,
        families: &[Family],
        modes: &[NetMode],
    ) -> Result<Network, Failure> {
        let Between::Veth { mtu_bytes } = between else { return Ok(Network::Loopback) };
        let namespaces = Namespaces::make()?;
        let wants_ipv6 = families.iter().any(|family| inet::is_ipv6(*family));
        for (number, mode) in (0..).zip(modes) {
            namespaces.join(number, mtu_bytes, wants_ipv6)?;
            if *mode == NetMode::Nocache {
                namespaces.set_nocache(number, true)?;
            }
        }
        Ok(Network::Veth(namespaces))
    }

    /// Does something on the server's side: what is made or started meanwhile is there.
    pub fn at_server<T>(&self, what: impl FnOnce() -> T) -> Result<T, Failure> {
        match self {
            Network::Loopback => Ok(what()),
            Network::Veth(namespaces) => namespaces.at_server(what),
        }
    }

    /// An error if the devices of a mode are not as the mode says.
    pub fn is_as(&self, number: u8, mode: NetMode) -> Result<(), Failure> {
        let Network::Veth(namespaces) = self else { return Ok(()) };
        namespaces.check_nocache(number, mode == NetMode::Nocache, mode)
    }

    pub(super) fn is_apart(&self) -> bool {
        matches!(self, Network::Veth(_))
    }

    /// A new connection over the devices of that number: the client's end and the server's.
    pub fn pair(&self, number: u8, family: Family) -> Result<(OwnedFd, OwnedFd), Failure> {
        let namespaces = match self {
            Network::Veth(namespaces) if family != Family::Unix => namespaces,
            _ => return inet::local_pair(family),
        };
        let sockets = [inet::open(family)?, self.at_server(|| inet::open(family))??];
        let addresses = namespaces.addresses(number, inet::is_ipv6(family));
        inet::join(family, sockets, addresses, None)
    }
}
