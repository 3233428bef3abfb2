//! Builds a kernel before the program `ntcopy` is there: `scripts/demo.sh` has it compiled while
//! the crates are.
//!
//! usage: `kernel_build KERNEL`, where `auto` is what `ntcopy bench --kernel auto` takes

use std::process::ExitCode;

use ntcopy_kernel::{BuildOptions, Error, Kind, boot, build, progress};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    if let Err(error) = built(&name) {
        eprintln!("kernel_build: {error}");
        return ExitCode::from(error.exit_code());
    }
    ExitCode::SUCCESS
}

fn built(name: &str) -> Result<(), Error> {
    let kind = if name == "auto" { boot::best()?.0 } else { Kind::parse(name)? };
    let options = BuildOptions::from_env(kind)?;
    build(&options, progress::for_stderr().as_mut()).map(drop)
}
