//! A process of this program's own at the other end of a line: started, asked, ended.

use std::fmt::Debug;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::link::{self, Received, SOCKETS_A_MESSAGE};
use super::{Failure, Stop};

/// How long a process that closed its line may take to be gone.
const LAST_BREATH: Duration = Duration::from_secs(2);
/// Between two looks.
const MOMENT: Duration = Duration::from_millis(5);

/// What tells one kind of process from another: the words on its line, and whose failures its are.
pub trait Part {
    type Order: Serialize;
    type Reply: DeserializeOwned + Debug;
    /// What errors of its line call it.
    const NAME: &'static str;
    /// Said after how it ended, where that mostly has one cause.
    const LIKELY: &'static str = "";

    fn wrong(what: String) -> Failure;

    /// The failure that an answer tells of, or the answer.
    fn judge(reply: Self::Reply) -> Result<Self::Reply, Failure>;

    /// An answer to another question.
    fn unexpected(reply: &Self::Reply) -> Failure {
        Self::wrong(format!("another answer than asked for: {reply:?}"))
    }
}

pub trait TakesSockets: Part {
    /// The order that says how many come with it.
    fn sockets(count: u32) -> Self::Order;
}

/// A process. Dropping it ends it.
#[derive(Debug)]
pub struct Process<P: Part> {
    child: Child,
    line: OwnedFd,
    patience: Duration,
    stop: Stop,
    part: PhantomData<P>,
}

impl<P: Part> Process<P> {
    /// Starts this program anew with the arguments that lead to the part's own `main`. `spawn` may
    /// say more about the command, and where it is started.
    pub fn start(
        args: &[String],
        patience: Duration,
        stop: &Stop,
        spawn: impl FnOnce(&mut Command) -> Result<io::Result<Child>, Failure>,
    ) -> Result<Process<P>, Failure> {
        let (line, theirs) = link::pair().map_err(Failure::os("cannot make a socket pair"))?;
        link::set_patience(line.as_fd(), Some(patience))
            .map_err(Failure::os("cannot set SO_RCVTIMEO"))?;
        // The link in /proc, not the name behind it: the file may have been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command
            .args(args)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            // Ctrl-C goes to this process alone, which then ends the other.
            .process_group(0);
        let child =
            spawn(&mut command)?.map_err(Failure::io(format!("cannot start {}", P::NAME)))?;
        Ok(Process { child, line, patience, stop: stop.clone(), part: PhantomData })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The same, for calls of the system.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Gives an order; [`Process::reply`] takes the answer.
    pub fn order(&mut self, encoded: &[u8]) -> Result<(), Failure> {
        link::send_encoded(self.line.as_fd(), encoded).map_err(|errno| self.lost(errno))
    }

    /// Waits for the answer to the last order.
    pub fn reply(&mut self) -> Result<P::Reply, Failure> {
        loop {
            match link::receive::<P::Reply>(self.line.as_fd()) {
                Ok(Received::Message(reply, _)) => return P::judge(reply),
                Ok(Received::Closed) => return Err(self.ended()),
                Ok(Received::Nothing(Errno::INTR)) => self.stop.check()?,
                Ok(Received::Nothing(_)) => {
                    let waited = self.patience.as_secs();
                    let what = format!("silent for {waited} s: it hangs or is stopped");
                    return Err(P::wrong(what));
                }
                Err(errno) => return Err(self.lost(errno)),
            }
        }
    }

    /// Gives an order and waits for the answer.
    pub fn ask(&mut self, order: &P::Order) -> Result<P::Reply, Failure> {
        self.order(&link::encode(order))?;
        self.reply()
    }

    /// Turns a failure of a data socket into the other's end, if that was the cause.
    pub fn blame(&mut self, failure: Failure) -> Failure {
        match failure {
            Failure::Os { errno: Errno::PIPE | Errno::CONNRESET, .. } => self.ended(),
            other => other,
        }
    }

    fn lost(&mut self, errno: Errno) -> Failure {
        self.blame(Failure::Os { doing: format!("the line to {}", P::NAME), errno })
    }

    /// It has closed its line: how did it end?
    fn ended(&mut self) -> Failure {
        let deadline = Instant::now() + LAST_BREATH;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    return P::wrong(format!("it ended early: {status}{}", P::LIKELY));
                }
                Ok(None) if Instant::now() < deadline => std::thread::sleep(MOMENT),
                _ => return P::wrong("it closed its line and lives on".to_owned()),
            }
        }
    }
}

impl<P: TakesSockets> Process<P> {
    /// Hands over the other's ends of sockets.
    pub fn give(&mut self, sockets: &[OwnedFd]) -> Result<(), Failure> {
        for some in sockets.chunks(SOCKETS_A_MESSAGE) {
            let fds: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
            // At most SOCKETS_A_MESSAGE.
            let order = P::sockets(fds.len() as u32);
            if let Err(errno) = link::send_with(self.line.as_fd(), &order, &fds) {
                return Err(self.lost(errno));
            }
            self.reply()?;
        }
        Ok(())
    }
}

impl<P: Part> AsFd for Process<P> {
    /// The line, which can be read when the other has something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl<P: Part> Drop for Process<P> {
    fn drop(&mut self) {
        // Already gone is fine; anything else cannot be helped here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
