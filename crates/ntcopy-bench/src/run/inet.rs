//! Connected pairs of sockets.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ntcopy_record::units::Bytes;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, SocketFlags, SocketType, acceptfrom_with, bind, connect, getsockname,
    ipproto, listen, socket_with, sockopt,
};

use super::Failure;
use crate::experiment::{DATAGRAM_BYTES, Family};

/// What an skb of a whole datagram is booked with, at most: its payload, the
/// rest of the pages that hold it, and its own part.
const BOOKED_BYTES: u64 = DATAGRAM_BYTES + (8 << 10);
const SLACK_BYTES: u64 = 256 << 10;
/// Strangers that may wait beside the one that is accepted.
const BACKLOG: i32 = 16;
/// IPv6 takes a moment until an address of a new device can be used.
const SETTLING: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_millis(10);
/// What a packet of QUIC carries in an Ethernet frame over IPv6.
const SEGMENT_BYTES: libc::c_int = 1452;

/// What the receive buffer is asked for, so that all of an object lies in it
/// before the reader looks; the kernel doubles the number.
pub fn rcvbuf_bytes(family: Family, object_bytes: u64) -> u64 {
    if family.is_datagram() {
        object_bytes.div_ceil(DATAGRAM_BYTES) * BOOKED_BYTES + SLACK_BYTES
    } else {
        // Half of a TCP receive buffer is window, before the kernel knows better.
        2 * object_bytes + SLACK_BYTES
    }
}

/// Makes a connected pair over the loopback: the sender's end and the reader's.
pub fn pair(family: Family, object_bytes: u64) -> Result<(OwnedFd, OwnedFd), Failure> {
    let sockets = [open(family)?, open(family)?];
    let rcvbuf = rcvbuf_bytes(family, object_bytes);
    join(family, sockets, [loopback(family); 2], Some(rcvbuf))
}

/// The same with the buffers that the system gives; unix too.
pub fn local_pair(family: Family) -> Result<(OwnedFd, OwnedFd), Failure> {
    if family == Family::Unix {
        let pair = UnixStream::pair().map_err(Failure::io("cannot make a socket pair"))?;
        return Ok((pair.0.into(), pair.1.into()));
    }
    join(family, [open(family)?, open(family)?], [loopback(family); 2], None)
}

/// Connects the first socket to the second, at their addresses; `rcvbuf` is what the second one's
/// receive buffer is asked for.
pub fn join(
    family: Family,
    [ours, theirs]: [OwnedFd; 2],
    [our_address, their_address]: [IpAddr; 2],
    rcvbuf: Option<u64>,
) -> Result<(OwnedFd, OwnedFd), Failure> {
    if let Some(bytes) = rcvbuf {
        // The window's scale is settled when the connection is made.
        size_receive_buffer(&theirs, bytes)?;
    }
    bind_to(&theirs, their_address)?;
    if family.is_datagram() {
        bind_to(&ours, our_address)?;
        // Each only hears the other.
        connect_to(&ours, &theirs)?;
        connect_to(&theirs, &ours)?;
        for end in [&ours, &theirs] {
            set_up_datagrams(end, family)
                .map_err(Failure::io(format!("cannot set a socket's option for {family}")))?;
        }
        return Ok((ours, theirs));
    }
    listen(&theirs, BACKLOG).map_err(Failure::os("cannot listen"))?;
    connect_to(&ours, &theirs)?;
    let ourselves = address(&ours)?;
    let accepted = loop {
        // Over the loopback anybody could come.
        let (accepted, peer) = acceptfrom_with(&theirs, SocketFlags::CLOEXEC)
            .map_err(Failure::os("cannot accept a connection"))?;
        if peer.and_then(|peer| SocketAddr::try_from(peer).ok()) == Some(ourselves) {
            break accepted;
        }
    };
    // The last, short segment would wait for the one before it to be acknowledged.
    for end in [&ours, &accepted] {
        sockopt::set_tcp_nodelay(end, true).map_err(Failure::os("cannot set TCP_NODELAY"))?;
    }
    Ok((ours, accepted))
}

/// Sets the receive buffer and makes sure that the kernel took the whole number.
fn size_receive_buffer(socket: impl AsFd, bytes: u64) -> Result<(), Failure> {
    let fd = socket.as_fd();
    let asked = usize::try_from(bytes).unwrap_or(usize::MAX);
    sockopt::set_socket_recv_buffer_size_force(fd, asked)
        // Without CAP_NET_ADMIN; then net.core.rmem_max bounds it, without a word.
        .or_else(|_| sockopt::set_socket_recv_buffer_size(fd, asked))
        .map_err(Failure::os("cannot set SO_RCVBUF"))?;
    let got = sockopt::socket_recv_buffer_size(fd).map_err(Failure::os("cannot ask SO_RCVBUF"))?;
    if (got as u64) / 2 < bytes {
        return Err(Failure::Limit(format!(
            "a receive buffer of {} is not to be had: net.core.rmem_max allows {}; run as root, \
             set `sysctl -w net.core.rmem_max={bytes}`, or use a smaller --object",
            Bytes(bytes),
            Bytes(got as u64 / 2)
        )));
    }
    Ok(())
}

/// What a family's datagram sockets are told beside their addresses.
fn set_up_datagrams(socket: impl AsFd, family: Family) -> io::Result<()> {
    /// The number is that of linux/udp.h.
    const UDPLITE_SEND_CSCOV: libc::c_int = 10;
    let options: &[(libc::c_int, libc::c_int, libc::c_int)] = match family {
        // A reader that takes segments together gets each send as it was.
        Family::UdpGso => {
            &[(libc::SOL_UDP, libc::UDP_SEGMENT, SEGMENT_BYTES), (libc::SOL_UDP, libc::UDP_GRO, 1)]
        }
        // It sums up what its checksum covers while it is in the sender's cache, by default all of
        // it; who uses the protocol lets it cover the header's 8 bytes alone.
        Family::Udplite => &[(libc::IPPROTO_UDPLITE, UDPLITE_SEND_CSCOV, 8)],
        _ => &[],
    };
    options.iter().try_for_each(|(level, name, value)| set(socket.as_fd(), *level, *name, *value))
}

fn set(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let (value, bytes) = (&raw const value, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the pointer and the length describe the argument `value`, which outlives the call; the
    // descriptor is borrowed.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.cast(), bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn bind_to(socket: &OwnedFd, address: IpAddr) -> Result<(), Failure> {
    settled(|| bind(socket, &SocketAddr::from((address, 0))))
        .map_err(Failure::os(format!("cannot bind to {address}")))
}

fn connect_to(from: &OwnedFd, to: &OwnedFd) -> Result<(), Failure> {
    let address = address(to)?;
    settled(|| connect(from, &address))
        .map_err(Failure::os(format!("cannot connect to {address} (is the device up?)")))
}

fn address(socket: &OwnedFd) -> Result<SocketAddr, Failure> {
    let address = getsockname(socket).and_then(SocketAddr::try_from);
    address.map_err(Failure::os("cannot ask for an address"))
}

/// Tries again for a while where an address or a route is not ready yet.
fn settled(make: impl Fn() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    let begun = Instant::now();
    loop {
        match make() {
            Err(Errno::ADDRNOTAVAIL | Errno::NETUNREACH | Errno::HOSTUNREACH)
                if begun.elapsed() < SETTLING =>
            {
                std::thread::sleep(MOMENT);
            }
            result => return result,
        }
    }
}

pub fn open(family: Family) -> Result<OwnedFd, Failure> {
    let (domain, kind, protocol) = kind(family);
    socket_with(domain, kind, SocketFlags::CLOEXEC, protocol)
        .map_err(Failure::os(format!("cannot make a socket of family {family}")))
}

fn kind(family: Family) -> (AddressFamily, SocketType, Option<Protocol>) {
    let domain = if is_ipv6(family) { AddressFamily::INET6 } else { AddressFamily::INET };
    let kind = if family.is_datagram() { SocketType::DGRAM } else { SocketType::STREAM };
    (domain, kind, (family == Family::Udplite).then_some(ipproto::UDPLITE))
}

pub fn loopback(family: Family) -> IpAddr {
    match is_ipv6(family) {
        true => Ipv6Addr::LOCALHOST.into(),
        false => Ipv4Addr::LOCALHOST.into(),
    }
}

pub fn is_ipv6(family: Family) -> bool {
    matches!(family, Family::Tcp6 | Family::Udp6)
}

/// Why this kernel does not do the family; none if it does.
pub fn unavailable(family: Family) -> Result<Option<String>, Failure> {
    if family == Family::Unix {
        return Ok(None);
    }
    let (domain, kind, protocol) = kind(family);
    let why = match socket_with(domain, kind, SocketFlags::CLOEXEC, protocol) {
        Err(Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::SOCKTNOSUPPORT) => {
            format!("this kernel has no {family} sockets")
        }
        Err(errno) => return Err(Failure::os(format!("cannot ask for {family} sockets"))(errno)),
        Ok(socket) => match bind(socket.as_fd(), &SocketAddr::from((loopback(family), 0))) {
            Ok(()) => return Ok(None),
            Err(errno) => format!("the loopback of {family} is not to be had: {errno}"),
        },
    };
    Ok(Some(why))
}

#[cfg(test)]
mod tests {
    use rustix::net::{RecvFlags, SendFlags, recv, send};

    use super::*;

    #[test]
    fn what_goes_in_at_one_end_comes_out_at_the_other() {
        for family in Family::ALL.iter().copied().filter(|family| *family != Family::Unix) {
            if unavailable(family).unwrap().is_some() {
                continue;
            }
            let (ours, theirs) = pair(family, 100_000).unwrap();
            assert_eq!(send(&ours, b"abc", SendFlags::empty()), Ok(3), "{family}");
            let mut got = [0; 8];
            let (bytes, _) = recv(&theirs, &mut got, RecvFlags::empty()).unwrap();
            assert_eq!(&got[..bytes], b"abc", "{family}");
        }
    }

    #[test]
    fn a_send_that_is_cut_into_segments_comes_out_whole() {
        let (ours, theirs) = pair(Family::UdpGso, 100_000).unwrap();
        let sent: Vec<u8> = (0..40_000_u32).map(|byte| byte as u8).collect();
        assert_eq!(send(&ours, &sent, SendFlags::empty()), Ok(sent.len()));
        let mut got = vec![0; sent.len() + 1];
        let (bytes, _) = recv(&theirs, &mut got[..], RecvFlags::empty()).unwrap();
        assert_eq!(got[..bytes], sent);
    }

    #[test]
    fn udp_is_there_wherever_tests_run() {
        assert_eq!(unavailable(Family::Udp).unwrap(), None);
    }
}
