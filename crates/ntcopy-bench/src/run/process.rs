//! The reading process, as the sender sees it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::link::{self, Received};
use super::message::{Order, Reply, SOCKETS_A_MESSAGE};
use super::{Failure, Stop};

/// How long a process that closed its line may take to be gone.
const LAST_BREATH: Duration = Duration::from_secs(2);

/// A reading process. Dropping it ends it.
pub struct ReaderProcess {
    child: Child,
    line: OwnedFd,
    patience: Duration,
    stop: Stop,
}

impl ReaderProcess {
    /// Starts this program anew with the arguments that lead to [`super::reader::main`].
    pub fn start(args: &[String], patience: Duration, stop: Stop) -> Result<Self, Failure> {
        let (line, theirs) = link::pair().map_err(Failure::os("cannot make a socket pair"))?;
        link::set_patience(line.as_fd(), Some(patience))
            .map_err(Failure::os("cannot set SO_RCVTIMEO"))?;
        // The link in /proc, not the name behind it: the file may have been replaced since.
        let child = Command::new("/proc/self/exe")
            .args(args)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            // Ctrl-C goes to the sender alone, which then ends the reader.
            .process_group(0)
            .spawn()
            .map_err(Failure::io("cannot start the reading process"))?;
        Ok(ReaderProcess { child, line, patience, stop })
    }

    /// Hands over the reader's ends of the sockets.
    pub fn give(&mut self, sockets: &[OwnedFd]) -> Result<(), Failure> {
        for some in sockets.chunks(SOCKETS_A_MESSAGE) {
            let fds: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
            // At most SOCKETS_A_MESSAGE.
            let order = Order::Sockets { count: fds.len() as u32 };
            if let Err(errno) = link::send_with(self.line.as_fd(), &order, &fds) {
                return Err(self.lost(errno));
            }
            match self.reply()? {
                Reply::Received => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(())
    }

    /// Gives an order; [`Self::reply`] takes the answer.
    pub fn order(&mut self, encoded: &[u8]) -> Result<(), Failure> {
        link::send_encoded(self.line.as_fd(), encoded).map_err(|errno| self.lost(errno))
    }

    /// Waits for the answer to the last order.
    pub fn reply(&mut self) -> Result<Reply, Failure> {
        loop {
            match link::receive::<Reply>(self.line.as_fd()) {
                Ok(Received::Message(Reply::Failed { what }, _)) => {
                    return Err(Failure::Reader(what));
                }
                Ok(Received::Message(Reply::WrongByte { socket, position, expected, got }, _)) => {
                    return Err(Failure::WrongByte { socket, position, expected, got });
                }
                Ok(Received::Message(reply, _)) => return Ok(reply),
                Ok(Received::Closed) => return Err(self.ended()),
                Ok(Received::Nothing(Errno::INTR)) => self.stop.check()?,
                Ok(Received::Nothing(_)) => {
                    let waited = self.patience;
                    return Err(Failure::Silent {
                        what: "the reading process said nothing",
                        waited,
                    });
                }
                Err(errno) => return Err(self.lost(errno)),
            }
        }
    }

    /// Turns a failure of a data socket into the reader's end, if that was the cause.
    pub fn blame(&mut self, failure: Failure) -> Failure {
        match failure {
            Failure::Os { errno: Errno::PIPE | Errno::CONNRESET, .. } => self.ended(),
            other => other,
        }
    }

    fn lost(&mut self, errno: Errno) -> Failure {
        self.blame(Failure::Os { doing: "the line to the reading process".to_owned(), errno })
    }

    /// The reader has closed its line: how did it end?
    fn ended(&mut self) -> Failure {
        let deadline = Instant::now() + LAST_BREATH;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Failure::ReaderEnded { status: status.to_string() },
                Ok(None) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => {
                    let status = "it closed its line and lives on".to_owned();
                    return Failure::ReaderEnded { status };
                }
            }
        }
    }
}

impl Drop for ReaderProcess {
    fn drop(&mut self) {
        // Already gone is fine; anything else cannot be helped here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer to another question.
pub fn unexpected(reply: &Reply) -> Failure {
    Failure::Reader(format!("an unexpected answer: {reply:?}"))
}
