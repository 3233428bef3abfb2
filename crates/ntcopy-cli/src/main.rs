//! The program `ntcopy`; all of it is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ntcopy_cli::main()
}
