//! A daemon: started, watched, ended.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use crate::run::cpu_clock::{CpuClock, family};
use crate::run::{Failure, Stop, cpus};

/// How long a daemon may take to finish after SIGTERM.
const FAREWELL: Duration = Duration::from_secs(3);
/// Between two looks.
const MOMENT: Duration = Duration::from_millis(5);
/// The last lines of what a daemon said that go into an error.
const LAST_LINES: usize = 4;

/// Where a daemon listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A socket in the file system.
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

    /// `unix:PATH` or `tcp:HOST:PORT`, as this project's daemons have it.
    #[must_use]
    pub fn ours(&self) -> String {
        match self {
            Endpoint::Unix(path) => format!("unix:{}", path.display()),
            Endpoint::Tcp(address) => format!("tcp:{address}"),
        }
    }
}

/// A process, and those that it starts. Dropped, they are ended.
pub struct Daemon {
    name: &'static str,
    child: Child,
    log: PathBuf,
    clocks: Vec<CpuClock>,
}

impl Daemon {
    /// Starts it, on one CPU if that is said. What it says goes to a file in the folder.
    pub fn start(
        name: &'static str,
        mut command: Command,
        folder: &Path,
        cpu: Option<u32>,
    ) -> Result<Daemon, Failure> {
        let log = folder.join(format!("{name}.log"));
        let failed = || Failure::io(format!("cannot write {}", log.display()));
        let out = File::create(&log).map_err(failed())?;
        let err = out.try_clone().map_err(failed())?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        // Ctrl-C goes to this process, which then ends the daemon.
        command.process_group(0);
        // SAFETY: between fork and exec the closure makes one system call, allocates nothing and
        // takes no lock.
        unsafe {
            // This process may be killed, and then no other one would end the daemon.
            command.pre_exec(|| {
                set_parent_process_death_signal(Some(Signal::TERM)).map_err(Into::into)
            });
        }
        let child = on_cpu(cpu, || command.spawn())?
            .map_err(Failure::io(format!("cannot start {name}")))?;
        Ok(Daemon { name, child, log, clocks: Vec::new() })
    }

    /// Waits until it listens.
    pub fn wait_for(
        &mut self,
        endpoint: &Endpoint,
        patience: Duration,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        while !endpoint.answers() {
            stop.check()?;
            self.alive()?;
            if begun.elapsed() > patience {
                let waited = patience.as_secs();
                return Err(self.failure(format!("it did not listen within {waited} s")));
            }
            std::thread::sleep(MOMENT);
        }
        Ok(())
    }

    /// An error once it is gone.
    pub fn alive(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(format!("it ended: {status}"))),
            Err(error) => Err(Failure::io(format!("cannot wait for {}", self.name))(error)),
        }
    }

    fn failure(&self, what: String) -> Failure {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
        let what = if last.is_empty() { what } else { format!("{what}; it said: {last}") };
        Failure::Daemon { name: self.name, what }
    }

    /// Finds the processes that its CPU time is made of.
    pub fn find_clocks(&mut self) -> Result<(), Failure> {
        let clocks = family(self.pid())?.into_iter().map(CpuClock::of);
        self.clocks = clocks.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// CPU time of all its processes so far, nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        self.clocks.iter().map(CpuClock::ns).sum()
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Tells it to finish, and makes it end if it does not.
    pub fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let group = self.pid();
        let told = kill_process_group(group, Signal::TERM);
        let begun = Instant::now();
        while told == Ok(()) && begun.elapsed() < FAREWELL {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(MOMENT);
        }
        // It ends whoever of the group is left; usually that is no process.
        let _: Result<(), Errno> = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}

/// Does something while this thread is on that CPU; a process that is started meanwhile stays
/// there.
fn on_cpu<T>(cpu: Option<u32>, what: impl FnOnce() -> T) -> Result<T, Failure> {
    let Some(cpu) = cpu else { return Ok(what()) };
    let before =
        sched_getaffinity(None).map_err(Failure::os("cannot ask for the CPUs to run on"))?;
    cpus::pin(cpu)?;
    let done = what();
    sched_setaffinity(None, &before)
        .map_err(Failure::os("cannot go back to the CPUs of before"))?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn shell(script: &str, folder: &Path) -> Daemon {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Daemon::start("sh", command, folder, None).unwrap()
    }

    #[test]
    fn one_that_ends_says_what_it_said_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut daemon = shell("echo one >&2; echo two >&2; exit 3", folder.path());
        let endpoint = Endpoint::Unix(folder.path().join("nothing"));
        let failure = daemon.wait_for(&endpoint, PATIENCE, &Stop::default()).unwrap_err();
        let text = failure.to_string();
        assert!(text.starts_with("sh: it ended: exit status: 3"), "{text}");
        assert!(text.contains("one; two"), "{text}");
    }

    #[test]
    fn one_that_does_not_listen_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut daemon = shell("exec sleep 600", folder.path());
        let endpoint = Endpoint::Unix(folder.path().join("nothing"));
        let failure = daemon.wait_for(&endpoint, Duration::ZERO, &Stop::default()).unwrap_err();
        assert!(failure.to_string().contains("did not listen within"), "{failure}");
    }

    #[test]
    fn what_a_daemon_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = "sleep 600 & echo $! > child; trap '' TERM; wait; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder.path());
        let mut daemon = Daemon::start("sh", command, folder.path(), None).unwrap();
        let child = loop {
            let text = std::fs::read_to_string(folder.path().join("child")).unwrap_or_default();
            match text.trim().parse::<i32>() {
                Ok(number) if text.ends_with('\n') => break Pid::from_raw(number).unwrap(),
                _ => std::thread::sleep(MOMENT),
            }
        };
        daemon.find_clocks().unwrap();
        assert!(daemon.clocks.len() >= 2 && daemon.cpu_ns().is_ok());
        drop(daemon);
        // Killed; who is its parent now has yet to look at it.
        let state = std::fs::read_to_string(format!("/proc/{}/stat", child.as_raw_nonzero()));
        assert!(state.is_err() || state.unwrap().contains(") Z "));
    }
}
