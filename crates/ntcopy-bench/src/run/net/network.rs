//! What is between client and server.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::experiment::{Family, NetMode};
use crate::plan::messages::Between;
use crate::run::netns::Namespaces;
use crate::run::{Failure, inet};

/// IPv6 takes a moment until an address of a new device can be used.
const SETTLING: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(10);

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
        let wants_ipv6 = families.iter().any(|family| is_ipv6(*family));
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
        if family == Family::Unix {
            let (ours, theirs) = UnixStream::pair().map_err(failed(family))?;
            return Ok((ours.into(), theirs.into()));
        }
        let [client, server]: [IpAddr; 2] = match self {
            Network::Loopback if is_ipv6(family) => [Ipv6Addr::LOCALHOST.into(); 2],
            Network::Loopback => [Ipv4Addr::LOCALHOST.into(); 2],
            Network::Veth(namespaces) => namespaces.addresses(number, is_ipv6(family)),
        };
        if family.is_datagram() {
            let (ours, theirs) = self.datagrams(client, server).map_err(failed(family))?;
            for end in [&ours, &theirs] {
                inet::set_up_datagrams(end, family).map_err(failed(family))?;
            }
            Ok((ours, theirs))
        } else {
            self.stream(server).map_err(failed(family))
        }
    }

    fn stream(&self, server: IpAddr) -> io::Result<(OwnedFd, OwnedFd)> {
        let listener = self.there(|| TcpListener::bind((server, 0)))?;
        let address = listener.local_addr()?;
        let ours = settled(|| TcpStream::connect_timeout(&address, SETTLING))?;
        let ourselves = ours.local_addr()?;
        let theirs = loop {
            // Over the loopback anybody could come.
            let (theirs, peer) = listener.accept()?;
            if peer == ourselves {
                break theirs;
            }
        };
        // The end of a message would wait for the beginning to be acknowledged.
        ours.set_nodelay(true)?;
        theirs.set_nodelay(true)?;
        Ok((ours.into(), theirs.into()))
    }

    fn datagrams(&self, client: IpAddr, server: IpAddr) -> io::Result<(OwnedFd, OwnedFd)> {
        let theirs = self.there(|| UdpSocket::bind((server, 0)))?;
        let ours = settled(|| UdpSocket::bind(SocketAddr::from((client, 0))))?;
        // Each only hears the other.
        let (our_address, their_address) = (ours.local_addr()?, theirs.local_addr()?);
        settled(|| ours.connect(their_address))?;
        settled(|| theirs.connect(our_address))?;
        Ok((ours.into(), theirs.into()))
    }

    /// A socket on the server's side.
    fn there<T>(&self, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
        self.at_server(|| settled(&make))
            .map_err(|failure| io::Error::other(failure.to_string()))?
    }
}

fn is_ipv6(family: Family) -> bool {
    matches!(family, Family::Tcp6 | Family::Udp6)
}

fn failed(family: Family) -> impl FnOnce(io::Error) -> Failure {
    Failure::io(format!("cannot connect over {family}"))
}

/// Tries again for a while where an address or a route is not ready yet.
fn settled<T>(make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let begun = Instant::now();
    loop {
        match make() {
            Err(error) if is_early(&error) && begun.elapsed() < SETTLING => {
                std::thread::sleep(MOMENT);
            }
            result => return result,
        }
    }
}

fn is_early(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AddrNotAvailable | ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable
    )
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::net::{RecvFlags, SendFlags, recv, send};

    use super::*;

    #[test]
    fn what_one_end_sends_the_other_gets() {
        for family in [Family::Unix, Family::Tcp, Family::Udp] {
            let (ours, theirs) = Network::Loopback.pair(0, family).unwrap();
            assert_eq!(send(&ours, b"there", SendFlags::empty()), Ok(5), "{family}");
            let mut bytes = [0; 16];
            let (_, got) = recv(theirs.as_fd(), &mut bytes[..], RecvFlags::empty()).unwrap();
            assert_eq!(&bytes[..got], b"there", "{family}");
        }
    }
}
