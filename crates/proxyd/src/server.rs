//! The whole: how all of it starts and stops.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use httpd::metrics::Text;
use httpd::{Place, Reply, splice};

use crate::backend::Addresses;
use crate::config::{Config, Mode};
use crate::counters::Counters;
use crate::session;
use crate::worker::{Shared, Worker};

impl httpd::Service for Shared {
    type Worker = Worker;
    const NAME: &'static str = "proxyd";

    fn worker(self: &Arc<Shared>, index: usize) -> Worker {
        Worker::new(self, index)
    }

    fn serve(worker: Rc<Worker>, conn: httpd::Conn) -> impl Future<Output = ()> + 'static {
        session::serve(worker, conn)
    }

    fn no_room(&self, door: usize) -> Vec<u8> {
        if self.is_tls(door) {
            return Vec::new();
        }
        let mut reply = Reply::new(503, false);
        reply.field("Content-Type", "text/plain");
        reply.end_with(b"no room for another connection\n", false)
    }

    fn report(&self, text: &mut Text) {
        Counters::tell(self.counters.iter().map(|counters| &**counters), text);
        let hints = u8::from(self.hint.is_some());
        text.family("gauge", "hints", "1 if sends to clients are hinted.", hints);
    }
}

pub struct Server {
    /// What listens; plain doors first, then those of TLS.
    pub http: httpd::Server,
    shared: Arc<Shared>,
}

impl Server {
    /// `backend` is where the name of its settings leads.
    pub fn start(config: Config, backend: Addresses) -> anyhow::Result<Server> {
        let only_tls = config.options.listen.is_empty() && !config.tls_listen.is_empty();
        let mut doors = if only_tls { Vec::new() } else { config.options.doors()? };
        let plain_doors = doors.len();
        doors.extend(Place::all(&config.tls_listen)?);
        let options = config.options.clone();
        let shared = Arc::new(Shared::new(config, plain_doors, backend)?);
        announce(&shared);
        let http = httpd::Server::start(Arc::clone(&shared), &doors, options)?;
        Ok(Server { http, shared })
    }

    /// Has certificate and key read again, for handshakes from then on.
    pub fn reloader(&self) -> impl Fn() + use<> {
        let shared = Arc::clone(&self.shared);
        move || shared.reload()
    }
}

/// Says once what was asked for and can't be had.
fn announce(shared: &Shared) {
    let Config { mode, pipes, pipe_size, .. } = *shared.config;
    let wanted = usize::try_from(pipe_size).unwrap_or(usize::MAX);
    if let Some(had) = splice::cut_to(wanted).filter(|_| pipes > 0) {
        tracing::warn!(
            asked = pipe_size,
            had,
            "pipes are smaller than --pipe-size: fs.pipe-max-size bounds each, and \
             fs.pipe-user-pages-soft all of a user's"
        );
    }
    if mode != Mode::Copy && shared.hint.is_none() {
        tracing::warn!(?mode, "this kernel does not know MSG_NTCOPY: clients are sent to plainly");
    }
}
