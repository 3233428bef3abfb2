//! Children that never outlive what they were started for.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::error::{Context, Result};
use crate::interrupt::Interrupts;

/// How often it is asked whether a wait is to go on.
const LOOK: Duration = Duration::from_millis(50);

/// A child that leads a process group of its own: Ctrl-C at the terminal is for this process, which
/// then ends the child. Dropped while the child runs, it kills the whole group.
#[derive(Debug)]
pub struct Group {
    child: Child,
    /// Whether what is left of the group lives on when the child has ended by itself.
    is_outlived: bool,
    is_reaped: bool,
}

impl Group {
    /// Starts a command.
    pub fn start(command: &mut Command) -> io::Result<Group> {
        command.process_group(0).spawn().map(Group::of)
    }

    /// Takes charge of a child that leads its process group, or its session.
    pub fn of(child: Child) -> Group {
        Group { child, is_outlived: false, is_reaped: false }
    }

    /// The same of a child whose work may go to another process of its group, as a daemon's does.
    pub fn outlived(mut self) -> Group {
        self.is_outlived = true;
        self
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for the child's end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.reaped();
        Ok(status)
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.reaped();
        }
        Ok(status)
    }

    /// Waits for the child's end for as long as that is wanted.
    pub fn wait_while(&mut self, goes_on: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = self.try_wait()? {
            return Ok(Some(status));
        }
        let ended = pidfd_open(self.pid(), PidfdFlags::empty())?;
        while goes_on() {
            match poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&timespec(LOOK))) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.try_wait(),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }

    /// Asks the child to end. That it has just ended is what is wanted.
    pub fn ask_to_end(&self) {
        if !self.is_reaped {
            let _ = kill_process(self.pid(), Signal::TERM);
        }
    }

    /// Ends the whole group at once.
    pub fn end(&mut self) -> io::Result<()> {
        if !self.is_reaped {
            self.kill();
            self.wait()?;
        }
        Ok(())
    }

    /// Kills every process of the group. The leader's number cannot have been given to another
    /// process group while a member lives, and a group without members is no error.
    fn kill(&self) {
        let _ = kill_process_group(self.pid(), Signal::KILL);
    }

    fn reaped(&mut self) {
        if !self.is_reaped && !self.is_outlived {
            self.kill();
        }
        self.is_reaped = true;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// What [`run`] tells while a command runs.
pub(crate) enum Event<'a> {
    /// A line of its output, without the newline.
    Line(&'a str),
    /// A quarter of a second went by.
    Tick,
}

/// Runs a command to its end, its two outputs read as one stream of lines.
pub(crate) fn run(
    command: &mut Command,
    interrupts: &Interrupts,
    on_event: &mut dyn FnMut(Event<'_>) -> Result<()>,
) -> Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (mut reader, writer) = io::pipe().doing("making a pipe for", &name)?;
    command.stdin(Stdio::null());
    command.stdout(writer.try_clone().doing("making a pipe for", &name)?).stderr(writer);
    let mut group = Group::start(command).doing("starting", &name)?;
    // The command holds the pipe's write end; the end of the output must not wait for it.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut pending = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(interrupts.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN),
        ];
        let tick = timespec(Duration::from_millis(250));
        match poll(&mut fds, Some(&tick)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno).doing("waiting for", &name),
        }
        let readable = !fds[1].revents().is_empty();
        interrupts.check()?;
        if !readable {
            on_event(Event::Tick)?;
            continue;
        }
        let n = reader.read(&mut chunk).doing("reading the output of", &name)?;
        pending.extend_from_slice(&chunk[..n]);
        drain_lines(&mut pending, n == 0, on_event)?;
        if n == 0 {
            return group.wait().doing("waiting for", &name);
        }
    }
}

/// Hands over the whole lines of `pending`, at the end of the output the rest too.
fn drain_lines(
    pending: &mut Vec<u8>,
    at_end: bool,
    on_event: &mut dyn FnMut(Event<'_>) -> Result<()>,
) -> Result<()> {
    while let Some(end) = pending.iter().position(|&b| b == b'\n') {
        let line: Vec<u8> = pending.drain(..=end).collect();
        on_event(Event::Line(String::from_utf8_lossy(&line).trim_end()))?;
    }
    if at_end && !pending.is_empty() {
        on_event(Event::Line(String::from_utf8_lossy(pending).trim_end()))?;
        pending.clear();
    }
    Ok(())
}

/// Runs a command and gives its output, when it succeeded.
pub(crate) fn output(command: &mut Command, interrupts: &Interrupts) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut text = String::new();
    let status = run(command, interrupts, &mut |event| {
        if let Event::Line(line) = event {
            text.push_str(line);
            text.push('\n');
        }
        Ok(())
    })?;
    if status.success() {
        return Ok(text);
    }
    Err(io::Error::other(format!("{status}: {}", text.trim()))).doing("running", &name)
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
