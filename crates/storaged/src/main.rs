//! The program `storaged`: parses, calls, prints.

use std::process::ExitCode;

use httpd::program::Program;
use storaged::config::Config;
use storaged::serve::{check, create, rebuild, serve};

fn main() -> ExitCode {
    let program = Program::begin("storaged");
    let config: Config = match program.settings() {
        Ok(config) => config,
        Err(code) => return code,
    };
    let _log = match program.log(config.options.log_level) {
        Ok(log) => log,
        Err(code) => return code,
    };
    let done = match &config {
        config if config.options.check => check(config),
        config if config.create => create(config),
        config if config.rebuild => rebuild(config),
        _ => serve(config),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program.fail(1, format_args!("{error:#}")),
    }
}
