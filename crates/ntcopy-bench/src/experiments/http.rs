//! Experiment `http`: clients, a proxy and a backend. Its defaults, what a user may set, and the plan
//! of it.

pub mod run;
mod sample;

use std::collections::BTreeSet;

use ntcopy_record::Params;
use ntcopy_record::lists::unique;
use serde::Deserialize;

use crate::experiment::{Lengths, Mode, Times, reads_defaults, size, with_baseline, words};
pub use crate::experiment::{LoadForm as HttpForm, Rate};
use crate::plan::error::{check_connections, check_pairs, check_sizes, check_zeros, places};
use crate::plan::{Cpus, PlanError, Sysctl, or, params};

/// More would measure the descriptor tables of three processes.
const MOST_CONNECTIONS: u32 = 4096;
/// What a connection over the loopback holds at most, in both directions' buffers.
const TCP_BUFFERS_BYTES: u64 = 10 << 20;
/// What the daemons take beside their data: code, stacks, pipes, tables.
const PROGRAMS_BYTES: u64 = 192 << 20;
const WAY_BYTES: u64 = 32 << 20;
/// Buffers that nginx has for a file that it sends, where their size was asked for: its default.
pub const OUTPUT_BUFFERS: u64 = 2;
/// Those for a body that it passes on: half its default, since they are larger.
pub const PROXY_BUFFERS: u64 = 4;
/// Between client and proxy, as records say it: some of other versions came by TLS.
const CLIENTS_COME: &str = "plain";

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
                use HttpMode::{Hinted, Plain, Sendfile};
                &[Plain, Hinted, Sendfile]
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
    Plain,
    Hinted,
    /// The backend sends the file's pages by reference and copies nothing.
    Sendfile,
    /// The backend chooses for each response.
    Auto,
}

words!(
    HttpMode, Plain = "plain", Hinted = "hinted", Sendfile = "sendfile", Auto = "auto";
    in scripts for 0.2: "copy" = Plain, "nt" = Hinted
);

impl HttpMode {
    /// How it sends, where it does not choose.
    pub fn sends(self) -> Mode {
        match self {
            HttpMode::Hinted => Mode::Hinted,
            _ => Mode::Plain,
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

reads_defaults!("http.toml");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Proxy and backend
    #[arg(long = "stack", value_name = "LIST", value_delimiter = ',')]
    pub stacks: Vec<Stack>,
    /// Modes to compare with the baseline
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<HttpMode>,
    /// Mode of the first stack that all are compared with, and whose rate counts
    #[arg(long, value_name = "MODE", conflicts_with = "against")]
    pub baseline: Option<HttpMode>,
    /// Between proxy and backend; tcp is over the loopback
    #[arg(long, value_name = "HOW")]
    pub transport: Option<Transport>,
    /// Object sizes
    #[arg(long = "object", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub object_bytes: Vec<u64>,
    /// Connections of the client
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub connections: Vec<u32>,
    /// Sizes of the data set that objects are taken from, in turns
    #[arg(long = "dataset", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub dataset_bytes: Vec<u64>,
    /// Threads of the proxy, and as many of the backend
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Offered when latencies are measured: a part of what the baseline does without a pause,
    /// requests per second, or off
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

impl Settings {
    /// What one boot measures of two that are compared, briefly.
    pub fn one_boot(mut self, modes: Vec<HttpMode>, _is_module: bool) -> Settings {
        let usual = defaults(false);
        if !self.quick && self.object_bytes.is_empty() {
            self.object_bytes.clone_from(&usual.object_bytes);
        }
        if !self.quick && self.connections.is_empty() {
            self.connections.clone_from(&usual.connections);
        }
        (self.modes, self.quick) = (modes, true);
        (self.pairs, self.rate) = (Some(defaults(true).pairs), Some(Rate::Off));
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpCell {
    pub object_bytes: u64,
    pub dataset_bytes: u64,
    pub connections: u32,
    pub form: HttpForm,
}

impl HttpCell {
    pub fn objects(&self) -> u64 {
        self.dataset_bytes / self.object_bytes
    }

    pub fn has_data_of(&self, other: &HttpCell) -> bool {
        (self.object_bytes, self.dataset_bytes) == (other.object_bytes, other.dataset_bytes)
    }

    /// Bytes that are asked for at one time when every connection waits for an answer.
    pub fn asked_bytes(&self) -> u64 {
        self.object_bytes * u64::from(self.connections)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPlan {
    /// For what is taken as it was asked for: the programs' settings.
    pub settings: Settings,
    /// The combinations of parameters; those with the same data follow each other.
    pub cells: Vec<HttpCell>,
    /// The ways that are compared, the baseline first.
    pub ways: Vec<Way>,
    pub transport: Transport,
    pub workers: u32,
    pub rate: Rate,
    /// The CPUs of the client, which is this program, of proxy and backend; none: wherever the
    /// system likes.
    pub places: Option<[u32; 3]>,
    pub pairs: u32,
    /// How often proxies and backends are started anew in each cell, at most once a group.
    pub starts: u32,
    pub lengths: Lengths,
}

impl HttpPlan {
    pub fn samples(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.pairs) * self.ways.len() as u64
    }

    pub fn most_connections(&self) -> u32 {
        self.cells.iter().map(|cell| cell.connections).max().unwrap_or(0)
    }

    /// Whether proxies and backends are started anew for this group of a cell.
    pub fn starts_at(&self, pair: u32) -> bool {
        let start = |pair: u32| u64::from(pair) * u64::from(self.starts) / u64::from(self.pairs);
        pair == 0 || start(pair) != start(pair - 1)
    }

    /// What a way is in the record: a mode, of its stack where there are several.
    pub fn mode(&self, way: Way) -> ntcopy_record::Mode {
        let mode = ntcopy_record::Mode::named(way.mode.as_str());
        let is_only = self.ways.iter().all(|other| other.stack == way.stack);
        if is_only { mode } else { mode.of_stack(way.stack.as_str()) }
    }

    pub fn name(&self, way: Way) -> String {
        self.mode(way).mode
    }

    pub fn params(&self, cell: &HttpCell, offered_per_1000_s: Option<u64>) -> Params {
        let [client, proxy, backend] = self.places.map_or([None; 3], |places| places.map(Some));
        let stacks = unique(self.ways.iter().map(|way| way.stack.as_str()));
        params([
            ("form", cell.form.as_str().into()),
            ("object_bytes", cell.object_bytes.into()),
            ("dataset_bytes", cell.dataset_bytes.into()),
            ("connections", cell.connections.into()),
            ("asked_bytes", cell.asked_bytes().into()),
            ("transport", self.transport.as_str().into()),
            ("scheme", CLIENTS_COME.into()),
            ("workers", self.workers.into()),
            ("starts", self.starts.into()),
            ("stack", stacks.join(",").into()),
            ("offered_requests_per_1000_s", offered_per_1000_s.into()),
            ("client_cpu", client.into()),
            ("proxy_cpu", proxy.into()),
            ("backend_cpu", backend.into()),
            ("sndbuf_bytes", self.settings.sndbuf_bytes.into()),
            ("nginx_buffer_bytes", self.settings.nginx_buffer_bytes.into()),
            ("haproxy_pipe_bytes", self.settings.haproxy_pipe_bytes.into()),
            ("splice", self.settings.without_splice.then_some("off").into()),
        ])
    }

    /// Bytes that the data set of a cell takes in a file system in memory: once for each kind of
    /// backend. The folders of several storaged share their files.
    pub fn data_bytes(&self, cell: &HttpCell) -> u64 {
        let backends: BTreeSet<Backend> = self.ways.iter().map(|way| way.stack.backend()).collect();
        // A page each for the ends of an object's file, its checksums and its inode.
        let each = cell.object_bytes.next_multiple_of(4096) + 3 * 4096;
        cell.objects() * each * backends.len() as u64
    }

    /// Memory in bytes that the largest cell needs of a kernel that is booted for it. A file
    /// system in memory may take half of what there is.
    pub fn memory_bytes(&self) -> u64 {
        let data = self.cells.iter().map(|cell| 2 * self.data_bytes(cell)).max().unwrap_or(0);
        let ways = self.ways.len() as u64 * WAY_BYTES;
        data + 2 * self.in_buffers_bytes() + self.nginx_bytes() + PROGRAMS_BYTES + ways
    }

    /// What nginx's buffers take at most, as backend and as proxy.
    fn nginx_bytes(&self) -> u64 {
        let buffers = OUTPUT_BUFFERS + PROXY_BUFFERS;
        let of_one = self.settings.nginx_buffer_bytes.unwrap_or(0) * buffers;
        u64::from(self.most_connections()) * of_one
    }

    fn in_buffers_bytes(&self) -> u64 {
        let one = |cell: &HttpCell| {
            u64::from(cell.connections) * cell.object_bytes.min(TCP_BUFFERS_BYTES)
        };
        self.cells.iter().map(one).max().unwrap_or(0)
    }

    pub fn sysctls(&self) -> Vec<Sysctl> {
        vec![Sysctl::for_tcp(self.in_buffers_bytes())]
    }
}

pub fn plan(settings: &Settings, cpus: &Cpus) -> Result<HttpPlan, PlanError> {
    let defaults = defaults(settings.quick);
    let pairs = check_pairs(settings.pairs.unwrap_or(defaults.pairs))?;
    let starts = settings.starts.unwrap_or(if settings.quick { 1 } else { pairs }).min(pairs);
    let workers = settings.workers.unwrap_or(defaults.workers);
    check_zeros(&[
        ("starts", starts == 0),
        ("workers", workers == 0),
        ("haproxy-pipe", settings.haproxy_pipe_bytes == Some(0)),
        ("nginx-buffer", settings.nginx_buffer_bytes == Some(0)),
    ])?;
    let transport = settings.transport.unwrap_or(defaults.transport);
    if transport == Transport::Tcp && settings.stacks.contains(&Stack::HaproxyExample) {
        let what = format!("{} listens on a unix socket alone", Stack::HaproxyExample);
        return Err(format!("--transport tcp: {what}").into());
    }
    let rate = settings.rate.unwrap_or(defaults.rate);
    let takes = "one CPU for all, or those of client, proxy and backend";
    Ok(HttpPlan {
        settings: settings.clone(),
        cells: cells(settings, rate)?,
        ways: ways(settings)?,
        transport,
        workers,
        rate,
        places: places(&settings.cpus, cpus, takes)?,
        pairs,
        starts,
        lengths: Lengths { closed: defaults.closed, open: defaults.open },
    })
}

/// Every stack in every mode that it has, the first stack's baseline first.
fn ways(settings: &Settings) -> Result<Vec<Way>, PlanError> {
    let defaults = defaults(settings.quick);
    let stacks = or(&settings.stacks, &defaults.stacks);
    let asked = or(&settings.modes, &defaults.modes);
    let baseline = settings.baseline.unwrap_or(defaults.baseline);
    let has = |mode: &HttpMode| stacks.iter().any(|stack| stack.modes().contains(mode));
    if let Some(mode) = asked.iter().copied().find(|mode| !has(mode)) {
        let what = "none of the stacks asked for sends like that; storaged+proxyd does";
        return Err(format!("--modes {mode}: {what}").into());
    }
    if let Some(stack) = stacks.first().copied().filter(|stack| !stack.modes().contains(&baseline))
    {
        let what = format!("{stack}, the first stack, does not send like that");
        return Err(format!("--baseline {baseline}: {what}").into());
    }
    let modes = with_baseline(baseline, &asked);
    let of_stack = |stack: Stack| {
        let has = modes.iter().copied().filter(move |mode| stack.modes().contains(mode));
        has.map(move |mode| Way { stack, mode })
    };
    Ok(unique(stacks.into_iter().flat_map(of_stack)))
}

fn cells(settings: &Settings, rate: Rate) -> Result<Vec<HttpCell>, PlanError> {
    let defaults = defaults(settings.quick);
    let objects = or(&settings.object_bytes, &defaults.object_bytes);
    let datasets = or(&settings.dataset_bytes, &defaults.dataset_bytes);
    let connections = or(&settings.connections, &defaults.connections);
    check_zeros(&[("object", objects.contains(&0)), ("dataset", datasets.contains(&0))])?;
    check_connections(&connections, MOST_CONNECTIONS)?;
    check_sizes(&[], &objects)?;
    let mut cells = Vec::new();
    for object_bytes in objects {
        for dataset in &datasets {
            if *dataset < object_bytes {
                return Err(PlanError::small_dataset(*dataset, object_bytes));
            }
            let dataset_bytes = dataset / object_bytes * object_bytes;
            for connections in connections.iter().copied() {
                let closed = HttpForm::Closed;
                let cell = HttpCell { object_bytes, dataset_bytes, connections, form: closed };
                cells.push(cell);
                if rate != Rate::Off {
                    cells.push(HttpCell { form: HttpForm::Open, ..cell });
                }
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests;
