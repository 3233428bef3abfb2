//! Children that never outlive what they were started for.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;

/// A child that leads a process group of its own. Dropping it kills the group.
pub(crate) struct Group {
    child: Child,
    name: String,
    reaped: bool,
}

impl Group {
    /// Takes charge of a child that leads its process group (or session).
    pub(crate) fn new(child: Child, name: impl Into<String>) -> Self {
        Self { child, name: name.into(), reaped: false }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for the leader; whoever is left in the group is killed.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait().doing("waiting for", &self.name)?;
        self.reaped = true;
        self.kill();
        Ok(status)
    }

    pub(crate) fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().doing("waiting for", &self.name)?;
        if status.is_some() {
            self.reaped = true;
            self.kill();
        }
        Ok(status)
    }

    /// Kills every process of the group. The leader's number cannot have been given to another
    /// process group while a member lives, and a group without members is no error.
    pub(crate) fn kill(&self) {
        let _ = kill_process_group(self.pid(), Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        self.kill();
        let _ = self.child.wait();
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
    let (mut reader, writer) = std::io::pipe().doing("making a pipe for", &name)?;
    command.stdin(Stdio::null()).process_group(0);
    command.stdout(writer.try_clone().doing("making a pipe for", &name)?).stderr(writer);
    let child = command.spawn().doing("starting", &name)?;
    // The command holds the pipe's write end; the end of the output must not wait for it.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut group = Group::new(child, &name);
    let mut pending = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(interrupts.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(reader.as_fd(), PollFlags::IN),
        ];
        let tick = timespec(Duration::from_millis(250));
        match poll(&mut fds, Some(&tick)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
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
            return group.wait();
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
    Err(Error::Io {
        doing: "running",
        path: name.into(),
        cause: std::io::Error::other(format!("{status}: {}", text.trim())),
    })
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
