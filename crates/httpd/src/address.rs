//! Where to listen and whom to ask.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// `tcp:HOST:PORT`, or without `tcp:`.
    Tcp(SocketAddr),
    /// `unix:PATH`, or a path that begins with `/`.
    Unix(PathBuf),
}

impl Address {
    /// A socket of its kind, which does not block.
    pub fn socket(&self) -> Result<OwnedFd, Errno> {
        let family = match self {
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        rustix::net::socket_with(family, SocketType::STREAM, flags, None)
    }
}

impl FromStr for Address {
    type Err = String;

    /// The first address that a host's name has counts.
    fn from_str(text: &str) -> Result<Address, String> {
        Place::from_str(text).map(|mut place| place.0.swap_remove(0))
    }
}

/// Every address that a text stands for, at least one: a host's name, which is looked up here and
/// once, may have several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(pub Vec<Address>);

impl Place {
    pub fn all(places: &[Place]) -> Vec<Address> {
        places.iter().flat_map(|place| place.0.clone()).collect()
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let expected = "expected tcp:HOST:PORT or unix:PATH";
        let bad = |why: &str| format!("{text:?} is no address ({why}): {expected}");
        let path = text.strip_prefix("unix:").or(text.starts_with('/').then_some(text));
        if let Some(path) = path {
            // sun_path has 108 bytes, the last of them a NUL.
            return match path.len() {
                0 => Err(bad("the path is empty")),
                1..=107 => Ok(Place(vec![Address::Unix(PathBuf::from(path))])),
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
        if all.is_empty() { Err(bad("the host has no address")) } else { Ok(Place(all)) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_as_it_prints() {
        for text in ["tcp:127.0.0.1:80", "tcp:[::1]:8080", "unix:/run/a b", "unix:relative"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("/run/a".parse::<Address>().unwrap(), Address::Unix("/run/a".into()));
        assert_eq!("127.0.0.1:1".parse::<Address>().unwrap().to_string(), "tcp:127.0.0.1:1");
        // A bare system may not know localhost.
        let found = "127.1:81".to_socket_addrs().unwrap().map(Address::Tcp);
        let Place(all) = "tcp:127.1:81".parse().unwrap();
        assert!(found.into_iter().all(|address| all.contains(&address)), "{all:?}");
    }

    #[test]
    fn what_is_no_address_is_named() {
        let long = format!("unix:{}", "a".repeat(108));
        for text in ["", "unix:", "127.0.0.1", "127.0.0.1:99999", "tcp:127.0.0.1", &long] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.starts_with(&format!("{text:?} is no address")), "{error}");
        }
    }
}
