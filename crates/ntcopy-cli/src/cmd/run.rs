//! `ntcopy run`: an unmodified program, its large sends hinted.

mod elf;
mod filter;
mod follow;
mod inherited;
mod library;
mod program;

use std::ffi::{OsStr, OsString, c_int};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use ntcopy::recommended;
use ntcopy::socket;
use ntcopy::uapi;
use ntcopy_record::units::Bytes;

use self::program::ProgramFile;
use super::hinted::{self, Family, families, kernel_obstacle, number};
use super::{Ended, usage};

const HELP: &str = "\
Examples:
  ntcopy run -- nginx -g 'daemon off;'
  ntcopy run --family unix --min-bytes 64k -- ./backend --listen /run/backend.sock
  ntcopy run -- curl -T big.iso http://archive/

The sockets that the program makes have SO_NTCOPY, and what they accept has it from them; so have \
those that it is started with. The program, and what it starts, gets libntcopy-preload.so by \
LD_PRELOAD for that. It cannot see sockets that are made by a bare system call or by io_uring, or \
that are received from another process.

A program that the dynamic loader gives no library (statically linked, Go, with AddressSanitizer, \
with more rights than its user) is followed from outside with its descendants, as by ntcopy set \
--watch: each 20 ms in its first second, then each second. At its end it is said how many \
listeners had accepted connections before they were set.

Where the hint could reach no socket, nothing is started and the exit code is 3; --anyway starts \
the program all the same. Otherwise process ID, signals and exit code are those of the program; \
127 if there is none of that name, 126 if it cannot be run.

The library reads variables, which can be set by hand beside LD_PRELOAD: NTCOPY_PRELOAD_MIN_BYTES \
(256 KiB of streams, by the module 1 MiB, and 4 KiB of datagrams if unset), NTCOPY_PRELOAD_FAMILIES \
(of unix, tcp, udp; unix,tcp if unset), NTCOPY_PRELOAD_FILTERS (how many seccomp filters are known \
to allow what it does; 0 if unset). One that it does not understand is named on standard error, and \
nothing is hinted.";

/// How a program is hinted.
#[derive(clap::Args)]
pub struct Hint {
    #[arg(long, value_name = "SIZE", help = hinted::min_bytes_help(""))]
    pub min_bytes: Option<Bytes>,
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true,
          help = hinted::family_help("hinted"))]
    pub family: Vec<Family>,
    /// The library to load, if not the one that belongs to this program
    #[arg(long, hide = true, value_name = "FILE")]
    pub library: Option<PathBuf>,
}

#[derive(clap::Args)]
#[command(
    about = "Run a program as it is, its large sends hinted",
    override_usage = "ntcopy run [OPTIONS] -- PROGRAM...",
    long_about = "Run a program as it is, with large sends on matching sockets hinted. The bytes, \
                  the errors and their order stay the same.",
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

impl Hint {
    /// The options of `ntcopy set` that say the same.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if let Some(bytes) = self.min_bytes {
            words.extend(["--min-bytes".into(), bytes.0.to_string().into()]);
        }
        if !self.family.is_empty() {
            let families = families(&self.family);
            let families: Vec<&str> = families.iter().map(|family| family.name()).collect();
            words.extend(["--family".into(), families.join(",").into()]);
        }
        words
    }
}

/// Names and values of the variables that the library reads. `filters` of system calls are known to
/// allow what it does.
fn settings(how: &HintOptions, filters: u32) -> Vec<(&'static str, String)> {
    let families: Vec<&str> = how.families.iter().map(|family| family.name()).collect();
    let mut settings = vec![
        ("NTCOPY_PRELOAD_FAMILIES", families.join(",")),
        ("NTCOPY_PRELOAD_FILTERS", filters.to_string()),
    ];
    let min_bytes = how.min_bytes.map(|bytes| bytes.to_string());
    settings.extend(min_bytes.map(|bytes| ("NTCOPY_PRELOAD_MIN_BYTES", bytes)));
    settings
}

/// Which sockets are set, and to what.
#[derive(Clone, Debug)]
pub struct HintOptions {
    pub min_bytes: Option<c_int>,
    pub families: Vec<recommended::Family>,
}

/// A program as it would be started, and what is in the way of the hint.
pub struct Hinting {
    program: PathBuf,
    how: HintOptions,
    /// Whether a filter of system calls may forbid what the library does.
    is_filtered: bool,
    /// What the program has in its environment for the hint; nothing without the library.
    pub environment: Vec<(OsString, OsString)>,
    /// Why the hint would reach no socket.
    obstacles: Vec<String>,
    /// Why the library does not reach the program, which can be followed from outside.
    out_of_reach: Vec<String>,
    /// Whether an obstacle is this kernel, and another one would do.
    pub needs_kernel: bool,
}

impl Hinting {
    /// Tells of a program, or ends as a shell does that finds none of that name.
    pub fn of(hint: &Hint, program: &OsStr) -> anyhow::Result<Hinting> {
        let min_bytes = hint.min_bytes.map(number).transpose().map_err(usage)?;
        let how = HintOptions { min_bytes, families: families(&hint.family) };
        let program = ProgramFile::find(program)
            .map_err(|missing| Ended { code: missing.exit_code(), why: missing.to_string() })?;
        let filters = filter::allowing();
        let settings = settings(&how, filters.as_ref().copied().unwrap_or(0));
        let is_filtered = filters.is_err();
        let kernel_obstacle = if is_filtered { None } else { kernel_obstacle() };
        let needs_kernel = kernel_obstacle.is_some();
        let library = library::find(hint.library.as_deref());
        let is_fatal = program.obstacle.as_ref().is_some_and(|obstacle| obstacle.is_fatal);
        let environment = match &library {
            Ok(library) if !is_fatal => {
                let preload = preloads(std::env::var_os("LD_PRELOAD"), library);
                let settings =
                    settings.into_iter().map(|(name, value)| (name.into(), value.into()));
                let sanitizer = sanitizer_options(std::env::var_os("ASAN_OPTIONS"));
                let own = [("LD_PRELOAD".into(), preload), ("ASAN_OPTIONS".into(), sanitizer)];
                own.into_iter().chain(settings).collect()
            }
            _ => Vec::new(),
        };
        let out_of_reach = [program.obstacle.map(|obstacle| obstacle.why), library.err()];
        let out_of_reach: Vec<String> = out_of_reach.into_iter().flatten().collect();
        let forbidden = if out_of_reach.is_empty() { None } else { filter::forbids_following() };
        let obstacles = [filters.err(), kernel_obstacle, forbidden];
        let obstacles = obstacles.into_iter().flatten().collect();
        let program = program.path;
        Ok(Hinting {
            program,
            how,
            is_filtered,
            environment,
            obstacles,
            out_of_reach,
            needs_kernel,
        })
    }

    /// Why the hint would reach no socket.
    pub fn obstacles(&self) -> &[String] {
        &self.obstacles
    }

    /// Why the library does not reach the program, whose sockets can be set from outside.
    pub fn out_of_reach(&self) -> &[String] {
        &self.out_of_reach
    }

    /// All that is in the way of the library.
    pub fn in_the_way(&self) -> impl Iterator<Item = &String> {
        self.obstacles.iter().chain(&self.out_of_reach)
    }
}

/// The library after those that are there already: they see the program's calls as it made them,
/// and we what they make of them.
fn preloads(others: Option<OsString>, library: &Path) -> OsString {
    joined(others.unwrap_or_default(), library.as_os_str())
}

/// Two lists as one; one that is empty adds no separator.
fn joined(mut first: OsString, second: &OsStr) -> OsString {
    if !first.is_empty() && !second.is_empty() {
        first.push(":");
    }
    first.push(second);
    first
}

/// The options with one more: AddressSanitizer's runtime ends a program that has a library loaded
/// before it, and what the program starts may have that runtime. A later option of the user's wins.
fn sanitizer_options(others: Option<OsString>) -> OsString {
    joined("verify_asan_link_order=0".into(), &others.unwrap_or_default())
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let hinting = Hinting::of(&args.hint, &args.command[0])?;
    let is_reached = hinting.obstacles.is_empty();
    if !is_reached {
        hinting.in_the_way().for_each(|obstacle| eprintln!("ntcopy: {obstacle}"));
        if !args.anyway {
            eprintln!("ntcopy: not started; --anyway starts it all the same");
            return Ok(ExitCode::from(super::NOT_AVAILABLE));
        }
    }
    if socket::sysctl() == Some(uapi::SYSCTL_OFF) {
        eprintln!("ntcopy: {}", super::stat::OFF);
    }
    let mut command = Command::new(&hinting.program);
    command.arg0(&args.command[0]).args(&args.command[1..]);
    // What is in the way of the program itself need not be in that of its children. A filter is.
    if !hinting.is_filtered {
        command.envs(hinting.environment.iter().map(|(name, value)| (name, value)));
    }
    inherited::pass_on(&mut command).context("cannot see which signals are blocked")?;
    if is_reached {
        reach(&hinting)?;
    }
    // Becomes the program.
    let error = command.exec();
    eprintln!("ntcopy: {} cannot be run: {error}", hinting.program.display());
    Ok(ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }))
}

/// Sets the sockets that the program is started with, and has it followed where the library does
/// not reach it.
fn reach(hinting: &Hinting) -> anyhow::Result<()> {
    inherited::set_sockets(&hinting.how).context("cannot set the sockets that are passed on")?;
    if hinting.out_of_reach.is_empty() {
        return Ok(());
    }
    for why in &hinting.out_of_reach {
        eprintln!("ntcopy: {why}; it is followed from outside");
    }
    follow::start(&hinting.how).context("cannot follow the program")
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

    #[test]
    fn a_users_own_options_of_the_sanitizer_come_last() {
        assert_eq!(sanitizer_options(None), "verify_asan_link_order=0");
        let own = Some("verify_asan_link_order=1".into());
        assert_eq!(sanitizer_options(own), "verify_asan_link_order=0:verify_asan_link_order=1");
    }
}
