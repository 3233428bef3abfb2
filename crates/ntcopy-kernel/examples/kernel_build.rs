//! Builds a kernel before the program `ntcopy` is there: `scripts/demo.sh` has it compiled while
//! the crates are.
//!
//! usage: `kernel_build KERNEL`

use std::process::ExitCode;

use ntcopy_kernel::{BuildOptions, Error, Kind, build, progress};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    if let Err(error) = built(&name) {
        eprintln!("kernel_build: {error}");
        return ExitCode::from(error.exit_code());
    }
    ExitCode::SUCCESS
}

fn built(name: &str) -> Result<(), Error> {
    let options = BuildOptions::from_env(Kind::parse(name)?)?;
    build(&options, progress::for_stderr().as_mut()).map(drop)
}
