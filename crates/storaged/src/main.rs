//! The program `storaged`: parses, calls, prints.

use std::process::ExitCode;

use httpd::program::Program;
use storaged::config::Config;
use storaged::serve::serve;

fn main() -> ExitCode {
    let program = Program::begin("storaged");
    let config: Config = match program.settings() {
        Ok(config) => config,
        Err(code) => return code,
    };
    program.log(config.options.log_level);
    match serve(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program.fail(1, format_args!("{error:#}")),
    }
}
