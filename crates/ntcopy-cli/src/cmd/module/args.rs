//! What `ntcopy module` takes on the command line.

use std::path::PathBuf;

use clap::Args as ClapArgs;

const BUILD_HELP: &str = "\
Examples:
  ntcopy module build                                 for the running kernel
  ntcopy module build --headers /lib/modules/6.12.9-amd64/build   for another installed one
  ntcopy module build --headers ~/linux               for a kernel that you built yourself
  ntcopy module build --kernel stock:7.3              for a kernel of ntcopy kernel boot

The kernel's headers are needed: /lib/modules/RELEASE/build, a package that is called
linux-headers-RELEASE in Debian and Ubuntu. A kernel of --kernel brings its own.

Prints the path of ntcopy.ko. It is kept in the cache (NTCOPY_CACHE, else
$XDG_CACHE_HOME/ntcopy, else ~/.cache/ntcopy), and built again when the sources, the headers or
the compiler change. With DKMS, the package ntcopy-dkms does this for each new 6.12 and 7.3.

Ends with 3 where headers or the compiler are missing, and for a kernel that the module is not for.";

const LOAD_HELP: &str = "\
Examples:
  sudo ntcopy module load                  what was built or installed for this kernel
  sudo ntcopy module load ./ntcopy.ko
  sudo ntcopy module load \"$(ntcopy module build)\"

One that is loaded already is left alone. Programs may attach their sockets from then on
(ntcopy_socket_enable() of libntcopy); other programs do not notice.

Ends with 3 where there is nothing to load, or the kernel knows MSG_NTCOPY itself; with 1 where the
kernel refuses it, with what the kernel's log says.";

const UNLOAD_HELP: &str = "\
Example:
  sudo ntcopy module unload

Refused while sockets are attached, or were and are not closed yet, or a program has /dev/ntcopy
open: ntcopy module status says how many, and which.";

const STATUS_HELP: &str = "\
Examples:
  ntcopy module status
  ntcopy module status --json | jq .module.attached

Needs no root and changes nothing.";

/// The module for kernels that don't know the flag
#[derive(clap::Subcommand)]
#[command(about = "MSG_NTCOPY on the kernel that runs already: build, load, unload, look")]
pub enum Args {
    /// Build ntcopy.ko for a kernel whose headers are here
    #[command(after_help = BUILD_HELP)]
    Build(BuildArgs),
    /// Load it into the running kernel
    #[command(after_help = LOAD_HELP)]
    Load(LoadArgs),
    /// Take it out of the running kernel
    #[command(after_help = UNLOAD_HELP)]
    Unload,
    /// Say what this kernel has, what it would take, and who uses it
    #[command(after_help = STATUS_HELP)]
    Status(StatusArgs),
}

#[derive(ClapArgs)]
pub struct BuildArgs {
    /// The kernel's headers, or its source tree after it was built [default: the running kernel's]
    #[arg(long, value_name = "DIR", conflicts_with = "kernel")]
    pub headers: Option<PathBuf>,
    /// A kernel of ntcopy kernel: um+module, stock, stock:7.3
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// The compiler, instead of the one that the kernel was built with
    #[arg(long, value_name = "PROGRAM")]
    pub cc: Option<String>,
    /// Take a recorded machine for this one
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub sysroot: PathBuf,
}

#[derive(ClapArgs)]
pub struct LoadArgs {
    /// The module [default: what was built or installed for this kernel]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub struct StatusArgs {
    /// Print one JSON object instead
    #[arg(long)]
    pub json: bool,
    /// Take a recorded machine for this one
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub sysroot: PathBuf,
}
