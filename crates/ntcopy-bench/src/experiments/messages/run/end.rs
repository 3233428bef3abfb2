//! One end of a connection.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ntcopy::uapi;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::message::Shape;
use crate::run::{Failure, pattern};

/// Whose end it is: says which message it sends, and which it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

pub fn flags(shape: &Shape) -> SendFlags {
    let hint =
        if shape.hint { SendFlags::from_bits_retain(uapi::MSG_NTCOPY) } else { SendFlags::empty() };
    SendFlags::NOSIGNAL | hint
}

/// Which seed the pattern of a connection's requests has; that of its responses is one more.
fn seed(number: u32) -> u64 {
    2 * u64::from(number) + 1
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    Whole,
    Part,
}

/// One end: a message to send, the same each time, and room for the other side's.
///
/// Each connection has memory of its own on either side, as one that puts its messages together
/// has: how much is in use grows with the connections.
pub struct End {
    socket: OwnedFd,
    number: u32,
    side: Side,
    flags: SendFlags,
    datagrams: bool,
    message: Vec<u8>,
    room: Vec<u8>,
    sent: usize,
    got: usize,
}

impl End {
    pub fn new(socket: OwnedFd, number: u32, side: Side, shape: &Shape) -> End {
        let (message_bytes, room_bytes) = match side {
            Side::Client => (shape.request_bytes, shape.response_bytes),
            Side::Server => (shape.response_bytes, shape.request_bytes),
        };
        let mut message = vec![0; message_bytes as usize];
        pattern::fill(seed(number) + u64::from(side == Side::Server), 0, &mut message);
        // Touched, so that no page of it is new when the clock runs.
        let room = vec![1; room_bytes as usize];
        End {
            socket,
            number,
            side,
            flags: flags(shape),
            datagrams: shape.datagrams,
            message,
            room,
            sent: 0,
            got: 0,
        }
    }

    /// Sends the message, as much as the socket takes; true if that is all.
    pub fn begin(&mut self) -> Result<bool, Errno> {
        self.sent = 0;
        self.go_on()
    }

    pub fn go_on(&mut self) -> Result<bool, Errno> {
        let flags = self.flags | SendFlags::DONTWAIT;
        while self.sent < self.message.len() {
            match retry_on_intr(|| send(&self.socket, &self.message[self.sent..], flags)) {
                Ok(bytes) => self.sent += bytes,
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(errno),
            }
        }
        Ok(true)
    }

    pub fn receive(&mut self) -> Result<Got, Errno> {
        let wanted = self.room.len() - self.got;
        // The call says so of a datagram that is longer than it should be.
        let flags = RecvFlags::DONTWAIT
            | if self.datagrams { RecvFlags::TRUNC } else { RecvFlags::empty() };
        let room = &mut self.room[self.got..];
        match retry_on_intr(|| recv(&self.socket, &mut *room, flags)) {
            // The other side has gone.
            Ok((_, 0)) => Err(Errno::CONNRESET),
            Ok((_, bytes)) if bytes == wanted => {
                self.got = 0;
                Ok(Got::Whole)
            }
            Ok(_) if self.datagrams => Err(Errno::MSGSIZE),
            Ok((_, bytes)) => {
                self.got += bytes;
                Ok(Got::Part)
            }
            Err(Errno::AGAIN) => Ok(Got::Part),
            Err(errno) => Err(errno),
        }
    }

    /// Compares every byte of the last message that came whole; `spoil` makes one wrong.
    pub fn compare(&mut self, spoil: bool) -> Result<(), Failure> {
        if spoil && let Some(first) = self.room.first_mut() {
            *first ^= 1;
        }
        let due = seed(self.number) + u64::from(self.side == Side::Client);
        Ok(pattern::compare(due, 0, &self.room).map_err(|wrong| wrong.on(self.number))?)
    }

    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    fn shape(datagrams: bool) -> Shape {
        Shape { datagrams, request_bytes: 3000, response_bytes: 50, hint: false }
    }

    #[test]
    fn a_message_is_whole_when_its_last_byte_is_there() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut client = End::new(ours.into(), 7, Side::Client, &shape(false));
        let mut server = End::new(theirs.into(), 7, Side::Server, &shape(false));
        assert_eq!(server.receive(), Ok(Got::Part), "nothing is there yet");
        assert_eq!(client.begin(), Ok(true));
        assert_eq!(server.receive(), Ok(Got::Whole));
        server.compare(false).unwrap();
        assert_eq!((server.begin(), client.receive()), (Ok(true), Ok(Got::Whole)));
        client.compare(false).unwrap();
        let spoilt = client.compare(true).unwrap_err();
        assert!(spoilt.to_string().starts_with("wrong byte on socket 7, position 0"), "{spoilt}");
        drop(server.into_socket());
        assert_eq!(client.receive(), Err(Errno::CONNRESET));
    }

    #[test]
    fn what_another_connection_sent_is_wrong() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut client = End::new(ours.into(), 1, Side::Client, &shape(false));
        let mut server = End::new(theirs.into(), 2, Side::Server, &shape(false));
        assert_eq!((client.begin(), server.receive()), (Ok(true), Ok(Got::Whole)));
        assert!(matches!(server.compare(false), Err(Failure::WrongByte(_))));
    }

    #[test]
    fn a_datagram_of_another_size_is_an_error() {
        for bytes in [2999, 3001] {
            let (ours, theirs) = UnixDatagram::pair().unwrap();
            let mut server = End::new(theirs.into(), 0, Side::Server, &shape(true));
            ours.send(&vec![0; bytes]).unwrap();
            assert_eq!(server.receive(), Err(Errno::MSGSIZE));
        }
    }
}
