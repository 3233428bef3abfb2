//! The kernel's socket diagnostics, over netlink.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{
    AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP, TCP_CLOSE, TCP_LISTEN, TCP_TIME_WAIT,
};
use netlink_packet_sock_diag::inet::nlas::Nla as InetNla;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags as InetStates,
};
use netlink_packet_sock_diag::unix::nlas::Nla as UnixNla;
use netlink_packet_sock_diag::unix::{
    ShowFlags, StateFlags as UnixStates, UnixRequest, UnixResponse,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sockets::{Buffer, Inet, Protocol, Sockets, TcpTotals, Unix};

/// No part of an answer is larger.
const ANSWER_BYTES: usize = 64 << 10;
/// `SOCK_DGRAM`.
const DATAGRAM: u8 = 2;
/// Where `struct tcp_info` has these, and up to where it has to reach for the last of them.
const ACKNOWLEDGED_AT: usize = 120;
const RECEIVED_AT: usize = 128;
const SENT_AT: usize = 200;

const INET: [(&str, u8, u8); 4] = [
    ("TCP over IPv4", AF_INET, IPPROTO_TCP),
    ("TCP over IPv6", AF_INET6, IPPROTO_TCP),
    ("UDP over IPv4", AF_INET, IPPROTO_UDP),
    ("UDP over IPv6", AF_INET6, IPPROTO_UDP),
];

/// A netlink socket; it is of the namespace that it was opened in.
pub struct Diagnostics {
    socket: OwnedFd,
    answer: Vec<u8>,
}

impl Diagnostics {
    /// Of this process's own network namespace.
    pub fn here() -> io::Result<Diagnostics> {
        let family = AddressFamily::NETLINK;
        let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
        Ok(Diagnostics { socket, answer: vec![0; ANSWER_BYTES] })
    }

    /// Of another namespace, which a thread enters that ends right away.
    pub fn of(namespace: &File) -> io::Result<Diagnostics> {
        let open = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Diagnostics::here()
        };
        thread::scope(|scope| scope.spawn(open).join())
            .unwrap_or_else(|_| Err(io::Error::other("the thread that entered it died")))
    }

    /// Every socket of the namespace but those that listen.
    pub fn sockets(&mut self) -> io::Result<Sockets> {
        let mut sockets = Sockets::default();
        let unix = SockDiagMessage::UnixRequest(UnixRequest {
            // Datagram sockets are in a state for which the crate has no name.
            state_flags: UnixStates::from_bits_retain(!(1 << TCP_LISTEN)),
            inode: 0,
            show_flags: ShowFlags::PEER | ShowFlags::RQLEN | ShowFlags::MEMINFO,
            cookie: [0xff; 8],
        });
        let mut missing = Vec::new();
        let there = self.ask(unix, |message| {
            if let SockDiagMessage::UnixResponse(response) = message {
                sockets.add_unix(response.header.inode, unix_of(&response));
            }
        })?;
        if !there {
            missing.push("unix sockets");
        }
        for (name, family, protocol) in INET {
            let there = self.ask(inet_request(family, protocol), |message| {
                if let SockDiagMessage::InetResponse(response) = message {
                    sockets.add_inet(inet_of(&response, protocol));
                }
            })?;
            if !there {
                missing.push(name);
            }
        }
        sockets.missing = missing;
        Ok(sockets)
    }

    /// Asks for a list and hands over each entry; whether this kernel can tell.
    fn ask(
        &mut self,
        request: SockDiagMessage,
        mut each: impl FnMut(SockDiagMessage),
    ) -> io::Result<bool> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        retry_on_intr(|| send(&self.socket, &bytes, SendFlags::empty()))?;
        loop {
            let (_, got) =
                retry_on_intr(|| recv(&self.socket, &mut self.answer[..], RecvFlags::TRUNC))?;
            let mut rest = self.answer.get(..got).ok_or_else(|| bad("it is too long"))?;
            while !rest.is_empty() {
                let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                    .map_err(|error| bad(&error.to_string()))?;
                let len = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(len..).unwrap_or_default();
                match message.payload {
                    NetlinkPayload::InnerMessage(entry) => each(entry),
                    NetlinkPayload::Done(_) => return Ok(true),
                    NetlinkPayload::Error(error) => {
                        let errno = Errno::from_raw_os_error(error.raw_code().abs());
                        let is_missing = [Errno::NOENT, Errno::PROTONOSUPPORT, Errno::INVAL];
                        return if is_missing.contains(&errno) {
                            Ok(false)
                        } else {
                            Err(errno.into())
                        };
                    }
                    _ => {}
                }
            }
        }
    }
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the kernel's answer: {why}"))
}

fn inet_request(family: u8, protocol: u8) -> SockDiagMessage {
    // UDP sockets that are not connected are "closed"; TCP's have nothing in flight then.
    let without = if protocol == IPPROTO_TCP {
        (1 << TCP_LISTEN) | (1 << TCP_CLOSE) | (1 << TCP_TIME_WAIT)
    } else {
        0
    };
    let (socket_id, extensions) = (
        if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() },
        if protocol == IPPROTO_TCP {
            ExtensionFlags::INFO | ExtensionFlags::SKMEMINFO
        } else {
            ExtensionFlags::empty()
        },
    );
    SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol,
        extensions,
        states: InetStates::from_bits_retain(!without),
        socket_id,
    })
}

fn unix_of(response: &UnixResponse) -> Unix {
    let (mut peer, mut queues, mut room) = (None, (0, 0), None);
    for nla in &response.nlas {
        match nla {
            UnixNla::Peer(inode) if *inode != 0 => peer = Some(*inode),
            UnixNla::ReceiveQueueLength(unread, sent) => queues = (*unread, *sent),
            // The crate's name for sk_sndbuf, which bounds a stream as well.
            UnixNla::MemInfo(memory) => room = Some(memory.max_datagram_size),
            _ => {}
        }
    }
    Unix {
        is_datagram: response.header.kind == DATAGRAM,
        peer,
        unread_bytes: queues.0.into(),
        sent_memory_bytes: queues.1.into(),
        buffer: room.map(|room| buffer(queues.1, room)),
    }
}

fn buffer(used: u32, all: u32) -> Buffer {
    Buffer { used_bytes: used.into(), bytes: all.into() }
}

fn inet_of(response: &InetResponse, protocol: u8) -> Inet {
    let header = &response.header;
    let id = &header.socket_id;
    let tcp = response.nlas.iter().find_map(|nla| match nla {
        InetNla::TcpInfo(info) => totals(info),
        _ => None,
    });
    let buffer = response.nlas.iter().find_map(|nla| match nla {
        InetNla::MemInfo(memory) => Some(buffer(memory.send_queue, memory.send_queue_max)),
        _ => None,
    });
    // An IPv6 socket may be one end of a connection whose other end is an IPv4 one.
    let address = |ip: IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
    Inet {
        inode: header.inode,
        protocol: if protocol == IPPROTO_TCP { Protocol::Tcp } else { Protocol::Udp },
        local: address(id.source_address, id.source_port),
        remote: address(id.destination_address, id.destination_port),
        unread_bytes: header.recv_queue.into(),
        queued_bytes: header.send_queue.into(),
        tcp,
        buffer,
    }
}

/// None of a kernel whose `struct tcp_info` ends before (Linux 4.19 has all three).
fn totals(info: &[u8]) -> Option<TcpTotals> {
    let number = |at: usize| info.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    Some(TcpTotals {
        sent_bytes: number(SENT_AT)?,
        acknowledged_bytes: number(ACKNOWLEDGED_AT)?,
        received_bytes: number(RECEIVED_AT)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn inode(socket: impl AsFd) -> u32 {
        u32::try_from(rustix::fs::fstat(socket).unwrap().st_ino).unwrap()
    }

    #[test]
    fn bytes_that_nobody_read_are_told_to_the_byte() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&[1; 100_000]).unwrap();
        let listener = TcpListener::bind("[::]:0").unwrap();
        // IPv4 to a socket that takes both: the two ends are of two families.
        let to = ("127.0.0.1", listener.local_addr().unwrap().port());
        let mut tcp = TcpStream::connect(to).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        tcp.write_all(&[1; 50_000]).unwrap();
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.connect(receiver.local_addr().unwrap()).unwrap();
        udp.send(&[1; 9000]).unwrap();

        let sockets = Diagnostics::here().unwrap().sockets().unwrap();
        assert_eq!(sockets.missing, [""; 0]);
        let found = sockets.unix(inode(&ours)).unwrap();
        assert_eq!(found.peer, Some(inode(&theirs)));
        assert!(found.sent_memory_bytes >= 100_000, "{found:?}");
        let buffer = found.buffer.unwrap();
        let asked = rustix::net::sockopt::socket_send_buffer_size(&ours).unwrap();
        assert_eq!((buffer.used_bytes, buffer.bytes), (found.sent_memory_bytes, asked as u64));
        assert_eq!(sockets.unix(inode(&theirs)).unwrap().unread_bytes, 100_000);

        let sender = sockets.inet(inode(&tcp)).unwrap();
        let peer = sockets.tcp_peer(sender).unwrap();
        assert_eq!((peer.inode, peer.unread_bytes), (inode(&accepted), 50_000));
        assert_eq!(sender.tcp.unwrap().sent_bytes, 50_000);
        let asked = rustix::net::sockopt::socket_send_buffer_size(&tcp).unwrap();
        assert_eq!(sender.buffer.unwrap().bytes, asked as u64);
        assert_eq!(peer.tcp.unwrap().received_bytes, 50_000);

        let sender = sockets.inet(inode(&udp)).unwrap();
        let (_, found) = sockets.udp_receiver(sender).unwrap();
        assert_eq!(found.inode, inode(&receiver));
        assert!(found.unread_bytes >= 9000, "{found:?}");
    }

    #[test]
    fn a_short_tcp_info_has_no_totals() {
        assert_eq!(totals(&[0; 207]), None);
        let mut info = [0; 240];
        info[SENT_AT] = 7;
        info[RECEIVED_AT] = 5;
        info[ACKNOWLEDGED_AT] = 3;
        let all = TcpTotals { sent_bytes: 7, acknowledged_bytes: 3, received_bytes: 5 };
        assert_eq!(totals(&info), Some(all));
    }
}
