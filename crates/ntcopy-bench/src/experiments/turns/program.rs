//! A program that runs for one turn, and that leaves nothing behind.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ntcopy_kernel::process::Group;
use ntcopy_kernel::temporary;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_parent_process_death_signal, wait,
};

use super::listening::{self, Name, listens};
use crate::run::{CpuClock, Failure, Patience, Stop, family};

/// How long a server may take to end when it is asked to.
const GOODBYE: Duration = Duration::from_secs(2);
/// How often a server is asked whether it listens.
const LISTENS: Duration = Duration::from_millis(5);
/// How long a program that waits to be asked is watched before it is told.
const IDLE: Duration = Duration::from_secs(3);
const WAITS_TO_BE_ASKED: &str = "it listens, and waits to be asked: of a server say what asks it, as \
                                 by --load 'wrk -t1 -c16 -d3s http://127.0.0.1:8080/big'";
/// Bytes of what a program said last that are printed when it fails.
const TAIL_BYTES: u64 = 600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output is dropped, and standard error kept for the case that it fails.
    Dropped,
    /// Both are kept together.
    Kept,
}

/// Where a program listens, as this project's daemons write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Unix(PathBuf),
    /// An address of the loopback, or of a device that was made for it.
    Tcp(SocketAddr),
}

impl Endpoint {
    fn answers(&self) -> bool {
        match self {
            Endpoint::Unix(path) => UnixStream::connect(path).is_ok(),
            Endpoint::Tcp(address) => TcpStream::connect(address).is_ok(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(out, "unix:{}", path.display()),
            Endpoint::Tcp(address) => write!(out, "tcp:{address}"),
        }
    }
}

/// A running program with all that it has started.
#[derive(Debug)]
pub struct RunningProgram {
    group: Group,
    name: String,
    /// What it prints, for its figures or for the case that it fails.
    printed: File,
    began: Instant,
    /// Whether with it ends all that is below this process: what it has left behind, too. One that
    /// runs beside another must not.
    ends_all: bool,
}

#[derive(Debug)]
pub struct Ended {
    pub took: Duration,
    pub output: Vec<u8>,
}

/// What a program of ours leaves behind is ours to end from now on: orphans get this process as
/// their parent.
pub fn adopt_orphans() -> Result<(), Failure> {
    rustix::process::set_child_subreaper(Some(getpid()))
        .map_err(Failure::os("cannot become the parent of orphans"))
}

/// Whether they do, and all processes below this one are a program's.
fn adopts() -> bool {
    rustix::process::child_subreaper().is_ok_and(|adopter| adopter.is_some())
}

impl RunningProgram {
    pub fn start(
        words: &[OsString],
        environment: &[(OsString, OsString)],
        output: Output,
    ) -> Result<RunningProgram, Failure> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        RunningProgram::spawn(
            words[0].to_string_lossy().into_owned(),
            command,
            output,
            Signal::KILL,
        )
    }

    /// Starts it, in a process group of its own: Ctrl-C at the terminal is for us, who end it. If
    /// this process is killed, it gets the signal.
    pub fn spawn(
        name: String,
        mut command: Command,
        output: Output,
        orphaned: Signal,
    ) -> Result<RunningProgram, Failure> {
        let failed = |what: String| Failure::Program { name: name.clone(), what };
        let printed = temporary::file().map_err(Failure::temporary)?;
        let another = |file: &File| file.try_clone().map_err(Failure::io("cannot share a file"));
        command.stdin(Stdio::null()).stderr(another(&printed)?);
        match output {
            Output::Dropped => command.stdout(Stdio::null()),
            Output::Kept => command.stdout(another(&printed)?),
        };
        // SAFETY: between fork and exec the closure makes one system call, allocates nothing and
        // takes no lock.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(orphaned)).map_err(Into::into)
            });
        }
        let began = Instant::now();
        let started = Group::start(&mut command).map(Group::outlived);
        let group = started.map_err(|error| failed(format!("cannot be run: {error}")))?;
        Ok(RunningProgram { group, name, printed, began, ends_all: adopts() })
    }

    /// By a shell, beside another program or alone. What it leaves behind ends with the other one.
    pub fn shell(line: &str, output: Output) -> Result<RunningProgram, Failure> {
        let words = [OsStr::new("sh"), OsStr::new("-c"), OsStr::new(line)];
        let mut program = RunningProgram::start(&words.map(OsStr::to_owned), &[], output)?;
        program.name = line.to_owned();
        program.ends_all = false;
        Ok(program)
    }

    /// Beside another program, and ends alone.
    pub fn start_helper(words: &[OsString]) -> Result<RunningProgram, Failure> {
        let mut program = RunningProgram::start(words, &[], Output::Dropped)?;
        program.ends_all = false;
        Ok(program)
    }

    /// Its first process, which leads its process group.
    pub fn pid(&self) -> Pid {
        self.group.pid()
    }

    /// It and all that it has started.
    fn family(&self) -> Result<Vec<Pid>, Failure> {
        let own = getpid();
        let mut all = family(if self.ends_all { own } else { self.pid() })?;
        // This process listens, too, for other measurements.
        all.retain(|pid| *pid != own);
        Ok(all)
    }

    /// CPU time of it and of all that it has started, so far.
    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        Ok(self.family()?.into_iter().filter_map(used_ns).sum())
    }

    /// The files of the unix sockets that it listens on.
    pub fn sockets(&self) -> Result<Vec<Name>, Failure> {
        Ok(listening::names(&self.family()?))
    }

    /// Waits for its end, which has to be a good one.
    pub fn finish(mut self, patience: Patience<'_>) -> Result<Ended, Failure> {
        match self.ends_within(patience)? {
            Some(took) => self.ended(took),
            None => Err(self.too_long(patience.limit)),
        }
    }

    /// Waits for the end of a program that nobody asks anything: a server that waits for that has
    /// none.
    pub fn finish_unasked(mut self, patience: Patience<'_>) -> Result<Ended, Failure> {
        while self.began.elapsed() < patience.limit {
            let before = self.cpu_ns()?;
            let limit = IDLE.min(patience.limit);
            if let Some(took) = self.ends_within(Patience { limit, ..patience })? {
                return self.ended(took);
            }
            let worked = Duration::from_nanos(self.cpu_ns()?.saturating_sub(before));
            if worked < IDLE / 20 && listens(&self.family()?) {
                return Err(self.failure(WAITS_TO_BE_ASKED));
            }
        }
        Err(self.too_long(patience.limit))
    }

    fn too_long(&mut self, limit: Duration) -> Failure {
        let seconds = limit.as_secs();
        self.failure(&format!("it still ran after {seconds} s: --patience allows more"))
    }

    fn ended(mut self, took: Duration) -> Result<Ended, Failure> {
        let status = self.group.wait().map_err(Failure::io("cannot wait for the program"))?;
        if !status.success() {
            return Err(self.failure(&how_it_ended(status)));
        }
        let mut output = Vec::new();
        let read = self
            .printed
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.printed.read_to_end(&mut output));
        read.map_err(Failure::io("cannot read what the program printed"))?;
        Ok(Ended { took, output })
    }

    /// Waits until it can be asked: until the command succeeds; without one, until it, or what it
    /// started, has a socket that listens.
    pub fn is_ready(&mut self, ready: Option<&str>, patience: Patience<'_>) -> Result<(), Failure> {
        let seconds = patience.limit.as_secs();
        let what = match ready {
            Some(line) => format!("`{line}` did not succeed in {seconds} s"),
            None => format!(
                "no socket of it listened after {seconds} s: --ready COMMAND says how to see that \
                 it is up"
            ),
        };
        let is_there = |program: &RunningProgram| match ready {
            Some(line) => match RunningProgram::shell(line, Output::Dropped)?.finish(patience) {
                Ok(_) => Ok(true),
                Err(Failure::Program { .. }) => Ok(false),
                Err(failure) => Err(failure),
            },
            None => Ok(listens(&program.family()?)),
        };
        self.wait_until(is_there, &what, patience)
    }

    /// Waits until it takes a connection there. A socket that listens may be another one.
    pub fn accepts(&mut self, at: &Endpoint, patience: Patience<'_>) -> Result<(), Failure> {
        let seconds = patience.limit.as_secs();
        let what = format!("{at} took no connection in {seconds} s: --patience allows more");
        self.wait_until(|_| Ok(at.answers()), &what, patience)
    }

    fn wait_until(
        &mut self,
        is_there: impl Fn(&RunningProgram) -> Result<bool, Failure>,
        what: &str,
        patience: Patience<'_>,
    ) -> Result<(), Failure> {
        while self.began.elapsed() < patience.limit {
            patience.stop.check()?;
            if let Some(status) = self.group.try_wait().map_err(Failure::io("cannot wait"))? {
                // A daemon's first process ends when its work has gone to another one.
                if !status.success() || !adopts() {
                    return Err(self.failure(&how_it_ended(status)));
                }
            }
            if is_there(self)? {
                return Ok(());
            }
            std::thread::sleep(LISTENS);
        }
        Err(self.failure(what))
    }

    /// Asks a server to end, and waits a little for that.
    pub fn goodbye(mut self) -> Result<(), Failure> {
        self.group.ask_to_end();
        self.ends_within(Patience { limit: GOODBYE, stop: &Stop::default() }).map(drop)
    }

    /// How it ended, in its own words, if it is gone.
    pub fn gone(&mut self) -> Option<Failure> {
        let status = self.group.try_wait().ok()??;
        Some(self.failure(&how_it_ended(status)))
    }

    /// Whether it still runs; a server that ended under its load gives no figure.
    pub fn still_runs(&mut self) -> Result<(), Failure> {
        match self.group.try_wait().map_err(Failure::io("cannot wait"))? {
            Some(status) if !status.success() => Err(self.failure(&how_it_ended(status))),
            _ => Ok(()),
        }
    }

    /// The time from its start to its end; none if it does not end within the time.
    fn ends_within(
        &mut self,
        Patience { limit, stop }: Patience<'_>,
    ) -> Result<Option<Duration>, Failure> {
        let since = Instant::now();
        let goes_on = || stop.signal().is_none() && since.elapsed() < limit;
        let ended = self.group.wait_while(goes_on).map_err(Failure::io("cannot wait for it"))?;
        if ended.is_none() {
            stop.check()?;
        }
        Ok(ended.map(|_| self.began.elapsed()))
    }

    fn failure(&mut self, what: &str) -> Failure {
        let what = match self.tail() {
            tail if tail.is_empty() => what.to_owned(),
            tail => format!("{what}; it said last: {tail}"),
        };
        Failure::Program { name: self.name.clone(), what }
    }

    fn tail(&mut self) -> String {
        let length = self.printed.metadata().map_or(0, |data| data.len());
        let mut bytes = Vec::new();
        let from = SeekFrom::Start(length.saturating_sub(TAIL_BYTES));
        // It belongs to a failure that is reported anyway.
        let _ = self.printed.seek(from).and_then(|_| self.printed.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

impl Drop for RunningProgram {
    /// Ends it, and all that it started, adopted orphans included.
    fn drop(&mut self) {
        let (own, pid) = (getpid(), self.pid());
        let since = Instant::now();
        while since.elapsed() < GOODBYE {
            let Ok(all) = family(if self.ends_all { own } else { pid }) else { return };
            for pid in all.iter().filter(|pid| **pid != own) {
                // Processes that have gone meanwhile are what is wanted.
                let _ = kill_process(*pid, Signal::KILL);
            }
            // The child's own status is taken by itself, then those of the orphans.
            let _ = self.group.wait();
            if !self.ends_all {
                return;
            }
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            if all.iter().all(|pid| *pid == own) {
                return;
            }
        }
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    }
}

/// CPU time that a process has used, with that of children for which it has waited; none of one
/// that has gone.
fn used_ns(pid: Pid) -> Option<u64> {
    let own = CpuClock::new(pid).and_then(|clock| clock.ns()).ok()?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    // cutime and cstime, fields 16 and 17 of proc(5); the name is the second one.
    let ticks = after_name.split_ascii_whitespace().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Some(own + ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn within(limit: Duration) -> Patience<'static> {
        static STOP: std::sync::LazyLock<Stop> = std::sync::LazyLock::new(Stop::default);
        Patience { limit, stop: &STOP }
    }

    fn shell(line: &str, output: Output) -> Result<Ended, Failure> {
        RunningProgram::shell(line, output).unwrap().finish(within(LONG))
    }

    #[test]
    fn what_it_prints_is_kept_and_how_it_fails_is_told() {
        let ended = shell("echo one; echo two >&2", Output::Kept).unwrap();
        assert_eq!(ended.output, b"one\ntwo\n");
        assert!(shell("echo one", Output::Dropped).unwrap().output.is_empty());
        let failure = shell("echo why >&2; exit 3", Output::Dropped).unwrap_err().to_string();
        assert!(failure.contains("exit code 3") && failure.contains("why"), "{failure}");
        let killed = shell("kill -ALRM $$", Output::Dropped).unwrap_err().to_string();
        assert!(killed.contains("signal 14"), "{killed}");
    }

    #[test]
    fn one_that_does_not_end_fails_when_patience_is_over() {
        let program = RunningProgram::shell("sleep 600", Output::Dropped).unwrap();
        let failure = program.finish(within(Duration::from_millis(60))).unwrap_err();
        assert!(failure.to_string().contains("still ran"), "{failure}");
    }

    #[test]
    fn what_does_not_listen_is_given_up_and_what_it_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = Endpoint::Unix(folder.path().join("nothing"));
        let mut ended =
            RunningProgram::shell("echo one; echo two >&2; exit 3", Output::Kept).unwrap();
        let failure = ended.accepts(&nothing, within(LONG)).unwrap_err().to_string();
        assert!(failure.contains("exit code 3") && failure.contains("one\ntwo"), "{failure}");
        let told = folder.path().join("child");
        let script = format!("sleep 600 & echo $! >{}; trap '' TERM; wait; wait", told.display());
        let mut program = RunningProgram::shell(&script, Output::Kept).unwrap();
        let child = loop {
            let text = fs::read_to_string(&told).unwrap_or_default();
            match text.trim().parse::<u32>() {
                Ok(number) if text.ends_with('\n') => break number,
                _ => std::thread::sleep(LISTENS),
            }
        };
        let failure = program.accepts(&nothing, within(Duration::ZERO)).unwrap_err();
        assert!(failure.to_string().contains("took no connection in 0 s"), "{failure}");
        drop(program);
        // Killed, which takes effect in a moment; who is its parent now may yet have to look at it.
        let is_gone = || {
            let state = fs::read_to_string(format!("/proc/{child}/stat"));
            state.map_or(true, |state| state.contains(") Z "))
        };
        let began = Instant::now();
        while !is_gone() {
            assert!(began.elapsed() < LONG, "it still runs");
            std::thread::sleep(LISTENS);
        }
    }

    #[test]
    fn a_server_that_nobody_asks_is_told_and_a_program_that_ends_is_not() {
        let listen = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); \
                      s.listen(); time.sleep(600)";
        let words = ["python3", "-c", listen].map(OsString::from);
        let server = RunningProgram::start(&words, &[], Output::Dropped).unwrap();
        let failure = server.finish_unasked(within(LONG)).unwrap_err().to_string();
        assert!(failure.contains("--load"), "{failure}");
        let program = RunningProgram::shell("echo one", Output::Kept).unwrap();
        assert_eq!(program.finish_unasked(within(LONG)).unwrap().output, b"one\n");
    }

    #[test]
    fn the_cpu_time_of_children_counts() {
        let mut program = RunningProgram::shell("while :; do :; done", Output::Dropped).unwrap();
        // Alone, as a load beside another program is.
        program.ends_all = false;
        while program.cpu_ns().unwrap() == 0 {
            std::thread::sleep(LISTENS);
        }
        assert!(used_ns(Pid::from_raw(i32::MAX).unwrap()).is_none());
    }
}
