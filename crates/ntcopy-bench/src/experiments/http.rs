//! Experiment `http`: clients, a proxy and a backend. Its defaults, and what a user may set.

pub mod plan;
pub mod run;
mod sample;

use std::fmt;

use serde::Deserialize;

pub use crate::experiment::Rate;
use crate::experiment::{Mode, Times, reads_defaults, size, words};

pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/http.toml");

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stack {
    /// This project's two daemons, which know the hint.
    StoragedProxyd,
    /// HAProxy, which splices, before nginx. Neither is changed.
    HaproxyNginx,
    NginxNginx,
    /// HAProxy, unchanged, before a backend that knows the hint.
    HaproxyStoraged,
    /// HAProxy, unchanged, before `examples/backend.c`, which sends from memory.
    HaproxyExample,
    /// nginx, unchanged, before a backend that knows the hint.
    NginxStoraged,
}

words!(
    Stack,
    StoragedProxyd = "storaged+proxyd",
    HaproxyNginx = "haproxy+nginx",
    NginxNginx = "nginx+nginx",
    HaproxyStoraged = "haproxy+storaged",
    HaproxyExample = "haproxy+backend.c",
    NginxStoraged = "nginx+storaged"
);

/// What a stack's backend is, and so how it wants its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    Storaged,
    Nginx,
    /// `examples/backend.c`.
    Example,
}

impl Stack {
    /// The ways to send that it has. Programs that don't know the hint get it from `ntcopy run`.
    pub fn modes(self) -> &'static [HttpMode] {
        match self {
            Stack::StoragedProxyd | Stack::HaproxyStoraged | Stack::NginxStoraged => HttpMode::ALL,
            Stack::HaproxyNginx | Stack::NginxNginx | Stack::HaproxyExample => {
                use HttpMode::{Adaptive, Copy, Nt, Sendfile};
                &[Copy, Nt, Adaptive, Sendfile]
            }
        }
    }

    pub fn backend(self) -> Backend {
        match self {
            Stack::StoragedProxyd | Stack::HaproxyStoraged | Stack::NginxStoraged => {
                Backend::Storaged
            }
            Stack::HaproxyNginx | Stack::NginxNginx => Backend::Nginx,
            Stack::HaproxyExample => Backend::Example,
        }
    }

    pub fn hints_itself(self) -> bool {
        self.backend() != Backend::Nginx
    }
}

/// A way for bodies from the backend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HttpMode {
    Copy,
    Nt,
    Adaptive,
    /// The backend sends the file's pages by reference and copies nothing.
    Sendfile,
    /// The backend gives away the pages of a mapping, through a pipe.
    Vmsplice,
    /// The backend chooses for each response.
    Auto,
}

words!(
    HttpMode,
    Copy = "copy",
    Nt = "nt",
    Adaptive = "adaptive",
    Sendfile = "sendfile",
    Vmsplice = "vmsplice",
    Auto = "auto"
);

impl HttpMode {
    /// How it sends, where it does not choose.
    pub fn sends(self) -> Mode {
        match self {
            HttpMode::Nt => Mode::Nt,
            HttpMode::Adaptive => Mode::Adaptive,
            _ => Mode::Copy,
        }
    }

    pub fn is_hinted(self) -> bool {
        self.sends().is_hinted()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    Unix,
    Tcp,
}

words!(Transport, Unix = "unix", Tcp = "tcp");

/// One of the ways that are compared: a stack, and how it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    pub stack: Stack,
    pub mode: HttpMode,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.stack, self.mode)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: HttpMode,
    pub modes: Vec<HttpMode>,
    pub stacks: Vec<Stack>,
    pub transport: Transport,
    pub object_bytes: Vec<u64>,
    pub connections: Vec<u32>,
    pub dataset_bytes: Vec<u64>,
    pub workers: u32,
    pub pairs: u32,
    pub rate: Rate,
    pub closed: Times,
    pub open: Times,
}

reads_defaults!();

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Proxy and backend: storaged+proxyd, haproxy+storaged, haproxy+backend.c, nginx+storaged,
    /// haproxy+nginx, nginx+nginx [default: storaged+proxyd]
    #[arg(long = "stack", value_name = "LIST", value_delimiter = ',')]
    pub stacks: Vec<Stack>,
    /// Modes to compare with the baseline [default: nt,adaptive,sendfile]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<HttpMode>,
    /// Mode of the first stack that all are compared with, and whose rate counts [default: copy]
    #[arg(long, value_name = "MODE", conflicts_with = "against")]
    pub baseline: Option<HttpMode>,
    /// Between proxy and backend: unix; tcp, over the loopback [default: unix]
    #[arg(long, value_name = "HOW")]
    pub transport: Option<Transport>,
    /// Object sizes [default: 64KiB,1MiB,4MiB; with --quick 1MiB]
    #[arg(long = "object", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub object_bytes: Vec<u64>,
    /// Connections of the client [default: 1,16,64; with --quick 1,64]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub connections: Vec<u32>,
    /// Sizes of the data set that objects are taken from, in turns [default: 256MiB]
    #[arg(long = "dataset", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub dataset_bytes: Vec<u64>,
    /// Threads of the proxy, and as many of the backend [default: 1]
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Offered when latencies are measured: a part of what the baseline does without a pause,
    /// requests per second, or off [default: 0.7]
    #[arg(long, value_name = "FRACTION|REQ/S", conflicts_with = "against")]
    pub rate: Option<Rate>,
    /// CPUs of client, proxy and backend, or one for all [default: wherever the system likes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<u32>,
    /// The backend's send buffers [default: the system's]
    #[arg(long = "sndbuf", value_name = "SIZE", value_parser = size)]
    pub sndbuf_bytes: Option<u64>,
    /// A buffer of nginx, of which it has 2 for a file that it sends and 4 for a body that it
    /// passes on [default: nginx's own, 32 KiB and 4 KiB]
    #[arg(long = "nginx-buffer", value_name = "SIZE", value_parser = size)]
    pub nginx_buffer_bytes: Option<u64>,
    /// HAProxy reads bodies and writes them, where it would splice them
    #[arg(long = "no-splice")]
    pub without_splice: bool,
    /// What each of HAProxy's pipes holds [default: HAProxy's own, 64 KiB]
    #[arg(long = "haproxy-pipe", value_name = "SIZE", value_parser = size)]
    pub haproxy_pipe_bytes: Option<u64>,
    /// How often proxies and backends are started anew in each cell [default: for each pair; with
    /// --quick once]
    #[arg(long, hide = true, value_name = "N", conflicts_with = "against")]
    pub starts: Option<u32>,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}
