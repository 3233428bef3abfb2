//! The reading process: takes what the sender put into its sockets through a
//! pipe to `/dev/null`, or looks at every byte. Datagrams cannot be spliced; it
//! takes them out without copying them.
//!
//! It is this program started anew, not a fork: a fork would share the data
//! set copy-on-write, so that the sender's pages would fault again while the
//! clock runs, and copying the page tables of hundreds of megabytes is slow in
//! a user-mode kernel. Its end of the line is file descriptor 0; the sockets
//! come over that line.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr as retry};
use rustix::net::{RecvFlags, recv, sockopt};
use rustix::pipe::SpliceFlags;

use super::message::{Order, Reply};
use crate::experiment::DATAGRAM_BYTES;
use crate::run::process::{self, Trouble};
use crate::run::{Pipe, Sink, cpus, datagram, pattern};

/// Runs the reading process until the line is closed.
///
/// Meant to be all that a hidden verb of the program does.
pub fn main() -> ExitCode {
    let mut reader = None;
    process::serve("the reading process", |_, order, carried| {
        carry_out(&mut reader, order, carried)
    })
}

fn carry_out(
    reader: &mut Option<Reader>,
    order: Order,
    carried: Vec<OwnedFd>,
) -> Result<Reply, Trouble> {
    if let Order::SetUp { cpu, pipe_bytes, pipe_exact, datagrams, patience_ms } = order {
        cpus::pin(cpu)?;
        let sink = Sink::new(Pipe::new(pipe_bytes, pipe_exact)?)?;
        let pipe_bytes = sink.pipe.bytes;
        let patience = Duration::from_millis(patience_ms);
        *reader = Some(Reader { sockets: Vec::new(), sink, datagrams, patience });
        return Ok(Reply::Ready { pipe_bytes });
    }
    let reader = reader.as_mut().ok_or_else(|| "an order before SetUp".to_owned())?;
    match order {
        Order::SetUp { .. } => unreachable!("handled above"),
        Order::Sockets { count } => reader.take_sockets(count, carried)?,
        Order::Drain { sockets, bytes } => {
            return Ok(Reply::Drained { bytes: reader.drain(sockets, bytes)? });
        }
        Order::Compare { sockets, bytes, seed, start } => {
            reader.compare(sockets, bytes, seed, start)?;
        }
    }
    Ok(Reply::Done)
}

struct Reader {
    sockets: Vec<OwnedFd>,
    sink: Sink,
    datagrams: bool,
    patience: Duration,
}

impl Reader {
    fn take_sockets(&mut self, count: u32, carried: Vec<OwnedFd>) -> Result<(), String> {
        if carried.len() != count as usize {
            return Err(format!(
                "{} of {count} sockets arrived: the limit of open files (ulimit -n) is too low",
                carried.len()
            ));
        }
        for socket in &carried {
            sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(self.patience))
                .map_err(|errno| format!("cannot set SO_RCVTIMEO: {errno}"))?;
        }
        self.sockets.extend(carried);
        Ok(())
    }

    fn drain(&self, sockets: u32, bytes: u64) -> Result<u64, String> {
        let mut drained = 0;
        for (number, socket) in self.sockets.iter().take(sockets as usize).enumerate() {
            let mut left = bytes;
            while left > 0 {
                let got = if self.datagrams {
                    discard(socket.as_fd()).map_err(|why| {
                        format!("socket {number} had {} of {bytes} bytes: {why}", bytes - left)
                    })?
                } else {
                    let got = self.fill_pipe(socket.as_fd(), left)?;
                    let emptied = self.sink.empty(got as usize);
                    emptied.map_err(|errno| format!("cannot splice to /dev/null: {errno}"))?;
                    got
                };
                drained += got;
                // More than was sent is for the sender to see.
                left = left.saturating_sub(got);
            }
        }
        Ok(drained)
    }

    fn compare(&self, sockets: u32, bytes: u64, seed: u64, start: u64) -> Result<(), Trouble> {
        // A datagram has to fit whole: what is left of it would be lost.
        let room = self.sink.pipe.bytes.max(2 * DATAGRAM_BYTES);
        let mut buffer = vec![0; room as usize];
        for (number, socket) in (0..sockets).zip(&self.sockets) {
            let seed = seed + u64::from(number);
            let mut position = 0;
            while position < bytes {
                let got = self.take(socket.as_fd(), &mut buffer, bytes - position)?;
                pattern::compare(seed, start + position, &buffer[..got])
                    .map_err(|wrong| Trouble::WrongByte(wrong.after(position).on(number)))?;
                position += got as u64;
            }
        }
        Ok(())
    }

    /// The next bytes of a socket, by the way that drains take, at least one of them.
    fn take(&self, socket: BorrowedFd<'_>, buffer: &mut [u8], most: u64) -> Result<usize, String> {
        if self.datagrams {
            return match retry(|| recv(socket, &mut *buffer, RecvFlags::empty())) {
                Ok((0, _)) => Err("an empty datagram came, which was not sent".to_owned()),
                Ok((got, _)) => Ok(got),
                Err(Errno::AGAIN) => Err(self.nothing_came()),
                Err(errno) => Err(format!("cannot receive: {errno}")),
            };
        }
        let got = self.fill_pipe(socket, most.min(self.sink.pipe.bytes))? as usize;
        let mut read = 0;
        while read < got {
            read += retry(|| rustix::io::read(&self.sink.pipe.read, &mut buffer[read..got]))
                .map_err(|errno| format!("cannot read the pipe: {errno}"))?;
        }
        Ok(got)
    }

    fn nothing_came(&self) -> String {
        format!("no byte came for {} s", self.patience.as_secs())
    }

    /// Socket to pipe, at most `most` bytes and never none.
    fn fill_pipe(&self, socket: BorrowedFd<'_>, most: u64) -> Result<u64, String> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match retry(|| self.sink.fill(socket, most, SpliceFlags::empty())) {
            Ok(0) => Err("a socket was closed before all its bytes came".to_owned()),
            Ok(got) => Ok(got as u64),
            Err(Errno::AGAIN) => Err(self.nothing_came()),
            Err(errno) => Err(format!("cannot splice from a socket to a pipe: {errno}")),
        }
    }
}

/// Takes datagrams that are there. None there means that the kernel dropped
/// some: over the loopback they arrive before the sender's call returns.
fn discard(socket: BorrowedFd<'_>) -> Result<u64, String> {
    match retry(|| datagram::discard(socket)) {
        Ok(got) => Ok(got as u64),
        Err(Errno::AGAIN) => Err("the others were dropped on the way (see UdpRcvbufErrors in \
                                  /proc/net/snmp, and net.ipv4.udp_mem)"
            .to_owned()),
        Err(errno) => Err(format!("cannot receive: {errno}")),
    }
}
