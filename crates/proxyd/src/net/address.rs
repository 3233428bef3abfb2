//! Where to listen and where the backends are.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// A TCP address or a unix socket's path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// `tcp:HOST:PORT`, or without `tcp:`.
    Tcp(SocketAddr),
    /// `unix:PATH`, or a path that begins with `/`.
    Unix(PathBuf),
}

/// Why a text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address ({why}); write tcp:HOST:PORT or unix:PATH")]
pub struct BadAddress {
    text: String,
    why: String,
}

/// A unix socket's path, or every address that a host's name stands for. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Place(Vec<Address>);

impl Place {
    /// These addresses of one backend; `None` without any.
    pub fn new(addresses: Vec<Address>) -> Option<Place> {
        (!addresses.is_empty()).then_some(Place(addresses))
    }

    pub fn addresses(&self) -> &[Address] {
        &self.0
    }
}

impl From<Address> for Place {
    fn from(address: Address) -> Place {
        Place(vec![address])
    }
}

impl FromStr for Place {
    type Err = BadAddress;

    /// A host's name is looked up here, once.
    fn from_str(text: &str) -> Result<Place, BadAddress> {
        let bad = |why: &str| BadAddress { text: text.to_owned(), why: why.to_owned() };
        let path = text.strip_prefix("unix:").or(text.starts_with('/').then_some(text));
        if let Some(path) = path {
            // sun_path has 108 bytes, the last of them a NUL.
            return match path.len() {
                0 => Err(bad("the path is empty")),
                1..=107 => Ok(Address::Unix(PathBuf::from(path)).into()),
                _ => Err(bad("a socket's path has at most 107 bytes")),
            };
        }
        let host = text.strip_prefix("tcp:").unwrap_or(text);
        let found = host.to_socket_addrs().map_err(|error| bad(&error.to_string()))?;
        let mut all = Vec::new();
        for address in found.map(Address::Tcp) {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        Place::new(all).ok_or_else(|| bad("the host has no address"))
    }
}

impl TryFrom<String> for Place {
    type Error = BadAddress;

    fn try_from(text: String) -> Result<Place, BadAddress> {
        text.parse()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.0.iter().enumerate() {
            write!(f, "{}{address}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "tcp:{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Who counts as one client: an address, or the half of one that a site has to itself.
pub(crate) fn origin(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_as_it_prints() {
        for text in ["tcp:127.0.0.1:80", "tcp:[::1]:8080", "unix:/run/a.sock", "unix:relative"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        assert_eq!("/run/a".parse::<Place>().unwrap(), Address::Unix("/run/a".into()).into());
        assert_eq!("127.0.0.1:1".parse::<Place>().unwrap().to_string(), "tcp:127.0.0.1:1");
    }

    #[test]
    fn a_place_is_every_address_of_its_name() {
        let place: Place = "tcp:localhost:81".parse().unwrap();
        let found: Vec<_> = "localhost:81".to_socket_addrs().unwrap().map(Address::Tcp).collect();
        assert!(found.iter().all(|address| place.addresses().contains(address)), "{place}");
        let both = vec![Address::Unix("/a".into()), Address::Tcp(([127, 0, 0, 1], 1).into())];
        assert_eq!(Place::new(both).unwrap().to_string(), "unix:/a, tcp:127.0.0.1:1");
        assert_eq!(Place::new(Vec::new()), None);
    }

    #[test]
    fn what_is_no_address_is_named() {
        let long = format!("unix:{}", "a".repeat(108));
        for text in ["", "unix:", "127.0.0.1", "127.0.0.1:99999", &long] {
            let error = text.parse::<Place>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} is not an address")), "{error}");
        }
    }
}
