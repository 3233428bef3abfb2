//! What is asked of a network namespace over rtnetlink.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily as Family, RouteNetlinkMessage};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::run::Failure;

/// Larger than any answer to one request.
const ANSWER_BYTES: usize = 8192;

/// A socket of the namespace that it was opened in.
pub struct Route(OwnedFd);

impl Route {
    pub fn open() -> Result<Route, Failure> {
        // NETLINK_ROUTE is the protocol of that number zero, which is none.
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .map(Route)
            .map_err(Failure::os("cannot make a netlink socket"))
    }

    /// A pair of devices of that name, one here, one in the other namespace.
    pub fn add_pair(&self, name: &str, mtu_bytes: u32, other: BorrowedFd<'_>) -> Result<(), Errno> {
        let common = || vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::Mtu(mtu_bytes)];
        let mut peer = LinkMessage::default();
        peer.attributes = common();
        peer.attributes.push(LinkAttribute::NetNsFd(other.as_raw_fd()));
        let mut link = LinkMessage::default();
        link.attributes = common();
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.ask(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    pub fn up(&self, index: u32) -> Result<(), Errno> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::NewLink(link), 0)
    }

    /// Gives a device an address. No other device can have it, so IPv6 is not made to ask around.
    pub fn add_address(&self, index: u32, address: IpAddr, prefix_len: u8) -> Result<(), Errno> {
        let mut message = AddressMessage::default();
        message.header.family = if address.is_ipv6() { Family::Inet6 } else { Family::Inet };
        message.header.prefix_len = prefix_len;
        message.header.index = index;
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a request and waits for the answer, which says whether it was carried out.
    fn ask(&self, request: RouteNetlinkMessage, flags: u16) -> Result<(), Errno> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        message.header.sequence_number = 1;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        retry_on_intr(|| send(&self.0, &bytes, SendFlags::empty()))?;
        let mut answer = [0; ANSWER_BYTES];
        let (_, got) = retry_on_intr(|| recv(&self.0, &mut answer[..], RecvFlags::empty()))?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..got]);
        match answer.map_err(|_| Errno::BADMSG)?.payload {
            NetlinkPayload::Error(error) => match error.raw_code() {
                0 => Ok(()),
                code => Err(Errno::from_raw_os_error(code.abs())),
            },
            _ => Err(Errno::BADMSG),
        }
    }
}
