//! The address families that the bytes can go through.

/// Payload of one datagram: of the round sizes the largest that crosses the
/// loopback interface, whose packets hold 64 KiB with their headers, unfragmented.
pub const DATAGRAM_BYTES: u64 = 32 << 10;

/// The largest payload of a datagram over IPv4 in bytes: 65,535 less both headers.
pub const LARGEST_DATAGRAM_BYTES: u64 = 65_507;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    Unix,
    Tcp,
    Tcp6,
    Udp,
    Udp6,
    /// UDP over IPv4's loopback, cut into packets by the network stack, as QUIC's senders have it.
    UdpGso,
    /// UDP-Lite over IPv4's loopback; Linux 7.3 no longer has it.
    Udplite,
}

words!(
    Family,
    Unix = "unix",
    Tcp = "tcp",
    Tcp6 = "tcp6",
    Udp = "udp",
    Udp6 = "udp6",
    UdpGso = "udp-gso",
    Udplite = "udplite"
);

impl Family {
    /// Whether an object travels as datagrams of [`DATAGRAM_BYTES`], the last one shorter.
    pub fn is_datagram(self) -> bool {
        matches!(self, Family::Udp | Family::Udp6 | Family::UdpGso | Family::Udplite)
    }
}
