//! The whole: how all of it starts and stops.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use httpd::metrics::Text;
use httpd::{Address, Reply, StartError, Stop};

use crate::config::Config;
use crate::counters::Counters;
use crate::mode::Mode;
use crate::session;
use crate::tls::TlsError;
use crate::worker::{Shared, Worker};

/// Why the proxy can't start.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Start(#[from] StartError),
}

struct Service(Arc<Shared>);

impl httpd::Service for Service {
    type Worker = Worker;
    const NAME: &'static str = "proxyd";

    fn worker(&self, index: usize) -> Worker {
        Worker::new(&self.0, index)
    }

    fn serve(worker: Rc<Worker>, conn: httpd::Conn) -> impl Future<Output = ()> + 'static {
        session::serve(worker, conn)
    }

    fn no_room(&self, door: usize) -> Vec<u8> {
        if self.0.is_tls(door) {
            return Vec::new();
        }
        let mut reply = Reply::new(503, false);
        reply.field("Content-Type", "text/plain");
        reply.end_with(b"no room for another connection\n", false)
    }

    fn report(&self, text: &mut Text) {
        Counters::tell(self.0.counters.iter().map(|counters| &**counters), text);
        let hints = u8::from(self.0.hint.is_some());
        text.family("gauge", "hints", "1 if sends to clients are hinted.", hints);
    }
}

/// A running proxy. Dropping it stops it at once.
pub struct Server {
    shared: Arc<Shared>,
    server: httpd::Server,
}

/// Where a proxy listens, with the ports that the kernel chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses<'s> {
    /// Plain HTTP.
    pub plain: &'s [Address],
    /// HTTP over TLS.
    pub tls: &'s [Address],
    pub metrics: Option<&'s Address>,
}

impl Server {
    /// Binds everything, then starts the workers.
    ///
    /// # Errors
    ///
    /// The certificate is no good, an address is taken, or the system refuses.
    pub fn start(config: Config) -> Result<Server, Failure> {
        let mut doors = config.options.doors(&config.options.listen);
        let plain_doors = doors.len();
        doors.extend(config.options.doors(&config.tls_listen));
        let mut options = config.options.clone();
        options.per_client = config.connections_per_client;
        let shared = Arc::new(Shared::new(config, plain_doors)?);
        announce(&shared);
        let server = httpd::Server::start(Arc::new(Service(Arc::clone(&shared))), &doors, options)?;
        Ok(Server { shared, server })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses<'_> {
        let (doors, metrics) = match &self.shared.config.options.metrics {
            Some(_) => {
                self.server.addresses().split_last().map_or((&[][..], None), |(m, d)| (d, Some(m)))
            }
            None => (self.server.addresses(), None),
        };
        let (plain, tls) = doors.split_at(self.shared.plain_doors);
        Addresses { plain, tls, metrics }
    }

    /// What `/metrics` says.
    pub fn metrics(&self) -> String {
        self.server.metrics()
    }

    /// Asks the workers to stop.
    pub fn stop(&self, stop: Stop) {
        self.server.stop(stop);
    }

    /// Waits until all workers have ended.
    pub fn join(&mut self) {
        self.server.join();
    }

    /// Has certificate and key read again, for handshakes from then on.
    pub fn reloader(&self) -> impl Fn() + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.reload()
    }

    /// The server itself, for who obeys signals.
    pub fn into_inner(self) -> httpd::Server {
        self.server
    }
}

/// Says once what was asked for and can't be had.
fn announce(shared: &Shared) {
    let mode = shared.config.mode;
    if mode != Mode::Copy && shared.hint.is_none() {
        tracing::warn!(?mode, "this kernel does not know MSG_NTCOPY: clients are sent to plainly");
    }
    if shared.config.ktls && !shared.kernel_tls {
        tracing::warn!("this kernel has no TLS: this process encrypts");
    }
}
