//! The whole: what listeners let in, what workers share, and how all of it starts and stops.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use httpd::config::ConfigError;
use httpd::server::Handle;
use httpd::{AccessLog, Address, Door, Reply, StartError, Stop};
use rustls::ServerConfig;

use crate::access::Line;
use crate::backend::{Backend, HealthRule, Place, pick};
use crate::config::{Config, Limits, Timeouts, TlsBy};
use crate::metrics::{Counters, render};
use crate::mode::Applied;
use crate::pipe::Pool;
use crate::policy::Policy;
use crate::upstreams::Upstreams;
use crate::{session, splice, tls};

/// How often idle connections to backends are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// For a request of the metrics, and again for its answer.
const METRICS_PATIENCE: Duration = Duration::from_secs(2);

/// Why the proxy can't start.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The settings are no good.
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("access log: {0}")]
    Log(io::Error),
}

/// What is spoken at a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    Http,
    Https,
    Metrics,
}

/// A place where clients come in.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) opening: Opening,
    pub(crate) policy: Policy,
}

/// What the workers and those who steer them share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) doors: Vec<Gate>,
    backends: Vec<Arc<Backend>>,
    pub(crate) health: HealthRule,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) http: httpd::Limits,
    pub(crate) log: Option<AccessLog>,
    /// What clients of TLS are offered.
    tls: Mutex<Option<Arc<ServerConfig>>>,
    /// How clients are sent to.
    pub(crate) mode: Applied,
    /// Whether bodies may be spliced, and can be.
    pub(crate) splice: bool,
    /// Whether the kernel does TLS after the handshake.
    pub(crate) kernel_tls: bool,
    counters: Vec<Arc<Counters>>,
    handle: OnceLock<Handle>,
}

impl Shared {
    fn new(config: &Config, doors: Vec<Gate>, workers: usize) -> Result<Shared, Failure> {
        let log = config.access_log.as_deref().map(AccessLog::open).transpose();
        Ok(Shared {
            doors,
            backends: config.backends.iter().cloned().map(Backend::new).map(Arc::new).collect(),
            health: HealthRule {
                failures: config.health.failures,
                down_for: Duration::from_millis(config.health.down_ms),
            },
            timeouts: config.timeouts,
            limits: config.limits,
            http: config.limits.http(),
            log: log.map_err(Failure::Log)?,
            tls: Mutex::new(config.offered()?),
            mode: config.mode.applied(),
            splice: config.splice && splice::probe(),
            kernel_tls: config.tls.by == TlsBy::Ktls && tls::kernel_is_available(),
            counters: (0..workers).map(|_| Arc::default()).collect(),
            handle: OnceLock::new(),
        })
    }

    /// What clients of TLS are offered now.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn metrics(&self) -> String {
        let counts = self.handle.get().map(Handle::counts).unwrap_or_default();
        render(&counts, self.counters.iter().map(|counters| &**counters), &self.mode)
    }

    pub(crate) async fn serve_metrics(&self, mut conn: httpd::Conn) {
        let limits = httpd::Limits { head_bytes: 8 << 10, ..httpd::Limits::default() };
        let Ok(head) = conn.head(&limits, METRICS_PATIENCE).await else { return };
        let (status, body) = match httpd::parse_request(&conn.input.bytes()[..head], &limits) {
            Err(refusal) => (refusal.status, format!("{}\n", refusal.reason)),
            Ok(request) if request.target.path != "/metrics" => (404, "try /metrics\n".to_owned()),
            Ok(_) => (200, self.metrics()),
        };
        let mut reply = Reply::new(status, false);
        reply.field("Content-Type", httpd::metrics::CONTENT_TYPE);
        let reply = reply.end_with(body.as_bytes(), conn.input.bytes().starts_with(b"HEAD "));
        let sent = tokio::time::timeout(METRICS_PATIENCE, conn.stream.send_all(&reply)).await;
        if let Ok(Ok(())) = sent {
            conn.stream.end_sending();
            conn.linger().await;
        }
    }
}

/// What one worker's sessions share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) upstreams: Rc<Upstreams>,
    pub(crate) pipes: RefCell<Pool>,
    turn: Cell<usize>,
}

impl Worker {
    fn new(shared: &Arc<Shared>, index: usize) -> Worker {
        let (limits, counters) = (&shared.limits, &shared.counters[index]);
        let upstreams = Rc::new(Upstreams::new(
            &shared.backends,
            limits.backend_connections,
            limits.backend_idle,
            Arc::clone(counters),
        ));
        tokio::task::spawn_local(expire(Rc::clone(&upstreams), shared.timeouts.backend_idle()));
        Worker {
            shared: Arc::clone(shared),
            counters: Arc::clone(counters),
            upstreams,
            pipes: RefCell::new(Pool::new(limits.pipes, limits.pipe_bytes)),
            turn: Cell::new(0),
        }
    }

    /// The backend for the next try.
    pub(crate) fn pick(&self, tried: Option<&Arc<Backend>>) -> Arc<Backend> {
        let mut turn = self.turn.get();
        let picked = Arc::clone(pick(&self.shared.backends, &mut turn, tried, Instant::now()));
        self.turn.set(turn);
        picked
    }

    /// Counts an exchange that was answered, by the proxy or a backend.
    pub(crate) fn answered(&self, status: u16, took: Duration) {
        self.counters.responses[usize::from(status / 100).clamp(1, 5) - 1].up();
        self.counters.durations.took(took);
    }

    pub(crate) fn log(&self, line: &Line<'_>) {
        if let Some(log) = &self.shared.log {
            log.line(line.text());
        }
    }
}

async fn expire(upstreams: Rc<Upstreams>, patience: Duration) {
    loop {
        tokio::time::sleep(LOOK.min(patience)).await;
        upstreams.expire(patience);
    }
}

#[derive(Debug)]
struct Service(Arc<Shared>);

impl httpd::Service for Service {
    type Worker = Worker;

    fn worker(&self, index: usize) -> Worker {
        Worker::new(&self.0, index)
    }

    fn serve(worker: Rc<Worker>, conn: httpd::Conn) -> impl Future<Output = ()> + 'static {
        session::serve(worker, conn)
    }

    fn no_room(&self, door: usize) -> Vec<u8> {
        match self.0.doors[door].opening {
            Opening::Https => Vec::new(),
            Opening::Http | Opening::Metrics => {
                let mut reply = Reply::new(503, false);
                reply.field("Content-Type", "text/plain");
                reply.end_with(b"no room for another connection\n", false)
            }
        }
    }
}

/// A running proxy. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    config: Config,
    server: httpd::Server,
    addresses: Addresses,
}

/// Where a proxy listens, with the ports that the kernel chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Plain HTTP.
    pub plain: Vec<Address>,
    /// HTTP over TLS.
    pub tls: Vec<Address>,
    /// Metrics.
    pub metrics: Vec<Address>,
}

impl Server {
    /// Binds everything, then starts the workers.
    ///
    /// # Errors
    ///
    /// The settings are no good, an address is taken, or the system refuses.
    pub fn start(config: Config) -> Result<Server, Failure> {
        config.check()?;
        let workers = match config.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let (doors, gates) = doors(&config)?;
        let shared = Arc::new(Shared::new(&config, gates, workers)?);
        announce(&config, &shared);
        let settings = httpd::Settings {
            workers,
            connections: config.limits.connections,
            per_client: config.limits.connections_per_client,
            idle: config.timeouts.keep_alive(),
            drain: config.timeouts.shutdown(),
            sndbuf: None,
            blocking_threads: 1,
        };
        let server =
            httpd::Server::start(Arc::new(Service(Arc::clone(&shared))), &doors, settings)?;
        let _ = shared.handle.set(server.handle());
        let mut addresses = Addresses::default();
        for (gate, address) in shared.doors.iter().zip(server.addresses()) {
            match gate.opening {
                Opening::Http => addresses.plain.push(address.clone()),
                Opening::Https => addresses.tls.push(address.clone()),
                Opening::Metrics => addresses.metrics.push(address.clone()),
            }
        }
        Ok(Server { shared, config, server, addresses })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// What `/metrics` says.
    pub fn metrics(&self) -> String {
        self.shared.metrics()
    }

    /// Asks the workers to stop.
    pub fn stop(&self, stop: Stop) {
        self.server.stop(stop);
    }

    /// Waits until all workers have ended.
    pub fn join(&mut self) {
        self.server.join();
    }

    /// Reads certificate and key again, and opens the access log again; connections go on.
    ///
    /// # Errors
    ///
    /// The certificate is no good, or the log can't be opened: the old one stays, and the other is
    /// taken up all the same.
    pub fn reload(&self) -> Result<(), Failure> {
        self.reloader()()
    }

    /// [`reload`](Server::reload), for when the server is elsewhere.
    pub fn reloader(&self) -> impl Fn() -> Result<(), Failure> + use<> {
        let (shared, config) = (Arc::clone(&self.shared), self.config.clone());
        move || {
            let log = shared.log.as_ref().map_or(Ok(()), AccessLog::reopen).map_err(Failure::Log);
            let offered = config.offered()?;
            *shared.tls.lock().unwrap_or_else(PoisonError::into_inner) = offered;
            log
        }
    }

    /// The server itself, for who obeys signals.
    pub fn into_inner(self) -> httpd::Server {
        self.server
    }
}

/// Every address that is listened on, and what is let in there.
fn doors(config: &Config) -> Result<(Vec<Door>, Vec<Gate>), ConfigError> {
    let edges = config.edges()?;
    let all = [
        (&config.listen[..], Opening::Http),
        (&config.tls_listen[..], Opening::Https),
        (config.metrics.as_slice(), Opening::Metrics),
    ];
    let all = all.iter().flat_map(|(list, opening)| {
        list.iter().flat_map(Place::addresses).map(move |at| (at, *opening))
    });
    Ok(all
        .map(|(at, opening)| {
            let counted = opening != Opening::Metrics;
            let door = Door { address: at.clone(), rights: edges.rights(at), counted };
            (door, Gate { opening, policy: edges.policy(at) })
        })
        .unzip())
}

/// Says once what was asked for and can't be had.
fn announce(config: &Config, shared: &Shared) {
    if shared.mode.is_plain_instead() {
        tracing::warn!(
            mode = shared.mode.asked.name(),
            "this kernel does not know MSG_NTCOPY: clients are sent to plainly"
        );
    }
    if config.splice && !shared.splice {
        tracing::warn!("this kernel does not splice between sockets: bodies are copied");
    }
    if config.tls.by == TlsBy::Ktls && !shared.kernel_tls {
        tracing::warn!("this kernel has no TLS: this process encrypts");
    }
}
