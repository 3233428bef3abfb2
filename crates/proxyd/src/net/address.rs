//! Where to listen and where the backends are.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// A TCP address or a unix socket's path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(try_from = "String")]
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

impl FromStr for Address {
    type Err = BadAddress;

    /// A host's name is looked up here, once; its first address counts.
    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let bad = |why: &str| BadAddress { text: text.to_owned(), why: why.to_owned() };
        let path = text.strip_prefix("unix:").or(text.starts_with('/').then_some(text));
        if let Some(path) = path {
            // sun_path has 108 bytes, the last of them a NUL.
            return match path.len() {
                0 => Err(bad("the path is empty")),
                1..=107 => Ok(Address::Unix(PathBuf::from(path))),
                _ => Err(bad("a socket's path has at most 107 bytes")),
            };
        }
        let host = text.strip_prefix("tcp:").unwrap_or(text);
        match host.to_socket_addrs().map(|mut found| found.next()) {
            Ok(Some(address)) => Ok(Address::Tcp(address)),
            Ok(None) => Err(bad("the host has no address")),
            Err(error) => Err(bad(&error.to_string())),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = BadAddress;

    fn try_from(text: String) -> Result<Address, BadAddress> {
        text.parse()
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
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("/run/a".parse::<Address>().unwrap(), Address::Unix("/run/a".into()));
        assert_eq!("127.0.0.1:1".parse::<Address>().unwrap().to_string(), "tcp:127.0.0.1:1");
    }

    #[test]
    fn what_is_no_address_is_named() {
        let long = format!("unix:{}", "a".repeat(108));
        for text in ["", "unix:", "127.0.0.1", "127.0.0.1:99999", &long] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} is not an address")), "{error}");
        }
    }
}
