//! `ntcopy kernel`: kernels that know the flag.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args as ClapArgs;
use ntcopy_kernel::boot::{BOOT_LIMIT, Cpus};
use ntcopy_kernel::{
    Boot, BuildOptions, Built, Entry, Error, Kind, Outcome, SourceId, State, What, progress,
};

const BUILD_HELP: &str = "\
Examples:
  ntcopy kernel build                       from the distribution's linux-source package
  NTCOPY_LINUX=~/linux ntcopy kernel build  from a tree of your own, which is copied, not changed

Environment:
  NTCOPY_LINUX        a Linux source tree, instead of the package
  NTCOPY_CACHE        where kernels are kept; else $XDG_CACHE_HOME/ntcopy, else ~/.cache/ntcopy
  NTCOPY_SERIES       a directory with other patches: *.patch, then um/*.patch
  NTCOPY_KEEP_SOURCE  keep the patched source, as --keep-source does";

const BOOT_HELP: &str = "\
Examples:
  ntcopy kernel boot -- uname -r
  ntcopy kernel boot --sysctl net.core.ntcopy=3 -- ./my-test
  ntcopy kernel boot --cpus 2 --mem 4G -- ntcopy unix-nt-bench 1048576 100000 1 524288 524288

The command sees the host's files, directory and environment; /proc, /sys, /dev, /dev/shm and /run
are the guest's own, its standard input is /dev/null, and it runs as the guest's root with the
rights of this user. Its output and exit code are passed through: 128 + n when signal n ended it.

Environment:
  NTCOPY_UM_SPIN      iterations that a hand-over spins before it sleeps; 0 is off
  NTCOPY_UM_TMPDIR    where the guest's memory lies, when not in /dev/shm";

/// Kernels that know the flag: build, boot, look at, clean up
#[derive(clap::Subcommand)]
#[command(about = "Kernels that know the flag: build, boot, look at, clean up")]
pub enum Args {
    /// Get a source, put the patches on it, compile it, and keep the kernel
    #[command(after_help = BUILD_HELP)]
    Build(BuildArgs),
    /// Run a command of the host in the kernel, building that first when need be
    #[command(after_help = BOOT_HELP)]
    Boot(BootArgs),
    /// A shell in the kernel, on this terminal
    #[command(
        after_help = "Example:\n  ntcopy kernel shell --cpus 2\n  ntcopy kernel shell -- gdb ./my-test"
    )]
    Shell(ShellArgs),
    /// The kernels that were built
    #[command(after_help = "Example:\n  ntcopy kernel list --json | jq '.kernels[].path'")]
    List(ListArgs),
    /// Remove kernels
    #[command(after_help = "Examples:\n  ntcopy kernel clean --stale   all but what would be \
                            booted now\n  ntcopy kernel clean           all kernels; downloaded \
                            packages stay\n  ntcopy kernel clean --all     the packages too")]
    Clean(CleanArgs),
    /// The first process of a booted kernel
    #[command(hide = true)]
    GuestInit {
        /// The host's orders.
        spec: PathBuf,
    },
}

/// Which kernel.
#[derive(ClapArgs)]
pub struct KernelArgs {
    /// The kernel: um (Linux 7.3 as a process of the host; um:7.3 is the same)
    #[arg(long, value_name = "KERNEL", default_value = "um")]
    kernel: String,
}

/// Arguments of `build`.
#[derive(ClapArgs)]
pub struct BuildArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// Keep the patched source
    #[arg(long)]
    keep_source: bool,
    /// Ask the mirror for a newer source package
    #[arg(long, conflicts_with = "force")]
    refresh: bool,
    /// Build again, though the kernel is there
    #[arg(long)]
    force: bool,
    /// Compilers at work at once [default: the CPUs of this process]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

/// Arguments of `boot` and `shell` that describe the guest.
#[derive(ClapArgs)]
pub struct GuestArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// CPUs of the guest: 1 for what is heavy in system calls, 2 for two busy processes
    #[arg(long, value_name = "1|2", default_value = "1")]
    cpus: Cpus,
    /// Memory of the guest; K, M, G or KiB, MiB, GiB
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = parse_size)]
    mem: u64,
    /// A sysctl to set before the command starts; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_sysctl)]
    sysctl: Vec<(String, String)>,
    /// Pin the whole guest to one CPU of the host
    #[arg(long, value_name = "CPU")]
    pin: Option<usize>,
    /// Keep what the kernel says in a file
    #[arg(long, value_name = "FILE")]
    console: Option<PathBuf>,
    /// Another argument for the kernel's command line; may be repeated
    #[arg(long, value_name = "ARG", hide_short_help = true)]
    um_arg: Vec<String>,
}

/// Arguments of `boot`.
#[derive(ClapArgs)]
pub struct BootArgs {
    #[command(flatten)]
    guest: GuestArgs,
    /// Kill the guest when the command takes longer, in seconds; 0 is for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    timeout: u64,
    /// Kill the guest when it is not up by then, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = BOOT_LIMIT.as_secs())]
    boot_timeout: u64,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Arguments of `shell`.
#[derive(ClapArgs)]
pub struct ShellArgs {
    #[command(flatten)]
    guest: GuestArgs,
    /// What to run on the terminal [default: $SHELL, else /bin/sh]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Arguments of `list`.
#[derive(ClapArgs)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `clean`.
#[derive(ClapArgs)]
pub struct CleanArgs {
    /// The downloaded source packages too
    #[arg(long, conflicts_with = "stale")]
    all: bool,
    /// Only what would not be booted any more
    #[arg(long)]
    stale: bool,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let result = match args {
        Args::Build(args) => build(&args),
        Args::Boot(args) => boot(args),
        Args::Shell(args) => shell(args),
        Args::List(args) => list(&args),
        Args::Clean(args) => clean(&args),
        Args::GuestInit { spec } => ntcopy_kernel::guest::init(&spec),
    };
    Ok(result.unwrap_or_else(|error| {
        eprintln!("ntcopy: {error}");
        ExitCode::from(error.exit_code())
    }))
}

fn options(kernel: &KernelArgs) -> Result<BuildOptions, Error> {
    BuildOptions::from_env(Kind::parse(&kernel.kernel)?)
}

fn build(args: &BuildArgs) -> Result<ExitCode, Error> {
    let mut options = options(&args.kernel)?;
    options.keep_source |= args.keep_source;
    options.refresh = args.refresh;
    options.rebuild = args.force;
    if let Some(jobs) = args.jobs {
        options.jobs = jobs.into();
    }
    let built = ntcopy_kernel::build(&options, progress::for_stderr().as_mut())?;
    println!("{}", built.path.display());
    Ok(ExitCode::SUCCESS)
}

/// The kernel of the guest, from the cache or built now.
fn kernel(guest: &GuestArgs) -> Result<Built, Error> {
    let options = options(&guest.kernel)?;
    ntcopy_kernel::build(&options, progress::for_stderr().as_mut())
}

fn guest(guest: GuestArgs, kernel: &Built, command: Vec<OsString>) -> Boot {
    let mut boot = Boot::new(kernel, command).cpus(guest.cpus).mem_bytes(guest.mem);
    for (key, value) in guest.sysctl {
        boot = boot.sysctl(key, value);
    }
    for argument in guest.um_arg {
        boot = boot.argument(argument);
    }
    if let Some(cpu) = guest.pin {
        boot = boot.pin(cpu);
    }
    if let Some(file) = guest.console {
        boot = boot.console(file);
    }
    boot
}

fn boot(args: BootArgs) -> Result<ExitCode, Error> {
    let kernel = kernel(&args.guest)?;
    let mut boot =
        guest(args.guest, &kernel, args.command).boot_limit(Duration::from_secs(args.boot_timeout));
    if args.timeout > 0 {
        boot = boot.timeout(Duration::from_secs(args.timeout));
    }
    Ok(end(&boot.run()?))
}

fn shell(args: ShellArgs) -> Result<ExitCode, Error> {
    let kernel = kernel(&args.guest)?;
    let mut command = args.command;
    if command.is_empty() {
        let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
        command.push(shell.unwrap_or_else(|| "/bin/sh".into()));
    }
    Ok(end(&guest(args.guest, &kernel, command).shell()?))
}

/// Passes the exit code on, and what the guest's kernel complained about.
fn end(outcome: &Outcome) -> ExitCode {
    for line in &outcome.complaints {
        eprintln!("ntcopy: the guest's kernel reported a fault: {line}");
    }
    ExitCode::from(outcome.code)
}

fn list(args: &ListArgs) -> Result<ExitCode, Error> {
    let options = BuildOptions::from_env(Kind::Um)?;
    let entries = ntcopy_kernel::list(&options)?;
    if args.json {
        let cache = options.cache.root();
        println!("{:#}", serde_json::json!({ "cache": cache, "kernels": entries }));
        return Ok(ExitCode::SUCCESS);
    }
    println!("cache: {}", options.cache.root().display());
    if entries.is_empty() {
        println!("no kernels yet; ntcopy kernel build makes one");
    }
    for entry in &entries {
        println!("{}", line(entry));
    }
    Ok(ExitCode::SUCCESS)
}

/// One kernel, for people.
fn line(entry: &Entry) -> String {
    let state = match entry.state {
        State::Current => "current",
        State::Stale => "stale",
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let age = age(now.saturating_sub(entry.meta.built_unix_s));
    let source = match &entry.meta.source {
        SourceId::Package { name, version } => format!("{name} {version}"),
        SourceId::Tree { path, .. } => path.clone(),
    };
    format!(
        "{:<28} {state:<8} {:>8}  {age:>12}  {} patches on {source}",
        entry.name,
        size(entry.size_bytes),
        entry.meta.patches.len()
    )
}

fn age(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s ago"),
        120..=7199 => format!("{} min ago", seconds / 60),
        7200..=172_799 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn clean(args: &CleanArgs) -> Result<ExitCode, Error> {
    let options = BuildOptions::from_env(Kind::Um)?;
    let what = match (args.all, args.stale) {
        (true, _) => What::All,
        (_, true) => What::Stale,
        _ => What::Kernels,
    };
    let removed = ntcopy_kernel::clean(&options, what, progress::for_stderr().as_mut())?;
    for item in &removed {
        println!("removed {} ({})", item.path.display(), size(item.size_bytes));
    }
    let total_bytes = removed.iter().map(|item| item.size_bytes).sum();
    println!("{} freed in {}", size(total_bytes), options.cache.root().display());
    Ok(ExitCode::SUCCESS)
}

/// Reads "512M", "2GiB", "1048576".
fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        unit => return Err(format!("'{unit}' is no unit; use K, M, G or KiB, MiB, GiB")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("'{text}' is no size"))?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(|| format!("'{text}' is too large"))?;
    let least_bytes = 64 << 20;
    if bytes < least_bytes {
        return Err("a guest needs 64 MiB at least".into());
    }
    Ok(bytes)
}

fn parse_sysctl(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("'{text}' is not of the form KEY=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("512MiB"), Ok(512 << 20));
        assert_eq!(parse_size("134217728"), Ok(128 << 20));
        for bad in ["", "G", "2T", "-1", "1K", "99999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_sysctl_needs_a_key() {
        let pair = ("net.ipv4.tcp_wmem".to_owned(), "4096 16384 4194304".to_owned());
        assert_eq!(parse_sysctl("net.ipv4.tcp_wmem=4096 16384 4194304"), Ok(pair));
        assert!(parse_sysctl("=1").is_err());
        assert!(parse_sysctl("net.core.ntcopy").is_err());
    }
}
