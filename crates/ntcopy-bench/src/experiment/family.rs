//! The address families that the bytes can go through.

use std::fmt;
use std::str::FromStr;

/// Payload of one datagram: of the round sizes the largest that crosses the
/// loopback interface, whose packets hold 64 KiB with their headers, unfragmented.
pub const DATAGRAM_BYTES: u64 = 32 << 10;

/// The largest payload of a datagram over IPv4 in bytes: 65,535 less both headers.
pub const LARGEST_DATAGRAM_BYTES: u64 = 65_507;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Unix stream sockets.
    Unix,
    /// TCP over IPv4's loopback.
    Tcp,
    /// TCP over IPv6's loopback.
    Tcp6,
    /// UDP over IPv4's loopback.
    Udp,
    /// UDP over IPv6's loopback.
    Udp6,
    /// UDP over IPv4's loopback, cut into packets by the network stack, as QUIC's senders have it.
    UdpGso,
    /// UDP-Lite over IPv4's loopback; Linux 7.3 no longer has it.
    Udplite,
}

impl Family {
    pub const ALL: [Family; 7] = [
        Family::Unix,
        Family::Tcp,
        Family::Tcp6,
        Family::Udp,
        Family::Udp6,
        Family::UdpGso,
        Family::Udplite,
    ];

    /// The family's name in commands and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Unix => "unix",
            Family::Tcp => "tcp",
            Family::Tcp6 => "tcp6",
            Family::Udp => "udp",
            Family::Udp6 => "udp6",
            Family::UdpGso => "udp-gso",
            Family::Udplite => "udplite",
        }
    }

    /// Whether an object travels as datagrams of [`DATAGRAM_BYTES`], the last one shorter.
    #[must_use]
    pub fn is_datagram(self) -> bool {
        matches!(self, Family::Udp | Family::Udp6 | Family::UdpGso | Family::Udplite)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A family's name that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown family `{0}`: this version has unix, tcp, tcp6, udp, udp6, udp-gso and udplite")]
pub struct UnknownFamily(String);

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Self, UnknownFamily> {
        Family::ALL
            .into_iter()
            .find(|family| family.as_str() == text)
            .ok_or_else(|| UnknownFamily(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_the_error_names_every_family() {
        let text = "inet".parse::<Family>().unwrap_err().to_string();
        for family in Family::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
            assert!(text.contains(family.as_str()), "{text}");
        }
    }
}
