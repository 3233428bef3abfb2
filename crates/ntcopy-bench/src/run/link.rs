//! The line between sender and reader: a socket that keeps message boundaries.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair,
    sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most sockets that one message carries; the kernel takes 253.
pub const SOCKETS_A_MESSAGE: usize = 64;
const MESSAGE_BYTES: usize = 4096;

pub fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

pub enum Received<T> {
    Message(T, Vec<OwnedFd>),
    Closed,
    /// Nothing came in time, or a signal did.
    Nothing(Errno),
}

/// How long a receive waits; `None` waits for ever.
pub fn set_patience(fd: BorrowedFd<'_>, patience: Option<Duration>) -> rustix::io::Result<()> {
    sockopt::set_socket_timeout(fd, sockopt::Timeout::Recv, patience)
}

/// A message in the form in which it travels, so that it need not be made anew each time.
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    // Our own enums of integers and strings always have a JSON form.
    serde_json::to_vec(message).unwrap_or_default()
}

pub fn send_encoded(fd: BorrowedFd<'_>, message: &[u8]) -> rustix::io::Result<()> {
    send(fd, message, SendFlags::NOSIGNAL).map(drop)
}

pub fn send_with(
    fd: BorrowedFd<'_>,
    message: &impl Serialize,
    carried: &[BorrowedFd<'_>],
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_A_MESSAGE))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(carried)) {
        return Err(Errno::INVAL);
    }
    let bytes = encode(message);
    sendmsg(fd, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).map(drop)
}

pub fn receive<T: DeserializeOwned>(fd: BorrowedFd<'_>) -> rustix::io::Result<Received<T>> {
    let mut bytes = [0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_A_MESSAGE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = match recvmsg(fd.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        Ok(got) if got.bytes == 0 => return Ok(Received::Closed),
        Ok(got) => got,
        Err(errno @ (Errno::AGAIN | Errno::INTR)) => return Ok(Received::Nothing(errno)),
        Err(Errno::CONNRESET) => return Ok(Received::Closed),
        Err(errno) => return Err(errno),
    };
    let mut carried = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            carried.extend(fds);
        }
    }
    let message = serde_json::from_slice(&bytes[..got.bytes]).map_err(|_| Errno::BADMSG)?;
    Ok(Received::Message(message, carried))
}
