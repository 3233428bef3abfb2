//! What the sessions of the proxy share: all of them, and those of one worker.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use httpd::server::Handle;
use httpd::{AccessLog, Reply};
use rustls::ServerConfig;

use crate::access::Line;
use crate::backend::{Backend, HealthRule, pick};
use crate::config::{Config, Limits, Timeouts, TlsBy};
use crate::ktls;
use crate::metrics::{Counters, render};
use crate::mode::Applied;
use crate::pipe::Pool;
use crate::policy::Policy;
use crate::upstreams::Upstreams;

/// How often idle connections to backends are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// For a request of the metrics, and again for its answer.
const METRICS_PATIENCE: Duration = Duration::from_secs(2);

/// What is spoken at a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    Http,
    Https,
    Metrics,
}

/// What the workers and those who steer them share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) doors: Vec<Opening>,
    /// What they let in.
    pub(crate) policy: Policy,
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
    /// Whether bodies may be spliced.
    pub(crate) splice: bool,
    /// Whether the kernel does TLS after the handshake.
    pub(crate) kernel_tls: bool,
    counters: Vec<Arc<Counters>>,
    pub(crate) handle: OnceLock<Handle>,
}

impl Shared {
    pub(crate) fn new(
        config: &Config,
        doors: Vec<Opening>,
        workers: usize,
        log: Option<AccessLog>,
        offered: Option<Arc<ServerConfig>>,
    ) -> Shared {
        Shared {
            doors,
            policy: config.edge.clone(),
            backends: config.backends.iter().cloned().map(Backend::new).map(Arc::new).collect(),
            health: HealthRule {
                failures: config.health.failures,
                down_for: Duration::from_millis(config.health.down_ms),
            },
            timeouts: config.timeouts,
            limits: config.limits,
            http: config.limits.http(),
            log,
            tls: Mutex::new(offered),
            mode: config.mode.applied(),
            splice: config.splice,
            kernel_tls: config.tls.by == TlsBy::Ktls && ktls::is_available(),
            counters: (0..workers).map(|_| Arc::default()).collect(),
            handle: OnceLock::new(),
        }
    }

    /// What clients of TLS are offered now.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Offers something else from now on.
    pub(crate) fn offer(&self, offered: Option<Arc<ServerConfig>>) {
        *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = offered;
    }

    pub(crate) fn metrics(&self) -> String {
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
    pub(crate) fn new(shared: &Arc<Shared>, index: usize) -> Worker {
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
