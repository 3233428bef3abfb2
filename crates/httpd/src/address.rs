//! Where to listen and whom to ask.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context as _, ensure};
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

    /// One that needs no looking up.
    fn from_str(text: &str) -> Result<Address, String> {
        match text.parse()? {
            Place::At(mut addresses) => Ok(addresses.swap_remove(0)),
            Place::Name(..) => Err(bad(text, "a name is none")),
        }
    }
}

/// What a text stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    At(Vec<Address>),
    /// A host's name and a port. It may have several addresses, and others later.
    Name(String, u16),
}

impl Place {
    /// Its addresses now, at least one. A name may take a while.
    pub fn look_up(&self) -> anyhow::Result<Vec<Address>> {
        let (host, port) = match self {
            Place::At(addresses) => return Ok(addresses.clone()),
            Place::Name(host, port) => (host.as_str(), *port),
        };
        let found = (host, port).to_socket_addrs();
        let mut all = Vec::new();
        for address in found.with_context(|| format!("{self}"))?.map(Address::Tcp) {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        ensure!(!all.is_empty(), "{self}: the host has no address");
        Ok(all)
    }

    pub fn all(places: &[Place]) -> anyhow::Result<Vec<Address>> {
        let found: Vec<_> = places.iter().map(Place::look_up).collect::<Result<_, _>>()?;
        Ok(found.concat())
    }
}

fn bad(text: &str, why: &str) -> String {
    format!("{text:?} is no address ({why}): expected tcp:HOST:PORT or unix:PATH")
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let path = text.strip_prefix("unix:").or(text.starts_with('/').then_some(text));
        if let Some(path) = path {
            // sun_path has 108 bytes, the last of them a NUL.
            return match path.len() {
                0 => Err(bad(text, "the path is empty")),
                1..=107 => Ok(Place::At(vec![Address::Unix(PathBuf::from(path))])),
                _ => Err(bad(text, "a socket's path has at most 107 bytes")),
            };
        }
        let place = text.strip_prefix("tcp:").unwrap_or(text);
        if let Ok(address) = place.parse() {
            return Ok(Place::At(vec![Address::Tcp(address)]));
        }
        let (host, port) = place.rsplit_once(':').ok_or_else(|| bad(text, "there is no port"))?;
        let port = port.parse().map_err(|_| bad(text, "the port is none"))?;
        let of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if host.is_empty() || !host.bytes().all(of_names) {
            return Err(bad(text, "no host has that name"));
        }
        Ok(Place::Name(host.to_owned(), port))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Name(host, port) => write!(f, "tcp:{host}:{port}"),
            Place::At(addresses) => {
                let all: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                f.write_str(&all.join(", "))
            }
        }
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
    }

    #[test]
    fn a_name_is_looked_up_when_it_is_asked_for() {
        let nobody: Place = "tcp:backend.invalid:80".parse().unwrap();
        assert_eq!(nobody.to_string(), "tcp:backend.invalid:80");
        let error = format!("{:#}", nobody.look_up().unwrap_err());
        assert!(error.starts_with("tcp:backend.invalid:80: "), "{error}");
        assert!("backend.invalid:80".parse::<Address>().is_err());
        // A bare system may not know localhost.
        let all = "tcp:127.1:81".parse::<Place>().unwrap().look_up().unwrap();
        assert_eq!(all, ["127.0.0.1:81".parse().unwrap()]);
    }

    #[test]
    fn what_is_no_address_is_named() {
        let long = format!("unix:{}", "a".repeat(108));
        for text in [
            "",
            "unix:",
            "127.0.0.1",
            "127.0.0.1:99999",
            "tcp:127.0.0.1",
            "tcp::80",
            "http://a:80",
            "a b:80",
            &long,
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.starts_with(&format!("{text:?} is no address")), "{error}");
        }
    }
}
