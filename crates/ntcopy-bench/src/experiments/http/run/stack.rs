//! A proxy and its backend, running.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use ntcopy::socket::{Support, kernel_support};

use super::commands::{self, Setup};
use super::daemon::{Daemon, free_address};
use super::data::Data;
use super::programs::KnownProgram;
use super::wire::Target;
use crate::experiment::Mode;
use crate::experiments::http::{Backend, HttpMode, Way};
use crate::experiments::turns::program::Endpoint;
use crate::run::cpu_clock::CpuClock;
use crate::run::proof::{Due, OF_A_PROGRAM_PERCENT, Proof};
use crate::run::{self, Failure};

/// Why a way can't be had here, if so: a program is missing, or the kernel has no flag.
pub fn unavailable(way: Way) -> Result<Option<String>, Failure> {
    for program in KnownProgram::of_stack(way.stack) {
        let path = match program.find() {
            Ok(path) => path,
            Err(why) => return Ok(Some(why)),
        };
        if !way.stack.hints_itself()
            && way.mode.is_hinted()
            && let Some(why) = cannot_be_hinted(way.mode, &path)?
        {
            return Ok(Some(why));
        }
    }
    if !way.mode.is_hinted() {
        return Ok(None);
    }
    if way.stack.backend() == Backend::Example && kernel_support() == Support::Module {
        return Ok(Some("backend.c sets SO_NTCOPY, which the module has not".to_owned()));
    }
    run::unavailable(way.mode.sends())
}

fn cannot_be_hinted(mode: HttpMode, program: &Path) -> Result<Option<String>, Failure> {
    // It is started only where it can be hinted, and says its version.
    let output = commands::hinted(mode, program).arg("-v").output();
    let output = output.map_err(Failure::io("cannot start `ntcopy run`"))?;
    if output.status.success() {
        return Ok(None);
    }
    // A kernel without the flag says so in words of its own.
    if let Some(why) = run::unavailable(Mode::Hinted)? {
        return Ok(Some(why));
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Ok(Some(format!("`ntcopy run` cannot hint {}: {}", program.display(), why.trim())))
}

/// Addresses that a proxy is started on until one is free: another socket may take a port that was
/// free a moment ago.
const ADDRESSES: usize = 3;

fn start_proxy(setup: &Setup<'_>, between: &Endpoint) -> Result<(Daemon, SocketAddr), Failure> {
    let [program, _] = KnownProgram::of_stack(setup.way.stack);
    let mut left = ADDRESSES;
    loop {
        left -= 1;
        let address = free_address()?;
        let front = Endpoint::Tcp(address);
        let command = match program {
            KnownProgram::Proxyd => commands::proxyd(setup, &front, between)?,
            KnownProgram::Haproxy => commands::haproxy(setup, &front, between)?,
            _ => commands::nginx_proxy(setup, &front, between)?,
        };
        let cpu = setup.plan.places.map(|[_, proxy, _]| proxy);
        let mut proxy = Daemon::start(proxy_name(program), command, cpu)?;
        match proxy.program.accepts(&front, setup.patience) {
            Ok(()) => return Ok((proxy, address)),
            Err(failure) if left == 0 || !is_taken(&failure) => return Err(failure),
            Err(_) => {}
        }
    }
}

/// Whether a daemon ended since its address is another socket's: strerror()'s words.
fn is_taken(failure: &Failure) -> bool {
    failure.to_string().contains("Address already in use")
}

/// A proxy and its backend. Dropped, both are ended, the proxy first.
pub struct Running {
    way: Way,
    proxy: Daemon,
    backend: Daemon,
    target: Target,
    ourselves: CpuClock,
}

impl Running {
    pub fn start(setup: &Setup<'_>, data: &Data) -> Result<Running, Failure> {
        let between = setup.between()?;
        let [_, backend] = KnownProgram::of_stack(setup.way.stack);
        let command = match backend {
            KnownProgram::Storaged => {
                let (mode, workers) = (setup.way.mode, setup.plan.workers);
                let (objects, folder) = (setup.cell.objects(), data.folder_of_ours(setup.folder)?);
                let mut command = commands::storaged(mode, workers, objects, &folder, &between)?;
                if let Some(bytes) = setup.plan.settings.sndbuf_bytes {
                    command.arg("--sndbuf").arg(bytes.to_string());
                }
                command
            }
            KnownProgram::Example => commands::example_backend(setup, data.example(), &between)?,
            _ => {
                let root = data.folder_of_theirs().unwrap_or(setup.folder);
                commands::nginx_backend(setup, root, &between)?
            }
        };
        let cpu = setup.plan.places.map(|[_, _, backend]| backend);
        let mut backend = Daemon::start(backend.name(), command, cpu)?;
        backend.program.accepts(&between, setup.patience)?;
        // Not before: the backend's address could be the same.
        let (proxy, address) = start_proxy(setup, &between)?;
        Ok(Running {
            way: setup.way,
            proxy,
            backend,
            target: Target { address, patience: setup.patience.limit },
            ourselves: CpuClock::new(rustix::process::getpid())?,
        })
    }

    pub(super) fn target(&self) -> Target {
        self.target
    }

    /// Finds the processes whose CPU time counts; to be called once they have all been started.
    pub fn find_clocks(&mut self) -> Result<(), Failure> {
        self.proxy.find_clocks()?;
        self.backend.find_clocks()
    }

    pub fn cpu(&self) -> Result<[u64; 3], Failure> {
        Ok([self.ourselves.ns()?, self.proxy.cpu_ns()?, self.backend.cpu_ns()?])
    }

    /// Holds what was counted since then against `bytes` of bodies, when every answer has come.
    pub fn check_proof(&self, proof: &Proof, bytes: u64) -> Result<BTreeMap<String, u64>, Failure> {
        let due = match self.way.mode {
            HttpMode::Auto => Due::Anything,
            _ => Due::AtLeast(bytes / 100 * least_percent(self.way)),
        };
        let what = {
            let Way { stack, mode } = self.way;
            format!("{stack} in mode {mode} sent {bytes} bytes of bodies")
        };
        proof.check(&what, self.way.mode.sends(), due)
    }

    /// Names the daemon that is gone, if that was the cause.
    pub fn blame(&mut self, failure: Failure) -> Failure {
        match failure {
            Failure::Answer(_) | Failure::Os { .. } => {
                let daemons = [&mut self.backend.program, &mut self.proxy.program];
                daemons.into_iter().find_map(|program| program.gone()).unwrap_or(failure)
            }
            other => other,
        }
    }
}

/// The bodies' bytes in 100 that have to be counted under some name.
///
/// A backend that knows the hint hints whole bodies. nginx writes a body in pieces.
fn least_percent(way: Way) -> u64 {
    if way.stack.hints_itself() { 99 } else { OF_A_PROGRAM_PERCENT }
}

/// Two daemons of one way have logs of different names.
fn proxy_name(program: KnownProgram) -> &'static str {
    match program {
        KnownProgram::Nginx => "nginx (proxy)",
        other => other.name(),
    }
}
