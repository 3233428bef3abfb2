//! Waiting for a guest: its answers, its output, its end, and whatever comes between.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::CONSOLE;
use super::launch::Launched;
use super::relay::{Passed, Relays};
use super::spec::Answer;
use super::{Boot, Outcome, fault_report};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::{Kind, RunsAs};
use crate::process::timespec;
use crate::temporary::Folder;

/// How long a guest that gave its answer may take to switch off.
const OFF_LIMIT: Duration = Duration::from_secs(5);
/// How often an emulated machine is looked at that has given its answer.
const OFF_TICK: Duration = Duration::from_millis(10);

pub(super) struct Watch {
    launched: Launched,
    begun: Instant,
    boot_limit: Duration,
    timeout: Option<Duration>,
    /// What came over the control line and is no whole line yet.
    pending: Vec<u8>,
    ready_at: Option<Instant>,
    /// The guest's last word, and when it came.
    answer: Option<(Answer, Instant)>,
    /// Set for a machine that ends when it is killed, and not before: what it has sent is
    /// counted, since what it is about to send is in no socket yet.
    ends_by_kill: bool,
    /// What had come of the output when it was looked at last.
    come_bytes: u64,
}

/// Why [`Watch::step`] ends the loop.
enum End {
    Gone(ExitStatus),
    /// It has to be killed, and this is why; nothing where its answer has been heard.
    Kill(Option<Error>),
    /// Our own output is closed, so the rest is not wanted.
    Unwanted,
}

impl Watch {
    pub(super) fn new(boot: &Boot, launched: Launched, begun: Instant) -> Self {
        Self {
            launched,
            begun,
            boot_limit: boot.boot_limit,
            timeout: boot.timeout,
            pending: Vec::new(),
            ready_at: None,
            answer: None,
            ends_by_kill: boot.kind.runs_as() == RunsAs::Qemu,
            come_bytes: 0,
        }
    }

    /// Waits until all of the guest is gone. The run directory lives on, with the console in it.
    pub(super) fn finish(
        mut self,
        boot: &Boot,
        interrupts: &Interrupts,
    ) -> (Result<Outcome>, Folder) {
        let result = self.watch(boot, interrupts);
        if boot.kind == Kind::Kvm && self.ready_at.is_none() && is_dead(&result) {
            super::kvm::did_not_come_up();
        }
        // Dropping what is left kills the guest, if it lives.
        let Launched { run_dir, group, helper, .. } = self.launched;
        drop(group);
        drop(helper);
        (result, run_dir)
    }

    fn watch(&mut self, boot: &Boot, interrupts: &Interrupts) -> Result<Outcome> {
        let ends = self.launched.out.try_clone().and_then(|out| {
            self.launched.control.set_nonblocking(true)?;
            Ok((out, self.launched.err.try_clone()?))
        });
        let (out, err) = ends.doing("opening", "a serial line")?;
        let relays = Relays::start(out, err, boot.output)?;
        let pidfd = pidfd_open(self.launched.group.pid(), PidfdFlags::empty());
        let pidfd = pidfd.doing("watching", &boot.kernel)?;
        let end = loop {
            if let Some(end) = self.step(interrupts, &relays, &pidfd)? {
                break end;
            }
        };
        let status = match end {
            End::Gone(status) => Some(status),
            End::Kill(error) => {
                self.launched.group.end().doing("waiting for", "the kernel")?;
                if let Some(error) = error {
                    return Err(error);
                }
                None
            }
            End::Unwanted => {
                self.launched.group.end().doing("waiting for", "the kernel")?;
                // What a shell says of a program that SIGPIPE ended.
                return Ok(Self::outcome(128 + 13, Default::default()));
            }
        };
        let output = relays.finish()?;
        self.hear();
        match self.answer.take() {
            Some((Answer::Exit { sent_bytes, .. }, _)) if output.bytes != sent_bytes => {
                let (sent, came) = (sent_bytes.iter().sum(), output.bytes.iter().sum::<u64>());
                Err(Error::OutputLost { sent_bytes: sent, came_bytes: came })
            }
            Some((Answer::Exit { code, .. }, _)) => Ok(Self::outcome(code, output)),
            Some((Answer::Error(text), _)) => Err(Error::Guest(text)),
            _ => Err(Error::Died {
                how: status.map_or_else(|| "killed".into(), |status| status.to_string()),
                last_lines: self.last_lines(),
            }),
        }
    }

    fn outcome(code: u8, Passed { stdout, stderr, .. }: Passed) -> Outcome {
        Outcome { code, stdout, stderr, fault_reports: Vec::new() }
    }

    fn last_lines(&self) -> Vec<String> {
        fault_report::last_lines(&self.launched.run_dir.path().join(CONSOLE))
    }

    /// Waits for the next thing to happen, and deals with it.
    fn step(
        &mut self,
        interrupts: &Interrupts,
        relays: &Relays,
        pidfd: &OwnedFd,
    ) -> Result<Option<End>> {
        if self.is_over(relays) {
            return Ok(Some(End::Kill(None)));
        }
        let deadline = self.deadline();
        let now = Instant::now();
        if let Some((at, error)) = deadline
            && at <= now
        {
            return Ok(Some(End::Kill(error.map(|(what, limit)| Error::TimedOut {
                what,
                limit,
                last_lines: self.last_lines(),
            }))));
        }
        let until = deadline.map(|(at, _)| at - now);
        let off_tick = (self.ends_by_kill && self.answer.is_some()).then_some(OFF_TICK);
        let wait = until.into_iter().chain(off_tick).min();
        let woken = self.wait(interrupts, relays, pidfd, wait)?;
        if let Some(signal) = interrupts.signal() {
            return Ok(Some(End::Kill(Some(Error::Interrupted(signal)))));
        }
        self.hear();
        if woken.output_failed {
            let error = relays.failure();
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                return Ok(Some(End::Unwanted));
            }
            let failed = Err::<(), _>(error).doing("writing", "the standard output or error");
            return Ok(Some(End::Kill(failed.err())));
        }
        if woken.gone
            && let Some(status) =
                self.launched.group.try_wait().doing("waiting for", "the kernel")?
        {
            return Ok(Some(End::Gone(status)));
        }
        Ok(None)
    }

    /// Whether an emulated machine has nothing more to say. Its output may be stuck for as long as
    /// ours is; otherwise patience is counted from the last byte that came.
    fn is_over(&mut self, relays: &Relays) -> bool {
        let Some((answer, at)) = self.answer.as_mut().filter(|_| self.ends_by_kill) else {
            return false;
        };
        let Answer::Exit { sent_bytes, .. } = answer else { return true };
        let (come_bytes, is_stuck) = relays.progress();
        if is_stuck || come_bytes != self.come_bytes {
            *at = Instant::now();
        }
        self.come_bytes = come_bytes;
        relays.have(*sent_bytes)
    }

    /// The next moment at which patience ends, and what to say then.
    fn deadline(&self) -> Option<(Instant, Option<(&'static str, Duration)>)> {
        match (&self.answer, self.ready_at) {
            (Some((_, at)), _) => Some((*at + OFF_LIMIT, None)),
            (None, None) => {
                let limit = self.boot_limit;
                Some((self.begun + limit, Some(("did not come up", limit))))
            }
            (None, Some(at)) => {
                let limit = self.timeout?;
                Some((at + limit, Some(("did not finish", limit))))
            }
        }
    }

    /// Sleeps until something happens.
    fn wait(
        &self,
        interrupts: &Interrupts,
        relays: &Relays,
        pidfd: &OwnedFd,
        limit: Option<Duration>,
    ) -> Result<Woken> {
        let watched = [
            Some(interrupts.fd()),
            Some(pidfd.as_fd()),
            Some(relays.failed()),
            // At its end the line would be readable for ever.
            self.answer.is_none().then(|| self.launched.control.as_fd()),
        ];
        let flags = |fd: &Option<_>| if fd.is_some() { PollFlags::IN } else { PollFlags::empty() };
        let mut fds = watched
            .map(|fd| PollFd::from_borrowed_fd(fd.unwrap_or_else(|| interrupts.fd()), flags(&fd)));
        let limit = limit.map(timespec);
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno).doing("waiting for", "the guest"),
        }
        let set = |index: usize| !fds[index].revents().is_empty();
        Ok(Woken { gone: set(1), output_failed: set(2) })
    }

    fn hear(&mut self) {
        let mut chunk = [0; 512];
        while let Ok(n) = (&self.launched.control).read(&mut chunk) {
            if n == 0 {
                break;
            }
            self.pending.extend_from_slice(&chunk[..n]);
        }
        while let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            match Answer::parse(String::from_utf8_lossy(&line).trim_end()) {
                Some(Answer::Ready) => {
                    self.ready_at = Some(Instant::now());
                    if !self.launched.vcpus.is_empty() {
                        // Where a CPU is not to be had, the host's choice is as good.
                        let _ = super::kvm::pin(self.launched.group.pid(), &self.launched.vcpus);
                    }
                }
                Some(answer) => self.answer = Some((answer, Instant::now())),
                None => {}
            }
        }
    }
}

/// Whether the guest died or stood still, rather than that somebody ended it.
fn is_dead(result: &Result<Outcome>) -> bool {
    matches!(result, Err(Error::TimedOut { .. } | Error::Died { .. }))
}

/// What [`Watch::wait`] woke up for.
struct Woken {
    gone: bool,
    output_failed: bool,
}
