//! The daemon: listeners, workers, connections, and the threads that wait for the disk.
//!
//! A worker is a thread with an epoll of its own; it owns its connections, and nothing that it
//! does waits for a disk, but for page faults and page-cache writes. Syncs, opening, verifying,
//! and listing are jobs for a few other threads (`jobs`), whose results come back
//! through the worker's mailbox.
//!
//! Connections are registered once, edge-triggered, for both directions: a request on a kept-alive
//! connection then costs no `epoll_ctl`. Listeners are level-triggered, and one connection is
//! accepted a turn, so that workers that share a unix socket (`EPOLLEXCLUSIVE`) share its load.

mod accept;
mod admin;
mod connection;
mod handle;
mod jobs;
pub mod listen;
mod log;
mod metrics;
mod plan;
mod respond;
mod shared;
mod slab;
mod upload;
mod worker;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use ntcopy::socket::Support;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::address::Address;
use crate::config::{Config, ConfigError, Tunables};
use crate::send::ModeSetting;
use crate::store::{OpenError, Store};
use accept::Door;
use listen::{Listening, listen};
use shared::Shared;
use worker::Worker;

pub use self::listen::ListenError;
pub use self::plan::{Plan, plan};

/// Descriptors for everything but connections and open objects.
const OTHER_FILES: u64 = 128;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("cannot {doing}: {cause}")]
    Io { doing: &'static str, cause: io::Error },
}

/// Serves until SIGTERM or SIGINT, then ends what is in flight; a second one ends it at once.
/// SIGHUP opens the access log anew and takes over what `reload` says.
///
/// When every address is listened on they are printed on standard output, a line each:
/// `listening on …`, `metrics on …`.
///
/// # Errors
///
/// It can't begin. Nothing ends it later but a signal.
pub fn serve(
    config: Config,
    mut reload: impl FnMut() -> Result<Tunables, ConfigError>,
) -> Result<(), ServeError> {
    let io = |doing| move |cause| ServeError::Io { doing, cause };
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(io("catch signals"))?;
    ignore_signals_of_writes();
    raise_file_limit(&config);
    let store = Store::open(&config.data, config.open_objects)?;
    let shared = Arc::new(Shared::new(config, store).map_err(io("start"))?);
    say_what_is_missing(&shared);
    let (doors, listening) = open_doors(&shared.config)?;
    let (ended, ends) = channel::<()>();
    let mut threads = Vec::new();
    for (number, doors) in doors.into_iter().enumerate() {
        let worker = Worker::new(number, Arc::clone(&shared), doors)
            .map_err(|errno| io("set up a worker")(errno.into()))?;
        let ended = ended.clone();
        let run = move || {
            worker.run();
            let _ = ended.send(());
        };
        let thread = thread::Builder::new().name(format!("worker-{number}")).spawn(run);
        threads.push(thread.map_err(io("start a worker"))?);
    }
    drop(ended);
    announce(&listening).map_err(io("write to standard output"))?;
    for signal in signals.forever() {
        if signal != SIGHUP {
            break;
        }
        reload_all(&shared, &mut reload);
    }
    tracing::info!("ending: no new connections, and what is in flight gets its time");
    shared.drain();
    // A socket that has no name can't be connected to.
    drop(listening);
    wait_for_workers(&mut signals, &ends);
    for thread in threads {
        let _ = thread.join();
    }
    tracing::info!("ended");
    Ok(())
}

/// Until all are done; a second signal ends the process.
fn wait_for_workers(signals: &mut Signals, ends: &std::sync::mpsc::Receiver<()>) {
    loop {
        match ends.recv_timeout(Duration::from_millis(50)) {
            Err(RecvTimeoutError::Disconnected) => return,
            _ if signals.pending().any(|signal| signal != SIGHUP) => {
                tracing::warn!("a second signal: ending at once");
                // Every acknowledged object is durable; sockets have lost their names already.
                std::process::exit(0);
            }
            _ => {}
        }
    }
}

fn reload_all(shared: &Shared, reload: &mut dyn FnMut() -> Result<Tunables, ConfigError>) {
    if let Some(log) = &shared.access_log
        && let Err(error) = log.reopen()
    {
        tracing::error!(%error, "cannot open the access log anew; the old one stays");
    }
    match reload() {
        Ok(tunables) => {
            shared.tune(tunables);
            tracing::info!("reloaded");
        }
        Err(error) => tracing::error!(%error, "not reloaded; all stays as it was"),
    }
}

type Doors = Vec<Vec<Door>>;

/// The doors of each worker, and what is to be announced (true: for measurements) and removed.
fn open_doors(config: &Config) -> Result<(Doors, Vec<(Listening, bool)>), ServeError> {
    let mut doors: Doors = (0..config.workers).map(|_| Vec::new()).collect();
    let mut all = Vec::new();
    let admin = config.metrics.iter().map(|address| (address, true));
    for (address, admin) in config.listen.iter().map(|address| (address, false)).chain(admin) {
        let workers = if admin { 1 } else { config.workers };
        let mut listening = listen(address, workers, config.socket_mode)?;
        let tcp = matches!(address, Address::Tcp(_));
        let sockets = std::mem::take(&mut listening.sockets);
        let shared_by_all = sockets.len() == 1 && workers > 1;
        for (worker, doors) in doors.iter_mut().enumerate().take(workers) {
            let socket = &sockets[if shared_by_all { 0 } else { worker }];
            let socket = rustix::io::fcntl_dupfd_cloexec(socket, 0)
                .map_err(|errno| ServeError::Io { doing: "listen", cause: errno.into() })?;
            doors.push(Door::new(socket, tcp, admin));
        }
        all.push((listening, admin));
    }
    Ok((doors, all))
}

fn announce(listening: &[(Listening, bool)]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (one, admin) in listening {
        writeln!(out, "{} on {}", if *admin { "metrics" } else { "listening" }, one.address)?;
    }
    out.flush()
}

fn say_what_is_missing(shared: &Shared) {
    let mode = shared.config.tunables.mode;
    let hinted = matches!(mode, ModeSetting::Nt | ModeSetting::Adaptive);
    match (shared.hints, hinted) {
        (Support::None, true) => {
            let why = ntcopy::socket::other_series().map_or_else(
                || "this kernel does not know MSG_NTCOPY".to_owned(),
                |other| other.to_string(),
            );
            tracing::warn!("--mode {mode:?}: {why}; bodies are copied normally");
        }
        (support, _) => tracing::info!(hints = support.name(), ?mode, "sending"),
    }
}

/// A peer that is gone, and a file that grows beyond the process's limit, are errors of the write,
/// not a death.
fn ignore_signals_of_writes() {
    for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
        // SAFETY: ignoring a signal runs no code of ours in a handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn raise_file_limit(config: &Config) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(errno) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%errno, "cannot raise the limit of open files");
    }
    let wanted = (config.connections_max + config.open_objects) as u64 + OTHER_FILES;
    if let Some(maximum) = limit.maximum.filter(|maximum| *maximum < wanted) {
        tracing::warn!(
            maximum,
            wanted,
            "fewer open files are allowed than connections and objects may take; beyond it \
             clients get a 503"
        );
    }
}
