//! `ntcopy kernel package`: packages of a kernel, for a machine of one's own.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use ntcopy_kernel::package::{PackageOptions, package};
use ntcopy_kernel::{Error, Release, progress};

pub const HELP: &str = "\
Examples:
  ntcopy kernel package                       of the running kernel's configuration, Linux 7.3
  ntcopy kernel package --release 6.12 --config /boot/config-6.12.48+deb13-amd64 --out debs

The source is the distribution's linux-source package (or the tree that NTCOPY_LINUX names), the
patches are those of `ntcopy kernel build`, and make bindeb-pkg packs it. Nothing is installed.

Environment: NTCOPY_LINUX, NTCOPY_CACHE and NTCOPY_SERIES, as for `ntcopy kernel build`";

#[derive(ClapArgs)]
pub struct PackageArgs {
    /// A whole configuration (.config, maybe .gz) [default: the running kernel's]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Which line of Linux
    #[arg(long, default_value = "7.3", value_parser = PossibleValuesParser::new(["7.3", "6.12"])
          .map(|name| if name == "6.12" { Release::V6_12 } else { Release::Newest }))]
    pub release: Release,
    /// Where the packages and the log of their build go
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Compile without information for debuggers, and so without BTF: a fraction of the disk
    #[arg(long)]
    pub no_debug_info: bool,
}

pub fn run(args: PackageArgs) -> Result<ExitCode, Error> {
    let mut options = PackageOptions::from_env(args.release)?;
    options.config = args.config;
    options.debug_info = !args.no_debug_info;
    options.out = args.out;
    for file in package(&options, progress::for_stderr().as_mut())? {
        println!("{}", file.display());
    }
    eprintln!("ntcopy: docs/guide/install.md says how to boot it once, and how to go back");
    Ok(ExitCode::SUCCESS)
}
