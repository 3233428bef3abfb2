//! What the sessions of the proxy share: all of them, and those of one worker.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ntcopy::socket::Setting;
use rustls::ServerConfig;

use crate::config::Config;
use crate::ktls;
use crate::pipe::Pool;
use crate::tls::TlsError;
use crate::upstreams::{Upstreams, expire};

httpd::counters! {
    /// What one worker counts of exchanges. Each has its own, so that no line is written by two.
    #[repr(align(128))]
    pub struct Counters {
        handshakes_failed: "counter" "handshakes_failed_total" "TLS handshakes that failed.",
        requests: "counter" "requests_total" "Requests whose head was read.",
        requests_refused: "counter" "requests_refused_total" "Requests that the proxy answered with a 4xx or 501 itself.",
        request_body_bytes: "counter" "request_body_bytes_total" "Bytes of request bodies passed on.",
        response_body_bytes: "counter" "response_body_bytes_total" "Bytes of response bodies passed on.",
        spliced_bytes: "counter" "spliced_bytes_total" "Body bytes that went through a pipe, untouched.",
        copied_bytes: "counter" "copied_bytes_total" "Body bytes that went through a buffer.",
        exchanges_aborted: "counter" "exchanges_aborted_total" "Exchanges cut short after the first byte of the response.",
        clients_gone: "counter" "clients_gone_total" "Exchanges whose client went away.",
        timeouts: "counter" "timeouts_total" "Phases that took too long.",
        backend_connections: "counter" "backend_connections_total" "Connections to the backend opened.",
        backend_reuses: "counter" "backend_reuses_total" "Exchanges on a backend connection that had served before.",
        backend_failures: "counter" "backend_failures_total" "Connections and exchanges that failed by the backend's fault.",
        backend_retries: "counter" "backend_retries_total" "Exchanges that were given to another backend connection.",
        backend_idle: "gauge" "backend_idle" "Idle connections to the backend.",
        pipes_open: "gauge" "pipes_open" "Pipes open, idle ones included.",
    }
}

/// What the workers share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// Those before the doors of TLS.
    pub(crate) plain_doors: usize,
    pub(crate) http: httpd::Limits,
    /// What clients of TLS are offered.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// How clients are sent to.
    pub(crate) hint: Option<Setting>,
    /// Whether the kernel does TLS after the handshake.
    pub(crate) kernel_tls: bool,
    pub(crate) counters: Vec<Arc<Counters>>,
}

impl Shared {
    pub(crate) fn new(config: Config, plain_doors: usize) -> Result<Shared, TlsError> {
        let body_bytes = config.body_max.unwrap_or(0);
        Ok(Shared {
            plain_doors,
            http: httpd::Limits { body_bytes, ..httpd::Limits::default() },
            tls: config.offered()?,
            hint: config.mode.setting(),
            kernel_tls: config.ktls && ktls::is_available(),
            counters: (0..config.options.workers()).map(|_| Arc::default()).collect(),
            config,
        })
    }

    pub(crate) fn is_tls(&self, door: usize) -> bool {
        door >= self.plain_doors
    }
}

/// What one worker's sessions share.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) upstreams: Rc<Upstreams>,
    pub(crate) pipes: RefCell<Pool>,
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, index: usize) -> Worker {
        let (config, counters) = (&shared.config, &shared.counters[index]);
        let upstreams = Rc::new(Upstreams::new(config, Arc::clone(counters)));
        tokio::task::spawn_local(expire(Rc::clone(&upstreams), config.backend_idle_timeout));
        Worker {
            shared: Arc::clone(shared),
            counters: Arc::clone(counters),
            upstreams,
            pipes: RefCell::new(Pool::new(config.pipes, config.pipe_size as usize)),
        }
    }
}
