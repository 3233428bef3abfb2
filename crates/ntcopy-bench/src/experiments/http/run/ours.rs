//! storaged and proxyd: how they are started.

use std::path::Path;
use std::process::Command;

use super::programs::Program;
use super::setup::Setup;
use crate::experiments::http::HttpMode;
use crate::experiments::turns::program::Endpoint;
use crate::run::Failure;

/// Seconds that a kept connection may be silent: longer than other modes are measured meanwhile.
const IDLE_S: u64 = 3600;

pub(super) fn storaged(
    mode: &str,
    (workers, objects): (u32, u64),
    data: &Path,
    at: &Endpoint,
) -> Result<Command, Failure> {
    let mut command = Command::new(Program::Storaged.find().map_err(Failure::Limit)?);
    command.args(["--log-level", "warn", "--mode", mode]);
    command.arg("--workers").arg(workers.to_string());
    // Each object stays open, so that its bytes are verified once and its pages stay mapped.
    command.arg("--open-objects").arg((objects + 16).to_string());
    command.arg("--idle-timeout").arg(IDLE_S.to_string());
    command.arg("--listen").arg(at.to_string()).arg("--data").arg(data);
    Ok(command)
}

/// What proxyd does with what it writes itself. A backend that copies nothing leaves heads.
fn proxy_mode(mode: HttpMode) -> &'static str {
    match mode {
        HttpMode::Nt => "nt",
        HttpMode::Adaptive | HttpMode::Auto => "adaptive",
        HttpMode::Copy | HttpMode::Sendfile | HttpMode::Vmsplice => "copy",
    }
}

pub fn proxyd(setup: &Setup<'_>, at: &Endpoint, backend: &Endpoint) -> Result<Command, Failure> {
    let mut command = Command::new(Program::Proxyd.find().map_err(Failure::Limit)?);
    command.args(["--log-level", "warn", "--mode", proxy_mode(setup.way.mode)]);
    command.arg("--workers").arg(setup.plan.workers.to_string());
    command.arg("--listen").arg(at.to_string()).arg("--backend").arg(backend.to_string());
    for option in ["--idle-timeout", "--backend-idle-timeout"] {
        command.arg(option).arg(IDLE_S.to_string());
    }
    command.args(["--backend-idle", "4096"]);
    Ok(command)
}
