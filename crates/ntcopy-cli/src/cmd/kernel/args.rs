//! What `ntcopy kernel` takes on the command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use ntcopy_kernel::{Error, Kind};
use ntcopy_record::units::{Bytes, SizeError};

use super::package::{self, PackageArgs};

const BUILD_HELP: &str = "\
Examples:
  ntcopy kernel build                       from the distribution's linux-source package
  NTCOPY_LINUX=~/linux ntcopy kernel build  from a tree of your own, which is copied, not changed
  ntcopy kernel build --kernel x86+kcsan

Kernels:
  um              Linux 7.3 with the patches, as a process of this machine: to measure in
  um:6.12         Linux 6.12 likewise; slower, and with one CPU only
  um+module       Linux 7.3 without the patches, with ntcopy.ko
  kvm             Linux 7.3 with the patches in QEMU, on the CPU itself by KVM: to measure in. We have
                  no machine whose KVM runs a whole guest, so it was never run by us
  stock           the distribution's own kernel 6.12, in QEMU, where nothing can be measured; its
                  package is unpacked into the cache and never installed
  stock:7.3       its kernel 7.3 likewise
  x86, x86:6.12   with the patches and what looks for faults (kasan, lockdep, kmemleak, ubsan,
                  fault injection), in QEMU: to test in
  x86+kcsan       with the detector of data races instead

Environment:
  NTCOPY_LINUX        a Linux source tree, instead of the package
  NTCOPY_CACHE        where kernels are kept; else $XDG_CACHE_HOME/ntcopy, else ~/.cache/ntcopy
  NTCOPY_SERIES       a directory with other patches: *.patch, then um/*.patch";

const BOOT_HELP: &str = "\
Examples:
  ntcopy kernel boot -- uname -r
  ntcopy kernel boot --sysctl net.core.ntcopy=0 -- ./my-test
  ntcopy kernel boot --cpus 2 --mem 4G -- ntcopy unix-nt-bench 1048576 100000 1 524288 524288
  ntcopy kernel boot --cpus 2 --own-caches -- taskset -c 1 ./my-test
  ntcopy kernel boot --kernel x86 --cpus 2 -- ./my-test
  ntcopy kernel boot --kernel stock -- uname -r

The command sees the host's files, directory and environment, and can write to nothing of the host
but below the folders of --write. /proc, /sys, /dev, /dev/shm and /run are the guest's own, TMPDIR
is /run, its standard input is /dev/null, and it runs as the guest's root with the rights of this
user. Its output and exit code are passed through: 128 + n when signal n ended it.

A guest whose kernel reports a fault of its own (BUG, WARNING, KASAN, KCSAN, UBSAN, lockdep, a
leak) has failed whatever the command says: the report is printed and the exit code is 1 at least. On kernels with kmemleak the end of the command is followed by a scan of some ten seconds.

Environment:
  NTCOPY_UM_SPIN      iterations that a hand-over spins before it sleeps; 0 is off
  TMPDIR              where a um guest's memory lies, on a tmpfs, where /dev/shm is too small
  NTCOPY_QEMU_CPU     the CPU that QEMU emulates, as max,vendor=GenuineIntel; else max";

/// Kernels that know the flag: build, boot, look at, clean up
#[derive(clap::Subcommand)]
#[command(about = "Kernels that know the flag: build, boot, look at, clean up")]
pub enum Args {
    /// Get a source, put the patches on it, compile it, and keep the kernel
    #[command(after_help = BUILD_HELP)]
    Build(KernelArgs),
    /// Make packages of a kernel with the patches, for a machine of one's own
    #[command(after_help = package::HELP)]
    Package(PackageArgs),
    /// Run a command of the host in the kernel, building that first when need be
    #[command(after_help = BOOT_HELP)]
    Boot(BootArgs),
    /// The kernels that were built
    #[command(after_help = "Example:\n  ntcopy kernel list --json | jq '.kernels[].path'")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove kernels that would not be booted any more
    Clean {
        /// Remove all kernels, modules, and packages that were downloaded
        #[arg(long)]
        all: bool,
    },
    /// The first process of a booted kernel
    #[command(hide = true)]
    GuestInit {
        /// The host's orders.
        spec: PathBuf,
    },
}

/// Reads the name of a kernel. Help and completion know those that people use, and beside them these
/// words; others are taken too.
#[derive(Clone)]
pub struct KernelName(pub &'static [&'static str]);

impl TypedValueParser for KernelName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = self.0.iter().copied().chain(Kind::listed());
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

#[derive(ClapArgs)]
pub struct KernelArgs {
    /// The kernel; ntcopy kernel build --help says what each is
    #[arg(long, value_name = "KERNEL", default_value = "um", value_parser = KernelName(&[]))]
    pub kernel: String,
}

impl KernelArgs {
    pub fn kind(&self) -> Result<Kind, Error> {
        Kind::parse(&self.kernel)
    }
}

#[derive(ClapArgs)]
pub struct BootArgs {
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// CPUs of the guest: 1 for what is heavy in system calls, 2 for two busy processes, 4 in QEMU
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=4))]
    pub cpus: u32,
    /// Memory of the guest
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = parse_size)]
    pub mem: u64,
    /// A folder that the command may write; may be repeated
    #[arg(long, value_name = "DIR")]
    pub write: Vec<PathBuf>,
    /// A sysctl to set before the command starts; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_sysctl)]
    pub sysctl: Vec<(String, String)>,
    /// Keep each CPU of the guest, and what it runs, on one of the host's with an L2 of its own
    #[arg(long)]
    pub own_caches: bool,
    /// Keep what the kernel says in a file
    #[arg(long, value_name = "FILE", hide = true)]
    pub console: Option<PathBuf>,
    /// Another argument for the kernel's command line; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, hide = true)]
    pub append: Vec<String>,
    /// Kill the guest when the command takes longer, in seconds; 0 is for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub timeout: u64,
    /// Kill the guest when it is not up by then, in seconds [default: 30, in QEMU 240]
    #[arg(long, value_name = "SECONDS")]
    pub boot_timeout: Option<u64>,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The memory of a guest.
fn parse_size(text: &str) -> Result<u64, String> {
    let Bytes(bytes) = text.parse().map_err(|error: SizeError| error.to_string())?;
    if bytes < 64 << 20 {
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
    use clap::Parser as _;

    use super::*;

    #[test]
    fn kernels_that_are_not_listed_are_taken_too() {
        let names = KernelName(&["host"]);
        let listed: Vec<String> =
            names.possible_values().unwrap().map(|one| one.get_name().to_owned()).collect();
        assert_eq!(listed[..3], ["host", "um", "um:6.12"]);
        let other = "x86:6.12+module";
        assert!(!listed.iter().any(|name| name == other), "{listed:?}");
        let words = ["ntcopy", "kernel", "build", "--kernel", other];
        assert!(crate::Cli::try_parse_from(words).is_ok());
    }
}
