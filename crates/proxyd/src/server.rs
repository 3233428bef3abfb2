//! The whole: listeners, workers, metrics, and the asking of them to reopen files and to stop.

mod metrics_listener;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::config::{Config, ConfigError, Settings, TlsBy};
use crate::http::Scheme;
use crate::metrics::Counters;
use crate::net::{Address, ListenError, Place, SocketFile, bind_tcp, bind_unix};
use crate::policy::Edges;
use crate::splice;
use crate::worker::{Door, Shared, Stop, Worker};

use metrics_listener::MetricsListener;

/// Why the proxy can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings are no good.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address can't be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system refuses something else.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was refused.
        what: String,
        /// Why.
        cause: std::io::Error,
    },
}

fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> StartError {
    let what = what.into();
    move |cause| StartError::System { what, cause }
}

/// A running proxy. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    config: Config,
    wakes: Vec<Arc<OwnedFd>>,
    threads: Vec<JoinHandle<()>>,
    counters: Vec<Arc<Counters>>,
    addresses: Addresses,
    _files: Vec<SocketFile>,
    _metrics: Vec<MetricsListener>,
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
    pub fn start(config: Config) -> Result<Server, StartError> {
        let settings = Settings::new(&config)?;
        let tls = config.offered()?;
        let workers = match config.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let mode = config.mode.applied();
        let splice = config.splice && splice::probe();
        let kernel_tls = config.tls.by == TlsBy::Ktls && crate::tls::kernel_is_available();
        announce(&config, &mode, splice, kernel_tls);
        let log = config.access_log.clone();
        let shared = Arc::new(Shared::new(settings, (tls, log), mode, splice, kernel_tls));
        let mut addresses = Addresses::default();
        let mut doors = vec![Vec::new(); workers];
        let edges = config.edges()?;
        let mut files = Vec::new();
        for (list, scheme, known) in [
            (&config.listen, Scheme::Http, &mut addresses.plain),
            (&config.tls_listen, Scheme::Https, &mut addresses.tls),
        ] {
            for address in list.iter().flat_map(Place::addresses) {
                known.push(open_door(address, scheme, &edges, &mut doors, &mut files)?);
            }
        }
        let counters: Vec<_> = (0..workers).map(|_| Arc::new(Counters::default())).collect();
        let mut metrics = Vec::new();
        for address in config.metrics.iter().flat_map(Place::addresses) {
            let Address::Tcp(at) = address else { continue };
            let started = MetricsListener::start(*at, counters.clone(), mode);
            metrics.push(started.map_err(system(format!("serve metrics on {address}")))?);
        }
        addresses.metrics = metrics.iter().map(|metrics| Address::Tcp(metrics.address())).collect();
        let mut server = Server {
            shared,
            config,
            wakes: Vec::new(),
            threads: Vec::new(),
            counters,
            addresses,
            _files: files,
            _metrics: metrics,
        };
        server.start_workers(doors)?;
        Ok(server)
    }

    fn start_workers(&mut self, doors: Vec<Vec<Door>>) -> Result<(), StartError> {
        for (index, doors) in doors.into_iter().enumerate() {
            let counters = Arc::clone(&self.counters[index]);
            let worker = Worker::new(doors, Arc::clone(&self.shared), counters)
                .map_err(system("start a worker"))?;
            self.wakes.push(worker.wake());
            let thread = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || worker.run())
                .map_err(system("start a worker's thread"))?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Each worker's counters.
    pub fn counters(&self) -> &[Arc<Counters>] {
        &self.counters
    }

    /// Reads certificate and key again, and opens the access log again; connections go on.
    ///
    /// # Errors
    ///
    /// The certificate is no good: the old one stays. The log is opened again all the same.
    pub fn reload(&self) -> Result<(), ConfigError> {
        let (tls, result) = match self.config.offered() {
            Ok(tls) => (tls, Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.shared.reload(tls);
        self.wake();
        result
    }

    /// Asks the workers to stop.
    pub fn stop(&self, stop: Stop) {
        self.shared.stop(stop);
        self.wake();
    }

    /// Waits until all workers have ended.
    pub fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }

    /// Calls back once all workers have ended, from a thread of its own; [`join`](Server::join)
    /// then waits for that.
    ///
    /// # Errors
    ///
    /// The system has no thread left; the workers are stopped then.
    pub fn when_over(&mut self, then: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let threads = std::mem::take(&mut self.threads);
        let waiter = std::thread::Builder::new().name("waiter".to_owned()).spawn(move || {
            for thread in threads {
                let _ = thread.join();
            }
            then();
        });
        match waiter {
            Ok(waiter) => {
                self.threads.push(waiter);
                Ok(())
            }
            Err(error) => {
                self.stop(Stop::Now);
                Err(error)
            }
        }
    }

    fn wake(&self) {
        for wake in &self.wakes {
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Stop::Now);
        self.join();
    }
}

/// Says once what was asked for and can't be had.
fn announce(config: &Config, mode: &crate::net::Applied, splice: bool, kernel_tls: bool) {
    if mode.is_plain_instead() {
        tracing::warn!(
            mode = mode.asked.name(),
            "this kernel does not know MSG_NTCOPY: clients are sent to plainly"
        );
    }
    if config.splice && !splice {
        tracing::warn!("this kernel does not splice between sockets: bodies are copied");
    }
    if config.tls.by == TlsBy::Ktls && !kernel_tls {
        tracing::warn!("this kernel has no TLS: this process encrypts");
    }
}

/// Binds an address for every worker; returns it with the port that the kernel chose.
fn open_door(
    address: &Address,
    scheme: Scheme,
    edges: &Edges,
    doors: &mut [Vec<Door>],
    files: &mut Vec<SocketFile>,
) -> Result<Address, ListenError> {
    let listeners = match address {
        Address::Tcp(at) => bind_tcp(*at, doors.len())?,
        Address::Unix(path) => {
            let (mode, group) = edges.socket(address);
            let (listener, file) = bind_unix(path, mode, group.as_deref())?;
            files.push(file);
            vec![listener; doors.len()]
        }
    };
    let bound = listeners.first().map_or_else(|| address.clone(), |first| first.address.clone());
    for (doors, listener) in doors.iter_mut().zip(listeners) {
        doors.push(Door { listener, asked: address.clone(), scheme });
    }
    Ok(bound)
}
