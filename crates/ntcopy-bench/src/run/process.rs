//! A process of this program's own at the other end of a line: started, asked, ended.

use std::fmt::Debug;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use ntcopy_kernel::process::Group;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::link::{self, Received, SOCKETS_A_MESSAGE};
use super::{Failure, Patience, Stop, WrongByte};

/// How long a process that closed its line may take to be gone.
const LAST_BREATH: Duration = Duration::from_secs(2);

/// Why an order was not carried out, as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub enum Trouble {
    WrongByte(WrongByte),
    Failed(String),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        match failure {
            Failure::WrongByte(wrong) => Trouble::WrongByte(wrong),
            other => Trouble::Failed(other.to_string()),
        }
    }
}

impl From<String> for Trouble {
    fn from(what: String) -> Trouble {
        Trouble::Failed(what)
    }
}

impl Trouble {
    /// The failure that it is, in the process of this name.
    fn into_failure(self, name: &'static str) -> Failure {
        match self {
            Trouble::WrongByte(wrong) => wrong.into(),
            Trouble::Failed(what) => Failure::Process { name, what },
        }
    }
}

/// All that such a process does: it carries out the orders that come over its standard input, until
/// that is closed. What carries one out gets the line, and the descriptors that came with it.
pub fn serve<O: DeserializeOwned, R: Serialize>(
    name: &str,
    carry_out: impl FnMut(BorrowedFd<'_>, O, Vec<OwnedFd>) -> Result<R, Trouble>,
) -> ExitCode {
    // The other side may be killed without a chance to tell us.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    match serve_line(io::stdin().as_fd(), carry_out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(errno) => {
            eprintln!("ntcopy: {name} lost its line: {errno}");
            ExitCode::FAILURE
        }
    }
}

fn serve_line<O: DeserializeOwned, R: Serialize>(
    line: BorrowedFd<'_>,
    mut carry_out: impl FnMut(BorrowedFd<'_>, O, Vec<OwnedFd>) -> Result<R, Trouble>,
) -> rustix::io::Result<()> {
    loop {
        match link::receive::<O>(line)? {
            Received::Message(order, carried) => answer(line, &carry_out(line, order, carried))?,
            Received::Closed => return Ok(()),
            Received::Nothing(_) => {}
        }
    }
}

/// Says what became of an order.
pub fn answer<R: Serialize>(
    line: BorrowedFd<'_>,
    reply: &Result<R, Trouble>,
) -> rustix::io::Result<()> {
    link::send_encoded(line, &link::encode(reply))
}

/// A process that takes orders `O` and answers with `R`. Dropping it ends it.
#[derive(Debug)]
pub struct Process<O, R> {
    name: &'static str,
    group: Group,
    line: OwnedFd,
    patience: Duration,
    stop: Stop,
    words: PhantomData<fn(O) -> R>,
}

impl<O: Serialize, R: DeserializeOwned + Debug> Process<O, R> {
    /// Starts this program anew with the arguments that lead to its `main`. `spawn` may say more
    /// about the command, and where it is started: by [`Group::start`].
    pub fn start(
        name: &'static str,
        args: &[String],
        Patience { limit: patience, stop }: Patience<'_>,
        spawn: impl FnOnce(&mut Command) -> Result<io::Result<Group>, Failure>,
    ) -> Result<Process<O, R>, Failure> {
        let (line, theirs) = link::pair().map_err(Failure::os("cannot make a socket pair"))?;
        link::set_patience(line.as_fd(), Some(patience))
            .map_err(Failure::os("cannot set SO_RCVTIMEO"))?;
        // The link in /proc, not the name behind it: the file may have been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command.args(args).stdin(Stdio::from(theirs)).stdout(Stdio::null());
        let group = spawn(&mut command)?.map_err(Failure::io(format!("cannot start {name}")))?;
        Ok(Process { name, group, line, patience, stop: stop.clone(), words: PhantomData })
    }

    fn wrong(&self, what: String) -> Failure {
        Failure::Process { name: self.name, what }
    }

    /// An answer to another question.
    pub fn unexpected(&self, reply: &R) -> Failure {
        self.wrong(format!("another answer than asked for: {reply:?}"))
    }

    pub fn pid(&self) -> Pid {
        self.group.pid()
    }

    /// Gives an order; [`Process::reply`] takes the answer.
    pub fn order(&mut self, encoded: &[u8]) -> Result<(), Failure> {
        link::send_encoded(self.line.as_fd(), encoded).map_err(|errno| self.lost(errno))
    }

    pub fn reply(&mut self) -> Result<R, Failure> {
        loop {
            match link::receive::<Result<R, Trouble>>(self.line.as_fd()) {
                Ok(Received::Message(reply, _)) => {
                    return reply.map_err(|trouble| trouble.into_failure(self.name));
                }
                Ok(Received::Closed) => return Err(self.ended()),
                Ok(Received::Nothing(Errno::INTR)) => self.stop.check()?,
                Ok(Received::Nothing(_)) => {
                    let waited = self.patience.as_secs();
                    let what = format!("silent for {waited} s: it hangs or is stopped");
                    return Err(self.wrong(what));
                }
                Err(errno) => return Err(self.lost(errno)),
            }
        }
    }

    pub fn ask(&mut self, order: &O) -> Result<R, Failure> {
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
        self.blame(Failure::Os { doing: format!("the line to {}", self.name), errno })
    }

    /// It has closed its line: how did it end?
    fn ended(&mut self) -> Failure {
        let closed = Instant::now();
        let Ok(Some(status)) = self.group.wait_while(|| closed.elapsed() < LAST_BREATH) else {
            return self.wrong("it closed its line and lives on".to_owned());
        };
        let is_killed = status.signal() == Some(Signal::KILL.as_raw());
        let likely = if is_killed { " (out of memory?)" } else { "" };
        self.wrong(format!("it ended early: {status}{likely}"))
    }

    /// Hands over the other's ends of sockets, with the order that says how many come with it.
    pub fn give(&mut self, sockets: &[OwnedFd], order: impl Fn(u32) -> O) -> Result<(), Failure> {
        for some in sockets.chunks(SOCKETS_A_MESSAGE) {
            let fds: Vec<BorrowedFd<'_>> = some.iter().map(AsFd::as_fd).collect();
            // At most SOCKETS_A_MESSAGE.
            if let Err(errno) = link::send_with(self.line.as_fd(), &order(fds.len() as u32), &fds) {
                return Err(self.lost(errno));
            }
            self.reply()?;
        }
        Ok(())
    }
}

impl<O, R> AsFd for Process<O, R> {
    /// The line, which can be read when the other has something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}
