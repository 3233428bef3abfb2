//! Running the command in the guest.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, WaitOptions, wait};

use super::{Result, setup};
use crate::boot::spec::{ERR_LINE, LineKind, OUT_LINE, Spec};

/// What is passed on of one pipe before the others, and the end of the command, get their turn.
const PASS_BYTES: usize = 256 * 1024;
/// What is passed on after the command's end: more than any pipe holds, so only a stray process
/// that writes on and on loses output.
const DRAIN_BYTES: usize = 4 << 20;

/// Runs the command to its end; gives its exit code, and the bytes of its two outputs. All of them
/// are on their way to the host by then, and whatever the command left behind is killed.
pub(super) fn run(spec: &Spec) -> Result<(u8, [u64; 2])> {
    let mut lines = Lines::new(spec);
    let (wake, sender) = UnixStream::pair().map_err(|error| error.to_string())?;
    wake.set_nonblocking(true).map_err(|error| error.to_string())?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, sender)
        .map_err(|error| format!("watching children: {error}"))?;
    let mut command = command(spec);
    lines.attach(&mut command)?;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let code = lines.cannot_run(spec, &error)?;
            return Ok((code, lines.sent_bytes));
        }
    };
    // The child has the write ends now, and only its end closes them.
    drop(command);
    let pid = Pid::from_child(&child);
    let status = loop {
        lines.wait(&wake)?;
        if let Some(status) = reap(pid)? {
            break status;
        }
    };
    lines.drain()?;
    kill_the_rest();
    Ok((code(status), lines.sent_bytes))
}

fn command(spec: &Spec) -> Command {
    let mut command =
        Command::new(spec.command.first().map_or("".as_ref(), |word| word.as_os_str()));
    command.args(spec.command.iter().skip(1)).stdin(Stdio::null());
    command.env_clear().envs(spec.environment.iter().map(|(name, value)| (name, value)));
    if let Some(options) = setup::modprobe_options(spec) {
        command.env("MODPROBE_OPTIONS", options);
    }
    // SAFETY: the closure makes one system call, which neither allocates nor takes a lock.
    unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
    command
}

/// 128 + n for signal n, as shells have it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Collects the children that have ended, strangers too, since process 1 inherits them. Gives the
/// command's status when it is among them.
fn reap(command: Pid) -> Result<Option<ExitStatus>> {
    let mut found = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => {
                found = Some(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(found),
            Err(errno) => return Err(format!("waiting for the command: {errno}")),
        }
    }
}

/// Ends everything but process 1.
fn kill_the_rest() {
    // SAFETY: kill(2) touches no memory. -1 means every process but process 1, in the guest.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// The lines to the host, and the pipes that feed them.
struct Lines {
    kind: LineKind,
    /// Where output comes from, and the line that it goes to: its number, and the line.
    pipes: Vec<(OwnedFd, usize, File)>,
    /// What each line was given.
    sent_bytes: [u64; 2],
}

impl Lines {
    fn new(spec: &Spec) -> Self {
        Self { kind: spec.lines, pipes: Vec::new(), sent_bytes: [0; 2] }
    }

    /// Gives the command two pipes: a program must not take our serial lines for
    /// a terminal when the host's user sees none.
    fn attach(&mut self, command: &mut Command) -> Result<()> {
        let text = |error: io::Error| format!("the command's output: {error}");
        let (out, out_end) = io::pipe().map_err(text)?;
        let (err, err_end) = io::pipe().map_err(text)?;
        command.stdout(out_end).stderr(err_end);
        for (pipe, line) in [(out, OUT_LINE), (err, ERR_LINE)] {
            ioctl_fionbio(&pipe, true).map_err(|errno| text(errno.into()))?;
            self.pipes.push((pipe.into(), line, setup::raw_line(self.kind, line)?));
        }
        Ok(())
    }

    /// Says why the command cannot run where it would have said something itself.
    fn cannot_run(&mut self, spec: &Spec, error: &io::Error) -> Result<u8> {
        let name = spec.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        let text = format!("ntcopy: cannot run '{name}' in the guest: {error}\n");
        if let Some((_, number, line)) = self.pipes.last_mut() {
            self.sent_bytes[*number] += text.len() as u64;
            let written = line.write_all(text.as_bytes());
            written.map_err(|error| format!("the command's output: {error}"))?;
        }
        self.drain()?;
        Ok(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
    }

    /// Sleeps until there is output or an ended child; passes everything on.
    fn wait(&mut self, wake: &UnixStream) -> Result<()> {
        let mut fds = vec![PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)];
        let pipes = self.pipes.iter();
        fds.extend(pipes.map(|(pipe, ..)| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(format!("waiting for the command: {errno}")),
        }
        drop(fds);
        let mut sink = [0; 64];
        while matches!((&mut &*wake).read(&mut sink), Ok(n) if n > 0) {}
        self.pass_on(PASS_BYTES)
    }

    /// Passes on what the pipes hold now, about `limit_bytes` of each at most, and forgets a pipe
    /// that is at its end.
    fn pass_on(&mut self, limit_bytes: usize) -> Result<()> {
        let mut chunk = vec![0; 16 * 1024];
        let mut open = Vec::new();
        for (pipe, number, mut line) in std::mem::take(&mut self.pipes) {
            let mut passed_bytes = 0;
            let is_open = loop {
                if passed_bytes >= limit_bytes {
                    break true;
                }
                match rustix::io::read(&pipe, &mut chunk[..]) {
                    Ok(0) => break false,
                    Ok(n) => {
                        passed_bytes += n;
                        self.sent_bytes[number] += n as u64;
                        line.write_all(&chunk[..n])
                            .map_err(|error| format!("the command's output: {error}"))?;
                    }
                    Err(rustix::io::Errno::AGAIN) => break true,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(errno) => return Err(format!("the command's output: {errno}")),
                }
            };
            if is_open {
                open.push((pipe, number, line));
            } else {
                drained(&line)?;
            }
        }
        self.pipes = open;
        Ok(())
    }

    /// Passes on what is left, and waits until the host has it.
    fn drain(&mut self) -> Result<()> {
        self.pass_on(DRAIN_BYTES)?;
        self.pipes.iter().try_for_each(|(.., line)| drained(line))
    }
}

/// Waits until the host has it all. An ending child interrupts this, whatever SA_RESTART says.
fn drained(line: &File) -> Result<()> {
    setup::drain(line).map_err(|error| format!("the command's output: {error}"))
}
