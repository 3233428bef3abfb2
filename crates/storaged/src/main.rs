//! The program `storaged`: parses, calls, prints.
//!
//! Exit codes: 0 done; 1 failed; 2 usage.

use std::process::ExitCode;

use httpd::program::{Program, USAGE};
use ntcopy::socket::Support;
use storaged::config::Config;
use storaged::fault;
use storaged::serve::serve;

fn main() -> ExitCode {
    let program = Program::begin("storaged");
    if let Err(error) = fault::init() {
        return program.fail(USAGE, error);
    }
    let config = match Config::of_words(std::env::args_os().collect()) {
        Ok(Some(config)) => config,
        Ok(None) => return program.print(capabilities()),
        Err(error) => return program.usage(&error),
    };
    program.log(config.log_level);
    match serve(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program.fail(1, error),
    }
}

/// What tests ask before they skip something.
fn capabilities() -> String {
    let mut words = vec!["splice", "sendfile", "vmsplice"];
    match ntcopy::socket::kernel_support() {
        Support::Kernel => words.push("nt-kernel"),
        Support::Module => words.push("nt-module"),
        Support::None => {}
    }
    if fault::OBEYED {
        words.push("fault-points");
    }
    words.join("\n") + "\n"
}
