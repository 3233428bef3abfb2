//! Starting the program: in our place, or beside us while we watch the counters.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};

use anyhow::Context;
use ntcopy::socket::{self, Counters};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;

use super::program::Program;
use super::{Settings, inherited};

/// Signals that are meant for the program, whoever gets them.
const PASSED_ON: [i32; 9] =
    [SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];
/// Where a signal came from: the kernel itself, so that a terminal gave it to the program too.
const FROM_KERNEL: i32 = libc::SI_KERNEL;

/// The program with its arguments, and the library in its environment.
pub fn command(
    program: &Program,
    line: &[OsString],
    settings: &Settings,
    library: Option<&Path>,
) -> anyhow::Result<Command> {
    let mut command = Command::new(program.path());
    command.arg0(&line[0]).args(&line[1..]);
    if let Some(library) = library {
        command.env("LD_PRELOAD", preloads(std::env::var_os("LD_PRELOAD"), library));
        command.envs(settings.environment());
    }
    inherited::pass_on(&mut command).context("cannot see which signals are blocked")?;
    Ok(command)
}

/// The library after those that are there already: they see the program's calls as it made them,
/// and we what they make of them.
pub fn preloads(others: Option<OsString>, library: &Path) -> OsString {
    let mut all = others.unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    all
}

pub fn instead(mut command: Command) -> anyhow::Result<ExitCode> {
    let error = command.exec();
    Ok(not_started(&command, &error))
}

fn not_started(command: &Command, error: &io::Error) -> ExitCode {
    eprintln!("ntcopy: {} cannot be run: {error}", command.get_program().display());
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// Runs the program, says what was counted meanwhile, and ends as it ended.
pub fn and_count(mut command: Command) -> anyhow::Result<ExitCode> {
    let before = socket::counters()?;
    // Before the program is there, so that no signal for it is lost. What is ignored here, as
    // under nohup, it ignores too.
    let passed_on = PASSED_ON.into_iter().filter(|signal| !inherited::is_ignored(*signal));
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(passed_on.chain([SIGCHLD]))
        .context("cannot take over signals")?;
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_started(&command, &error)),
    };
    let status = watch(&mut child, &mut signals)?;
    match (before, socket::counters()?) {
        (Some(before), Some(after)) => eprint!("{}", counted(&before, &after)?),
        _ => eprintln!("ntcopy: this kernel counts nothing: it does not know MSG_NTCOPY"),
    }
    end_as(status)
}

/// Passes signals on until the program has ended.
fn watch(child: &mut Child, signals: &mut SignalsInfo<WithRawSiginfo>) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        for info in signals.wait() {
            let Some(signal) = Signal::from_named_raw(info.si_signo) else { continue };
            if info.si_signo != SIGCHLD && info.si_code != FROM_KERNEL {
                // It may have ended just now; then there is no process to tell.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

fn counted(before: &Counters, after: &Counters) -> anyhow::Result<String> {
    let totals = super::super::stat::totals_since(before, after)?;
    Ok(format!("ntcopy: meanwhile, in this network namespace:\n{totals}"))
}

/// By the same exit code, or by the same signal.
fn end_as(status: ExitStatus) -> anyhow::Result<ExitCode> {
    if let Some(code) = status.code() {
        // The code of a process is a byte.
        return Ok(ExitCode::from(code as u8));
    }
    let signal = status.signal().context("the program neither ended nor was killed")?;
    // Its core is the one that may be wanted.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).context("cannot forbid a core file of this program")?;
    signal_hook::low_level::emulate_default_handler(signal)
        .with_context(|| format!("cannot end by signal {signal}"))?;
    // A signal that by default ends no process ended the program.
    Ok(ExitCode::from(128_u8.saturating_add(signal as u8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_preloads_stay_and_come_first() {
        let library = Path::new("/lib/l.so");
        assert_eq!(preloads(None, library), "/lib/l.so");
        assert_eq!(preloads(Some("".into()), library), "/lib/l.so");
        assert_eq!(preloads(Some("a.so b.so".into()), library), "a.so b.so:/lib/l.so");
    }
}
