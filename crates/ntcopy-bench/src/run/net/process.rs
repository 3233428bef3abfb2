//! The server's process, as the client sees it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;

use super::message::{Order, Reply};
use super::network::Network;
use crate::run::cpu_clock::CpuClock;
use crate::run::link::{self, Received};
use crate::run::message::SOCKETS_A_MESSAGE;
use crate::run::{Failure, Stop};

/// How long a process that closed its line may take to be gone.
const LAST_BREATH: Duration = Duration::from_secs(2);
/// Between two looks.
const MOMENT: Duration = Duration::from_millis(5);

/// A server. Dropping it ends it.
pub struct ServerProcess {
    child: Child,
    line: OwnedFd,
    patience: Duration,
    stop: Stop,
    clock: CpuClock,
}

impl ServerProcess {
    /// Starts this program anew, on the server's side of the network, with the arguments that lead
    /// to [`super::server_main`].
    pub fn start(
        args: &[String],
        network: &Network,
        patience: Duration,
        stop: &Stop,
    ) -> Result<ServerProcess, Failure> {
        let (line, theirs) = link::pair().map_err(Failure::os("cannot make a socket pair"))?;
        link::set_patience(line.as_fd(), Some(patience))
            .map_err(Failure::os("cannot set SO_RCVTIMEO"))?;
        // The link in /proc, not the name behind it: the file may have been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command
            .args(args)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            // Ctrl-C goes to the client alone, which then ends the server.
            .process_group(0);
        let child = network
            .at_server(|| command.spawn())?
            .map_err(Failure::io("cannot start the server"))?;
        let clock = CpuClock::of(Pid::from_child(&child))?;
        Ok(ServerProcess { child, line, patience, stop: stop.clone(), clock })
    }

    /// Its process's number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its CPU time so far, nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        self.clock.ns()
    }

    /// Hands over the server's ends of connections.
    pub fn give(&mut self, sockets: &[OwnedFd]) -> Result<(), Failure> {
        for some in sockets.chunks(SOCKETS_A_MESSAGE) {
            let fds: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
            // At most SOCKETS_A_MESSAGE.
            let order = Order::Sockets { count: fds.len() as u32 };
            if let Err(errno) = link::send_with(self.line.as_fd(), &order, &fds) {
                return Err(self.lost(errno));
            }
            self.reply()?;
        }
        Ok(())
    }

    /// Gives an order and waits for the answer.
    pub fn ask(&mut self, order: &Order) -> Result<Reply, Failure> {
        if let Err(errno) = link::send_encoded(self.line.as_fd(), &link::encode(order)) {
            return Err(self.lost(errno));
        }
        self.reply()
    }

    /// Waits for an answer.
    pub fn reply(&mut self) -> Result<Reply, Failure> {
        loop {
            match link::receive::<Reply>(self.line.as_fd()) {
                Ok(Received::Message(Reply::Failed { what }, _)) => {
                    return Err(Failure::Server(what));
                }
                Ok(Received::Message(Reply::WrongByte { socket, position, expected, got }, _)) => {
                    return Err(Failure::WrongByte { socket, position, expected, got });
                }
                Ok(Received::Message(reply, _)) => return Ok(reply),
                Ok(Received::Closed) => return Err(self.ended()),
                Ok(Received::Nothing(Errno::INTR)) => self.stop.check()?,
                Ok(Received::Nothing(_)) => {
                    let waited = self.patience.as_secs();
                    let what = format!("silent for {waited} s: it hangs or is stopped");
                    return Err(Failure::Server(what));
                }
                Err(errno) => return Err(self.lost(errno)),
            }
        }
    }

    fn lost(&mut self, errno: Errno) -> Failure {
        match errno {
            Errno::PIPE | Errno::CONNRESET => self.ended(),
            errno => Failure::os("the line to the server")(errno),
        }
    }

    /// The server has closed its line: how did it end?
    fn ended(&mut self) -> Failure {
        let deadline = Instant::now() + LAST_BREATH;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Failure::Server(format!("it ended early: {status}")),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(MOMENT),
                _ => return Failure::Server("it closed its line and lives on".to_owned()),
            }
        }
    }
}

impl AsFd for ServerProcess {
    /// The line, which can be read when the server has something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Already gone is fine; anything else cannot be helped here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
