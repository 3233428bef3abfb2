//! What the sessions of the proxy share: all of them, and those of one worker.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use httpd::splice::Pool;
use ntcopy::socket::Setting;
use rustls::ServerConfig;
use rustls::crypto::ring::Ticketer;
use rustls::server::ProducesTickets;
use tokio::time::sleep;

use crate::backend::Addresses;
use crate::config::Config;
use crate::conn::Conn;
use crate::counters::Counters;
use crate::upstreams::{Upstreams, expire};

/// How long a pipe that nobody needs is kept: a new one costs three system calls.
const PIPES_IDLE: Duration = Duration::from_secs(5);

pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    /// Those before the doors of TLS.
    pub(crate) plain_doors: usize,
    /// What clients of TLS are offered.
    tls: Mutex<Option<Arc<ServerConfig>>>,
    /// Seals what a session needs to be resumed, for its client to keep: however many others come,
    /// and with another certificate, it still resumes.
    tickets: Arc<dyn ProducesTickets>,
    backend: Addresses,
    pub(crate) hint: Option<Setting>,
    pub(crate) counters: Vec<Arc<Counters>>,
}

impl Shared {
    pub(crate) fn new(
        config: Config,
        plain_doors: usize,
        backend: Addresses,
    ) -> anyhow::Result<Shared> {
        let tickets = Ticketer::new()?;
        Ok(Shared {
            plain_doors,
            tls: Mutex::new(offered(&config, &tickets)?),
            tickets,
            backend,
            hint: config.mode.setting(),
            counters: (0..config.options.workers()).map(|_| Arc::default()).collect(),
            config: Arc::new(config),
        })
    }

    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Offers what is in the files now, unless it is no good.
    pub(crate) fn reload(&self) {
        match offered(&self.config, &self.tickets) {
            Ok(None) => {}
            Ok(offered) => {
                *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = offered;
                tracing::info!("certificate and key are read again");
            }
            Err(error) => {
                tracing::warn!(error = %format_args!("{error:#}"), "the old certificate stays")
            }
        }
    }

    /// Whether bodies between this client and the backend pass by unread, both ways.
    pub(crate) fn splices(&self, client: &Conn) -> bool {
        self.config.pipes > 0 && !client.is_encrypted()
    }

    pub(crate) fn is_tls(&self, door: usize) -> bool {
        door >= self.plain_doors
    }
}

fn offered(
    config: &Config,
    tickets: &Arc<dyn ProducesTickets>,
) -> anyhow::Result<Option<Arc<ServerConfig>>> {
    let with_tickets = |mut offered: ServerConfig| {
        offered.ticketer = Arc::clone(tickets);
        Arc::new(offered)
    };
    Ok(config.offered()?.map(with_tickets))
}

/// What one worker's sessions share.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) upstreams: Rc<Upstreams>,
    pub(crate) pipes: Rc<RefCell<Pool>>,
}

/// Closes, again and again, the pipes that a burst needed and nobody needs now.
async fn give_back(pipes: Rc<RefCell<Pool>>, counters: Arc<Counters>) {
    loop {
        sleep(PIPES_IDLE).await;
        let mut pipes = pipes.borrow_mut();
        pipes.expire(PIPES_IDLE);
        counters.pipes_open.set(pipes.open as u64);
    }
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, index: usize) -> Worker {
        let (config, counters) = (&shared.config, &shared.counters[index]);
        let upstreams =
            Rc::new(Upstreams::new(config, shared.backend.clone(), Arc::clone(counters)));
        tokio::task::spawn_local(expire(Rc::clone(&upstreams), config.backend_idle_timeout));
        let pipes = Rc::new(RefCell::new(Pool::new(config.pipes, config.pipe_size as usize)));
        tokio::task::spawn_local(give_back(Rc::clone(&pipes), Arc::clone(counters)));
        Worker { shared: Arc::clone(shared), counters: Arc::clone(counters), upstreams, pipes }
    }
}
