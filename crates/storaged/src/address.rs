//! Addresses to listen on.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Address {
    Unix(PathBuf),
    /// A TCP port; 0: any that is free.
    Tcp(SocketAddr),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address: expected unix:/PATH or tcp:ADDRESS:PORT")]
pub struct BadAddress(String);

impl FromStr for Address {
    type Err = BadAddress;

    /// `unix:/PATH`, `tcp:ADDRESS:PORT`, or `ADDRESS:PORT`.
    fn from_str(text: &str) -> Result<Address, BadAddress> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Address::Unix(path.into())),
            Some(_) => Err(BadAddress(text.to_owned())),
            None => {
                let address = text.strip_prefix("tcp:").unwrap_or(text);
                address.parse().map(Address::Tcp).map_err(|_| BadAddress(text.to_owned()))
            }
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
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_printed() {
        for text in ["unix:/run/a b", "tcp:127.0.0.1:80", "tcp:[::1]:0"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("127.0.0.1:9".parse::<Address>().unwrap().to_string(), "tcp:127.0.0.1:9");
        for bad in ["", "unix:", "unix:a", "tcp:host:80", "tcp:127.0.0.1", "udp:127.0.0.1:1"] {
            assert!(bad.parse::<Address>().is_err(), "{bad:?}");
        }
    }
}
