//! The sockets of a network namespace, and who is connected to whom.

use std::collections::HashMap;
use std::net::SocketAddr;

/// A socket's number in `/proc/PID/fd`.
pub type Inode = u32;

/// A socket's send buffer, in memory: bytes and their administration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Buffer {
    pub used_bytes: u64,
    pub bytes: u64,
}

impl Buffer {
    /// Whether a sender finds next to no room in it: what is freed comes in pieces.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.used_bytes * 4 >= self.bytes * 3
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unix {
    /// Whether messages are queued whole, so that diagnostics tell only the first one's length.
    pub is_datagram: bool,
    /// None where it is not connected, or to a socket that nobody has accepted yet.
    pub peer: Option<Inode>,
    pub unread_bytes: u64,
    /// What the kernel holds of its sends: the bytes and their administration.
    pub sent_memory_bytes: u64,
    /// None where the kernel does not tell.
    pub buffer: Option<Buffer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inet {
    /// Zero where nobody has accepted it yet, or everybody has closed it.
    pub inode: Inode,
    pub protocol: Protocol,
    pub local: SocketAddr,
    /// Port zero where it is not connected.
    pub remote: SocketAddr,
    pub unread_bytes: u64,
    /// TCP: sent and not acknowledged, or not sent yet. UDP: memory of datagrams on their way out.
    pub queued_bytes: u64,
    pub tcp: Option<TcpTotals>,
    /// Of TCP; none where the kernel does not tell.
    pub buffer: Option<Buffer>,
}

/// What a connection moved since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpTotals {
    pub sent_bytes: u64,
    pub acknowledged_bytes: u64,
    pub received_bytes: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Sockets {
    unix: HashMap<Inode, Unix>,
    inet: Vec<Inet>,
    inet_of: HashMap<Inode, usize>,
    connected: HashMap<(Protocol, SocketAddr, SocketAddr), usize>,
    /// UDP sockets by their port.
    bound: HashMap<u16, Vec<usize>>,
    /// Families of which this kernel has no diagnostics.
    pub missing: Vec<&'static str>,
}

impl Sockets {
    pub fn add_unix(&mut self, inode: Inode, socket: Unix) {
        self.unix.insert(inode, socket);
    }

    pub fn add_inet(&mut self, socket: Inet) {
        let index = self.inet.len();
        if socket.inode != 0 {
            self.inet_of.insert(socket.inode, index);
        }
        if socket.remote.port() != 0 {
            self.connected.insert((socket.protocol, socket.local, socket.remote), index);
        }
        if socket.protocol == Protocol::Udp {
            self.bound.entry(socket.local.port()).or_default().push(index);
        }
        self.inet.push(socket);
    }

    pub fn inodes(&self) -> impl Iterator<Item = Inode> {
        self.unix.keys().chain(self.inet_of.keys()).copied()
    }

    pub fn unix(&self, inode: Inode) -> Option<&Unix> {
        self.unix.get(&inode)
    }

    pub fn inet(&self, inode: Inode) -> Option<&Inet> {
        self.inet_of.get(&inode).map(|index| &self.inet[*index])
    }

    /// The other end of a TCP connection within this namespace.
    pub fn tcp_peer(&self, socket: &Inet) -> Option<&Inet> {
        let ends = (Protocol::Tcp, socket.remote, socket.local);
        self.connected.get(&ends).map(|index| &self.inet[*index])
    }

    /// Who gets the datagrams of a connected UDP socket, if that is a socket of this namespace.
    pub fn udp_receiver(&self, sender: &Inet) -> Option<(usize, &Inet)> {
        let to = sender.remote;
        let candidates = self.bound.get(&to.port()).filter(|_| to.port() != 0)?;
        let is_for = |receiver: &Inet| {
            let is_here = receiver.local.ip() == to.ip()
                || (receiver.local.ip().is_unspecified()
                    && (to.ip().is_loopback() || to.ip() == sender.local.ip()));
            is_here && (receiver.remote.port() == 0 || receiver.remote == sender.local)
        };
        let found = candidates.iter().map(|index| (*index, &self.inet[*index]));
        // One that is connected to the sender gets them before one that takes everybody's.
        found
            .filter(|(_, receiver)| is_for(receiver))
            .max_by_key(|(_, receiver)| receiver.remote.port() != 0)
    }
}
