//! One message there and back, the next when it has come: as `sockperf ping-pong` does it, with
//! calls that wait, one send and one receive on either side.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, getpeername, recv, recvfrom, send, sendto, sockopt};

use super::client::Window;
use super::end::flags;
use super::message::{LAST, Shape};
use crate::run::meter::{Meter, cpu_since};
use crate::run::schedule::{histogram, record, take_answers};
use crate::run::{Failure, Patience, Stop, WrongByte, ns, pattern};

/// Where a message has its number.
const NUMBER_BYTES: usize = 8;
/// The pattern after that.
const SEED: u64 = 1 << 41;

/// Sends everything back until the last message has come; gives how many there were.
pub(super) fn echo(socket: BorrowedFd<'_>, shape: &Shape) -> Result<u64, Failure> {
    let mut ball = Ball::new(socket, shape);
    let mut messages = 0;
    loop {
        receive(socket, &mut ball.bytes, ball.datagrams)
            .map_err(Failure::os("cannot receive a message"))?;
        ball.send(socket).map_err(Failure::os("cannot send it back"))?;
        messages += 1;
        if number(&ball.bytes) == LAST {
            return Ok(messages);
        }
    }
}

/// A message and how it is sent.
struct Ball {
    bytes: Vec<u8>,
    flags: SendFlags,
    datagrams: bool,
    /// Where a datagram goes. The socket knows; but sockperf says it with each send, which costs
    /// the kernel a look at its routes.
    to: Option<SocketAddr>,
}

impl Ball {
    fn new(socket: BorrowedFd<'_>, shape: &Shape) -> Ball {
        let mut bytes = vec![0; shape.request_bytes as usize];
        pattern::fill(SEED, 0, &mut bytes);
        let peer = || getpeername(socket).ok()?.and_then(|peer| SocketAddr::try_from(peer).ok());
        let to = if shape.datagrams { peer() } else { None };
        Ball { bytes, flags: flags(shape), datagrams: shape.datagrams, to }
    }

    fn send(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        if let Some(to) = &self.to {
            return retry_on_intr(|| sendto(socket, &self.bytes, self.flags, to)).map(drop);
        }
        let mut sent = 0;
        while sent < self.bytes.len() {
            sent += retry_on_intr(|| send(socket, &self.bytes[sent..], self.flags))?;
        }
        Ok(())
    }
}

fn number(message: &[u8]) -> u64 {
    let first = message.first_chunk::<NUMBER_BYTES>();
    first.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn receive(socket: BorrowedFd<'_>, room: &mut [u8], datagrams: bool) -> Result<(), Errno> {
    if datagrams {
        // The call says so of a datagram that is longer than it should be. It also says whom the
        // datagram is from, as sockperf asks.
        let came = retry_on_intr(|| recvfrom(socket, &mut *room, RecvFlags::TRUNC))?.1;
        return if came == room.len() { Ok(()) } else { Err(Errno::MSGSIZE) };
    }
    let mut got = 0;
    while got < room.len() {
        match retry_on_intr(|| recv(socket, &mut room[got..], RecvFlags::empty()))?.1 {
            0 => return Err(Errno::CONNRESET),
            bytes => got += bytes,
        }
    }
    Ok(())
}

/// The client's side.
pub struct PingPong {
    socket: OwnedFd,
    ball: Ball,
    room: Vec<u8>,
    next: u64,
    patience: Duration,
    stop: Stop,
}

impl PingPong {
    pub fn new(
        socket: OwnedFd,
        shape: &Shape,
        patience: Patience<'_>,
    ) -> Result<PingPong, Failure> {
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(patience.limit))
            .map_err(Failure::os("cannot set SO_RCVTIMEO"))?;
        let ball = Ball::new(socket.as_fd(), shape);
        let room = vec![1; ball.bytes.len()];
        let Patience { limit: patience, stop } = patience;
        Ok(PingPong { socket, ball, room, next: 0, patience, stop: stop.clone() })
    }

    fn exchange(&mut self, with: u64) -> Result<(), Failure> {
        self.ball.bytes[..NUMBER_BYTES].copy_from_slice(&with.to_le_bytes());
        self.ball.send(self.socket.as_fd()).map_err(Failure::os("cannot send a message"))?;
        receive(self.socket.as_fd(), &mut self.room, self.ball.datagrams).map_err(|errno| {
            match errno {
                Errno::AGAIN => Failure::Answer(format!(
                    "a message did not come back within {} s (a datagram may be lost)",
                    self.patience.as_secs()
                )),
                errno => Failure::os("cannot receive a message")(errno),
            }
        })?;
        match number(&self.room) {
            back if back == with => Ok(()),
            back => Err(Failure::Answer(format!("message {with} went, and {back} came back"))),
        }
    }

    fn go(&mut self) -> Result<(), Failure> {
        self.stop.check()?;
        self.next += 1;
        self.exchange(self.next)
    }

    /// Ends the server's part; gives how many messages came back since it began.
    fn finish(&mut self) -> Result<u64, Failure> {
        self.exchange(LAST)?;
        Ok(std::mem::take(&mut self.next) + 1)
    }

    /// Plays messages, every byte of which is compared when they come back; `spoil` makes one
    /// wrong. Ends the server's part.
    pub fn check(&mut self, messages: u32, spoil: bool) -> Result<u64, Failure> {
        for count in 0..messages {
            self.go()?;
            if spoil && count == 0 {
                self.room[0] ^= 1;
            }
            let pairs = self.ball.bytes.iter().zip(&self.room);
            if let Some(at) = { pairs }.position(|(sent, came)| sent != came) {
                let (socket, position) = (Some(0), at as u64);
                let (expected, got) = (self.ball.bytes[at], self.room[at]);
                return Err(WrongByte { socket, position, expected, got }.into());
            }
        }
        self.finish()
    }

    /// Sends messages one after the other, for the time after a warm-up. Ends the server's part.
    ///
    /// One reading of the clock ends a round trip and begins the next: what lies between is this
    /// loop, some nanoseconds, and a reading is a system call in a booted kernel. Half of each round
    /// trip's time is a latency, as sockperf has it.
    pub fn sample(
        &mut self,
        warm_up: Duration,
        clocked: Duration,
        meter: Meter<'_, 2>,
    ) -> Result<Window, Failure> {
        let mut latencies: Histogram<u64> = histogram()?;
        let begun = Instant::now();
        while begun.elapsed() < warm_up {
            self.go()?;
        }
        let before = meter.start()?;
        let opened = Instant::now();
        let (mut last, mut messages) = (opened, 0);
        loop {
            self.go()?;
            let now = Instant::now();
            record(&mut latencies, ns(now - last) / 2);
            (last, messages) = (now, messages + 1);
            if now - opened >= clocked {
                break;
            }
        }
        let (after, events) = meter.stop()?;
        let elapsed_ns = ns(last - opened);
        let both_ways = 2 * self.ball.bytes.len() as u64;
        Ok(Window {
            bytes: messages * both_ways,
            elapsed_ns,
            cpu: cpu_since(after, before),
            events,
            answered: messages,
            all_bytes: self.finish()? * both_ways,
            answers: Some(take_answers(&latencies, 0)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::thread;

    use super::*;
    use crate::hardware::Hardware;
    use crate::run::meter::Events;

    fn shape(datagrams: bool) -> Shape {
        Shape { datagrams, request_bytes: 5000, response_bytes: 5000, hint: false }
    }

    fn game(datagrams: bool) -> (PingPong, thread::JoinHandle<Result<u64, Failure>>) {
        let (ours, theirs): (OwnedFd, OwnedFd) = if datagrams {
            let (ours, theirs) = UnixDatagram::pair().unwrap();
            (ours.into(), theirs.into())
        } else {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (ours.into(), theirs.into())
        };
        let server = thread::spawn(move || echo(theirs.as_fd(), &shape(datagrams)));
        let patience = Patience { limit: Duration::from_secs(60), stop: &Stop::default() };
        (PingPong::new(ours, &shape(datagrams), patience).unwrap(), server)
    }

    #[test]
    fn every_message_has_a_latency_and_the_server_counts_the_same() {
        for datagrams in [false, true] {
            let (mut client, server) = game(datagrams);
            let meter = Meter::new(&|| Ok([0; 2]));
            let window =
                client.sample(Duration::from_millis(1), Duration::from_millis(5), meter).unwrap();
            assert_eq!(server.join().unwrap(), Ok(window.all_bytes / 10_000));
            let answers = window.answers.unwrap();
            let counted: u64 = answers.latencies.iter().map(|(_, count)| count).sum();
            assert_eq!((counted, 10_000 * counted), (window.answered, window.bytes));
            assert!(window.answered > 0 && window.all_bytes > window.bytes);
            assert!(window.elapsed_ns >= 5_000_000);
        }
    }

    #[test]
    fn what_client_and_server_do_under_the_clock_is_counted() {
        // Before the server is started, as the experiment does it.
        let Some(events) = Hardware::of_kernel().map(Events::new) else {
            println!("not run: perf_event_open is refused, even for the kernel's own events");
            return;
        };
        let (mut client, server) = game(false);
        let cpu = || Ok([0; 2]);
        let meter = Meter::new(&cpu).counting(&events);
        let window = client.sample(Duration::ZERO, Duration::from_millis(5), meter).unwrap();
        assert_eq!(server.join().unwrap(), Ok(window.all_bytes / 10_000));
        assert_eq!(window.events.keys().collect::<Vec<_>>(), ["page-faults", "task-clock"]);
        assert!(window.events["task-clock"] > 0);
    }

    #[test]
    fn a_wrong_byte_is_noticed() {
        let (mut client, server) = game(false);
        assert_eq!(client.check(3, false), Ok(4));
        assert_eq!(server.join().unwrap(), Ok(4));
        let (mut client, _) = game(false);
        assert!(matches!(client.check(3, true), Err(Failure::WrongByte(_))));
    }
}
