//! The program `storaged`: parses, calls, prints.
//!
//! Exit codes: 0 done; 1 failed; 2 usage.

use std::process::ExitCode;

use httpd::program::Program;
use ntcopy::socket::Support;
use storaged::config::Config;
use storaged::serve::serve;

fn main() -> ExitCode {
    let program = Program::begin("storaged");
    let config: Config = match program.settings(capabilities) {
        Ok(config) => config,
        Err(code) => return code,
    };
    program.log(config.options.log_level);
    match serve(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program.fail(1, format_args!("{error:#}")),
    }
}

/// What tests ask before they skip something.
fn capabilities() -> Vec<&'static str> {
    let mut words = vec!["splice", "sendfile", "vmsplice"];
    match ntcopy::socket::kernel_support() {
        Support::Kernel => words.push("nt-kernel"),
        Support::Module => words.push("nt-module"),
        Support::None => {}
    }
    words
}
