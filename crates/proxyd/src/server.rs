//! The whole: what listeners let in, and how all of it starts and stops.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use httpd::{AccessLog, Address, Door, Reply, StartError, Stop};

use crate::backend::Place;
use crate::config::{Config, ConfigError, TlsBy};
use crate::session;
use crate::worker::{Opening, Shared, Worker};

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
        match self.0.doors[door] {
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
        let (doors, openings) = doors(&config);
        let log = config.access_log.as_deref().map(AccessLog::open).transpose();
        let (log, offered) = (log.map_err(Failure::Log)?, config.offered()?);
        let shared = Arc::new(Shared::new(&config, openings, workers, log, offered));
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
        for (opening, address) in shared.doors.iter().zip(server.addresses()) {
            match opening {
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
            shared.offer(config.offered()?);
            log
        }
    }

    /// The server itself, for who obeys signals.
    pub fn into_inner(self) -> httpd::Server {
        self.server
    }
}

/// Every address that is listened on, and what is spoken there.
fn doors(config: &Config) -> (Vec<Door>, Vec<Opening>) {
    let all = [
        (&config.listen[..], Opening::Http),
        (&config.tls_listen[..], Opening::Https),
        (config.metrics.as_slice(), Opening::Metrics),
    ];
    let mode = config.edge.mode.map(|bits| bits.0);
    let all = all.iter().flat_map(|(list, opening)| {
        list.iter().flat_map(Place::addresses).map(|at| (at.clone(), *opening))
    });
    all.map(|(address, opening)| {
        let counted = opening != Opening::Metrics;
        (Door { address, mode, counted }, opening)
    })
    .unzip()
}

/// Says once what was asked for and can't be had.
fn announce(config: &Config, shared: &Shared) {
    if shared.mode.is_plain_instead() {
        tracing::warn!(
            mode = shared.mode.asked.name(),
            "this kernel does not know MSG_NTCOPY: clients are sent to plainly"
        );
    }
    if config.tls.by == TlsBy::Ktls && !shared.kernel_tls {
        tracing::warn!("this kernel has no TLS: this process encrypts");
    }
}
