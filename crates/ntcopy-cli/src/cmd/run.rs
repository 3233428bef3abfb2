//! `ntcopy run`: an unmodified program, its large sends hinted.

mod elf;
mod filter;
mod inherited;
mod library;
mod program;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use clap::ValueEnum;
use ntcopy::socket::{self, Support};
use ntcopy::uapi;
use ntcopy_record::units::Bytes;

use self::program::Program;
use super::Ended;

/// What the kernel takes as its own smallest hinted send, where it has no setting to say so.
const KERNEL_MIN_BYTES: u64 = 4096;

const HELP: &str = "\
Examples:
  ntcopy run -- nginx -g 'daemon off;'
  ntcopy run --family unix --min-bytes 64k -- ./backend --listen /run/backend.sock
  ntcopy run -- curl -T big.iso http://archive/

The program, and what it starts, gets libntcopy-preload.so by LD_PRELOAD. That hints write, \
writev, send, sendto, sendmsg and sendmmsg. Out of its reach are programs that make their system \
calls themselves or by io_uring, those without a dynamic loader, those with more rights than their \
user, sendfile and splice (which copy nothing), and what the C library writes by itself (stdio).

Where the hint could reach no socket, nothing is started and the exit code is 3; --anyway starts \
the program all the same. Otherwise signals and exit code are those of the program; 127 if there \
is none of that name, 126 if it cannot be run.

The library reads variables, which can be set by hand beside LD_PRELOAD: NTCOPY_PRELOAD_MIN_BYTES \
(4096 if unset), NTCOPY_PRELOAD_FAMILIES (of unix, tcp, udp; unix,tcp if unset), \
NTCOPY_PRELOAD_MODE (adaptive or nt; adaptive if unset), NTCOPY_PRELOAD_FILTERS (how many seccomp \
filters are known to allow what it does; 0 if unset). One that it does not understand is named on \
standard error, and nothing is hinted.";

/// Whether the kernel may have a second thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// The kernel's rule decides, piece by piece
    Adaptive,
    /// Every hint is obeyed
    Nt,
}

/// A family of sockets that is hinted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Family {
    Unix,
    Tcp,
    Udp,
}

/// What an option's value is called there, and in the library's environment.
fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// How a program is hinted.
#[derive(clap::Args)]
pub struct Hint {
    /// The smallest send that is hinted [default: 4KiB, below which the kernel
    /// copies normally]
    #[arg(long, value_name = "SIZE")]
    pub min_bytes: Option<Bytes>,
    /// The sockets that are hinted: unix, tcp (with MPTCP), udp [default: unix,tcp]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true)]
    pub family: Vec<Family>,
    /// Whether the kernel may copy hinted bytes normally where it expects that to be faster. With
    /// `nt` it may not, and all later sends of the sockets are hinted
    #[arg(long, default_value = "adaptive")]
    pub mode: Mode,
    /// The library to load, if not the one that belongs to this program
    #[arg(long, hide = true, value_name = "FILE")]
    pub library: Option<PathBuf>,
}

#[derive(clap::Args)]
#[command(
    about = "Run a program as it is, its large sends hinted",
    override_usage = "ntcopy run [OPTIONS] -- PROGRAM...",
    long_about = "Run a program as it is, its large sends on matching sockets hinted with \
                  MSG_NTCOPY. The bytes, the errors and their order stay the same.",
    after_help = HELP
)]
pub struct Args {
    #[command(flatten)]
    hint: Hint,
    /// Start the program also where the hint reaches no socket
    #[arg(long)]
    anyway: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Names and values of the variables that the library reads. `filters` of system calls are known to
/// allow what it does.
fn settings(hint: &Hint, filters: u32) -> [(&'static str, String); 4] {
    let min_bytes = hint.min_bytes.map_or(KERNEL_MIN_BYTES, |size| size.0);
    let mut families = hint.family.clone();
    if families.is_empty() {
        families = vec![Family::Unix, Family::Tcp];
    }
    families.sort_unstable();
    families.dedup();
    let families: Vec<String> = families.iter().map(name).collect();
    [
        ("NTCOPY_PRELOAD_MIN_BYTES", min_bytes.to_string()),
        ("NTCOPY_PRELOAD_FAMILIES", families.join(",")),
        ("NTCOPY_PRELOAD_MODE", name(&hint.mode)),
        ("NTCOPY_PRELOAD_FILTERS", filters.to_string()),
    ]
}

/// A program as it would be started, and what is in the way of the hint.
pub struct Hinting {
    program: PathBuf,
    /// Whether a filter of system calls may forbid what the library does.
    is_filtered: bool,
    /// What the program has in its environment for the hint; nothing without the library.
    pub environment: Vec<(OsString, OsString)>,
    /// Why the hint would reach no socket.
    pub obstacles: Vec<String>,
    /// Whether an obstacle is this kernel, and another one would do.
    pub needs_kernel: bool,
}

impl Hinting {
    /// Tells of a program, or ends as a shell does that finds none of that name.
    pub fn of(hint: &Hint, program: &OsStr) -> anyhow::Result<Hinting> {
        let program = Program::find(program)
            .map_err(|missing| Ended { code: missing.exit_code(), why: missing.to_string() })?;
        let filters = filter::allowing();
        let settings = settings(hint, filters.as_ref().copied().unwrap_or(0));
        let is_filtered = filters.is_err();
        let kernel_obstacle = if is_filtered { None } else { kernel_obstacle() };
        let needs_kernel = kernel_obstacle.is_some();
        let library = library::find(hint.library.as_deref());
        let environment = library.as_ref().map_or(Vec::new(), |library| {
            let preload = preloads(std::env::var_os("LD_PRELOAD"), library);
            let settings = settings.map(|(name, value)| (name.into(), value.into()));
            [("LD_PRELOAD".into(), preload)].into_iter().chain(settings).collect()
        });
        let obstacles = [filters.err(), kernel_obstacle, program.obstacle, library.err()];
        let obstacles = obstacles.into_iter().flatten().collect();
        let program = program.path;
        Ok(Hinting { program, is_filtered, environment, obstacles, needs_kernel })
    }
}

/// The library after those that are there already: they see the program's calls as it made them,
/// and we what they make of them.
fn preloads(others: Option<OsString>, library: &Path) -> OsString {
    let mut all = others.unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    all
}

/// Why the hint is not taken on this kernel.
fn kernel_obstacle() -> Option<String> {
    (socket::kernel_support() == Support::None).then(|| match socket::other_series() {
        Some(other) => other.to_string(),
        None => {
            "this kernel does not know MSG_NTCOPY; one that does: ntcopy kernel boot -- COMMAND"
                .to_owned()
        }
    })
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let hinting = Hinting::of(&args.hint, &args.command[0])?;
    for obstacle in &hinting.obstacles {
        eprintln!("ntcopy: {obstacle}");
    }
    if !hinting.obstacles.is_empty() && !args.anyway {
        eprintln!("ntcopy: not started; --anyway starts it all the same");
        return Ok(ExitCode::from(super::NOT_AVAILABLE));
    }
    if socket::sysctl().ntcopy == Some(uapi::SYSCTL_OFF) {
        eprintln!("ntcopy: {}", super::stat::OFF);
    }
    let mut command = Command::new(&hinting.program);
    command.arg0(&args.command[0]).args(&args.command[1..]);
    // What is in the way of the program itself need not be in that of its children. A filter is.
    if !hinting.is_filtered {
        command.envs(hinting.environment);
    }
    inherited::pass_on(&mut command).context("cannot see which signals are blocked")?;
    // Becomes the program.
    let error = command.exec();
    eprintln!("ntcopy: {} cannot be run: {error}", hinting.program.display());
    Ok(ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_preloads_stay_and_come_first() {
        let library = Path::new("/lib/l.so");
        for (others, all) in [
            (None, "/lib/l.so"),
            (Some(""), "/lib/l.so"),
            (Some("a.so b.so"), "a.so b.so:/lib/l.so"),
        ] {
            assert_eq!(preloads(others.map(OsString::from), library), all);
        }
    }
}
