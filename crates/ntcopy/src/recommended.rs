//! From how many bytes on a send is worth a hint, where nothing is measured: the one table that
//! everything reads which sets the option for somebody else.

use ::libc::{
    AF_INET, AF_INET6, AF_UNIX, IPPROTO_MPTCP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE,
    SOCK_CLOEXEC, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_SEQPACKET, SOCK_STREAM, c_int,
};

use crate::socket::Support;

/// Sends into a stream.
pub const STREAM_BYTES: u32 = 256 << 10;
/// The same by the module: its detour costs shorter sends more than the hint brings them.
pub const MODULE_STREAM_BYTES: u32 = 1 << 20;
/// Datagrams and records, which are never as large.
pub const DATAGRAM_BYTES: u32 = 4096;

/// Sends into a stream, by who takes their hints.
pub const fn stream_bytes(by: Support) -> u32 {
    match by {
        Support::Module => MODULE_STREAM_BYTES,
        Support::Kernel | Support::None => STREAM_BYTES,
    }
}

/// Sockets that are hinted alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Family {
    /// On this machine.
    Unix,
    /// TCP and MPTCP, over IPv4 and IPv6.
    Tcp,
    /// UDP and UDP-Lite, over IPv4 and IPv6.
    Udp,
}

impl Family {
    /// `unix`, `tcp` or `udp`.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Unix => "unix",
            Family::Tcp => "tcp",
            Family::Udp => "udp",
        }
    }
}

/// What a number is chosen by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Kind {
    /// The family.
    pub family: Family,
    /// Whether its sends have no borders of their own.
    pub is_stream: bool,
}

impl Kind {
    /// The kind of a socket by what `socket(2)` is given for it; none where no hint is of use.
    pub const fn of(domain: c_int, of_type: c_int, protocol: c_int) -> Option<Kind> {
        let of_type = of_type & !(SOCK_CLOEXEC | SOCK_NONBLOCK);
        let (family, is_stream) = match (domain, of_type, protocol) {
            (AF_UNIX, SOCK_STREAM, _) => (Family::Unix, true),
            (AF_UNIX, SOCK_DGRAM | SOCK_SEQPACKET, _) => (Family::Unix, false),
            (AF_INET | AF_INET6, SOCK_STREAM, 0 | IPPROTO_TCP | IPPROTO_MPTCP) => {
                (Family::Tcp, true)
            }
            (AF_INET | AF_INET6, SOCK_DGRAM, 0 | IPPROTO_UDP | IPPROTO_UDPLITE) => {
                (Family::Udp, false)
            }
            _ => return None,
        };
        Some(Kind { family, is_stream })
    }

    /// From how many bytes on its sends are worth a hint.
    pub const fn bytes(self) -> u32 {
        if self.is_stream { STREAM_BYTES } else { DATAGRAM_BYTES }
    }

    /// The same by the module; none for a kind that it does not take.
    pub const fn module_bytes(self) -> Option<u32> {
        match self {
            Kind { family: Family::Unix, is_stream: true } => Some(MODULE_STREAM_BYTES),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ::libc::{AF_NETLINK, IPPROTO_ICMP, IPPROTO_SCTP, SOCK_RAW};

    use super::*;

    #[test]
    fn the_module_takes_unix_streams_alone() {
        let of = |domain, of_type| Kind::of(domain, of_type, 0).and_then(Kind::module_bytes);
        assert_eq!(of(AF_UNIX, SOCK_STREAM), Some(MODULE_STREAM_BYTES));
        assert_eq!([of(AF_UNIX, SOCK_SEQPACKET), of(AF_INET, SOCK_STREAM)], [None, None]);
    }

    #[test]
    fn each_kind_of_socket_has_its_number() {
        for (domain, of_type, protocol, expected) in [
            (AF_UNIX, SOCK_STREAM, 0, Some((Family::Unix, STREAM_BYTES))),
            (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 1, Some((Family::Unix, STREAM_BYTES))),
            (AF_UNIX, SOCK_DGRAM, 0, Some((Family::Unix, DATAGRAM_BYTES))),
            (AF_UNIX, SOCK_SEQPACKET, 0, Some((Family::Unix, DATAGRAM_BYTES))),
            (AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0, Some((Family::Tcp, STREAM_BYTES))),
            (AF_INET6, SOCK_STREAM, IPPROTO_MPTCP, Some((Family::Tcp, STREAM_BYTES))),
            (AF_INET6, SOCK_DGRAM, IPPROTO_UDP, Some((Family::Udp, DATAGRAM_BYTES))),
            (AF_INET, SOCK_STREAM, IPPROTO_SCTP, None),
            (AF_INET, SOCK_DGRAM, IPPROTO_ICMP, None),
            (AF_INET, SOCK_RAW, IPPROTO_UDP, None),
            (AF_NETLINK, SOCK_DGRAM, 0, None),
        ] {
            let found = Kind::of(domain, of_type, protocol).map(|kind| (kind.family, kind.bytes()));
            assert_eq!(found, expected, "{domain} {of_type} {protocol}");
        }
    }
}
