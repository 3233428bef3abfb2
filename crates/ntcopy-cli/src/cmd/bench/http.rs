//! `ntcopy bench http`: client, proxy and backend, in this kernel or in a booted one.

use std::process::ExitCode;

use ntcopy_bench::experiments::http::{self, HttpMode, Rate, Scheme, Settings, Stack, Transport};
use ntcopy_bench::guest::against::Against;
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Unavailable};

use super::against::{KernelPair, nothing_settled};
use super::args::Common;
use super::launch::{KernelCpus, Launch};

const EXAMPLES: &str = "\
Examples:
  ntcopy bench http --kernel um                   storaged and proxyd, in the kernel with the flag
  ntcopy bench http --kernel um --against unpatched --sndbuf 4MiB     by today's kernel's plain sends
  ntcopy bench http --quick                       on this kernel, in a minute
  ntcopy bench http --stack haproxy+nginx,storaged+proxyd --modes copy
  ntcopy bench http --stack haproxy+nginx,storaged+proxyd --modes sendfile --baseline sendfile
  ntcopy bench http --kernel um --stack haproxy+nginx --nginx-buffer 1MiB    files read, not sendfile
  ntcopy bench http --scheme tls --object 64KiB,1MiB --connections 64
  ntcopy bench http --kernel um --transport veth         the hint beside tx-nocache-copy
  ntcopy bench http --kernel um --hot-set 512KiB         what the backend leaves of the cache

A client asks a proxy, which asks a backend. Each combination of objects and connections is \
measured twice. Without a pause, every connection asks anew as soon as it is answered: how much \
goes through, and what it costs each process in CPU time. On a schedule, requests come at an \
offered rate whether or not others have been answered, the same in every mode: how long does an \
answer take, from when its request was due?

Modes: copy (plain sends, the baseline), nt (hinted, obeyed), adaptive (hinted, the kernel's \
rule decides), sendfile (the backend copies nothing); storaged+proxyd also has vmsplice and auto. \
nginx and HAProxy get the hint from `ntcopy run`. The daemons are started in a folder of their \
own, and end with the measurement.

With --transport veth there is also nocache: plain sends, and the feature tx-nocache-copy of both
devices. Client and proxy are in one network namespace then, the backend in another, with a pair of
devices for each mode. They have no names, and go with the program, however it ends; the namespace
that it was started in is not touched. This takes root, or a system that lets users make namespaces.

With --hot-set a victim on the backend's CPU walks through a hot set of that size every 2 ms, line \
after line in random order, and times itself; idle is the walk without requests. A booted kernel \
is put on one CPU of the host then, so that the kernel's copies and the victim share its caches.

With --against two kernels are booted in turns: the one with the patches measures copy, nt and \
adaptive (or --modes), the other plain sends, and all are compared with these. Connections ask \
without a pause then; a rate would be another one in each boot.

Proxies and backends are started anew for each pair: which memory a process got makes it some \
hundredths faster or slower for as long as it lives, whatever its mode.

With several stacks a mode is called STACK:MODE, and the first stack's copy is the baseline, or \
what --baseline says: what is offered on a schedule is a part of what that does without a pause.

Sizes are 65536, 64k or 64KiB, with M and G alike; lists are separated by commas.
Exit codes: 0 done; 1 a run failed; 2 usage; 3 not available here; 4 a byte was wrong.";

/// Arguments of `bench http`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct HttpArgs {
    #[command(flatten)]
    pub common: Common,
    /// Proxy and backend: storaged+proxyd, haproxy+nginx, nginx+nginx [default: storaged+proxyd]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    stack: Vec<Stack>,
    /// Modes to compare with the baseline [default: nt,adaptive,sendfile; with --transport veth
    /// nt,adaptive,nocache]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<HttpMode>,
    /// Mode of the first stack that all are compared with, and whose rate counts [default: copy]
    #[arg(long, value_name = "MODE")]
    baseline: Option<HttpMode>,
    /// Between proxy and backend: unix; tcp, over the loopback; veth, TCP through a pair of devices
    /// between two network namespaces [default: unix]
    #[arg(long, value_name = "HOW")]
    transport: Option<Transport>,
    /// Between client and proxy: plain, tls, ktls [default: plain]
    #[arg(long, value_name = "HOW")]
    scheme: Option<Scheme>,
    /// TCP's congestion control, in a network namespace of its own: reno, cubic [default: the
    /// system's]
    #[arg(long, hide = true, value_name = "NAME")]
    congestion: Option<String>,
    /// Object sizes [default: 64KiB,1MiB,4MiB; with --quick 1MiB]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    object: Vec<Bytes>,
    /// Connections of the client [default: 1,16,64; with --quick 1,64]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    connections: Vec<u32>,
    /// Sizes of the data set that objects are taken from, in turns [default: 256MiB]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    dataset: Vec<Bytes>,
    /// Threads of the proxy, and as many of the backend [default: 1]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Offered when latencies are measured: a part of what the baseline does without a pause,
    /// requests a second, or off [default: 0.7]
    #[arg(long, value_name = "FRACTION|REQ/S")]
    rate: Option<Rate>,
    /// CPUs of client, proxy and backend, or one for all [default: wherever the system likes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// The backend's send buffers [default: the system's]
    #[arg(long, value_name = "SIZE")]
    sndbuf: Option<Bytes>,
    /// A buffer of nginx, of which it has 2 for a file that it sends and 4 for a body that it
    /// passes on [default: nginx's own, 32 KiB and 4 KiB]
    #[arg(long, value_name = "SIZE")]
    nginx_buffer: Option<Bytes>,
    /// Size of a hot set that a victim on the backend's CPU walks through meanwhile; without
    /// --cpus the backend is kept on the last CPU [default: none]
    #[arg(long, value_name = "SIZE")]
    hot_set: Option<Bytes>,
    /// How often proxies and backends are started anew in each cell [default: for each pair; with
    /// --quick once]
    #[arg(long, hide = true, value_name = "N")]
    starts: Option<u32>,
    /// Compare, boot by boot, this kernel's sends with the plain ones of a kernel without the
    /// patches
    #[arg(long, value_name = "KERNEL", value_parser = ["unpatched"],
          conflicts_with_all = ["rate", "baseline", "starts"])]
    against: Option<String>,
}

impl HttpArgs {
    fn settings(&self) -> Settings {
        let settings = self.as_asked();
        if self.against.is_some() { one_boot(settings) } else { settings }
    }

    /// The boots of two kernels, if any are asked for.
    fn boots(&self) -> Option<KernelPair<'_>> {
        let defaults = http::defaults();
        let asked: Vec<&str> = self.modes.iter().map(|mode| mode.as_str()).collect();
        self.against.as_ref().map(|_| KernelPair {
            common: &self.common,
            against: Against::Unpatched,
            modes: if asked.is_empty() {
                BOOT_MODES.map(HttpMode::as_str).into()
            } else {
                asked.clone()
            },
            asked,
            pairs: if self.common.extent.quick { defaults.quick_pairs } else { defaults.pairs },
            settled: nothing_settled,
        })
    }

    fn as_asked(&self) -> Settings {
        let sizes = |sizes: &[Bytes]| sizes.iter().map(|size| size.0).collect();
        Settings {
            stacks: self.stack.clone(),
            modes: self.modes.clone(),
            baseline: self.baseline,
            transport: self.transport,
            scheme: self.scheme,
            congestion: self.congestion.clone(),
            object_bytes: sizes(&self.object),
            connections: self.connections.clone(),
            dataset_bytes: sizes(&self.dataset),
            workers: self.workers,
            rate: self.rate,
            cpus: self.cpus.clone(),
            sndbuf_bytes: self.sndbuf.map(|size| size.0),
            nginx_buffer_bytes: self.nginx_buffer.map(|size| size.0),
            hot_set_bytes: self.hot_set.map(|size| size.0),
            pairs: self.common.extent.pairs,
            starts: self.starts,
            quick: self.common.extent.quick,
        }
    }
}

/// Modes of a boot that is compared with another kernel's, beside plain sends.
const BOOT_MODES: [HttpMode; 2] = [HttpMode::Nt, HttpMode::Adaptive];

/// What one boot measures of two that are compared, briefly.
fn one_boot(mut settings: Settings) -> Settings {
    let defaults = http::defaults();
    if !settings.quick && settings.object_bytes.is_empty() {
        settings.object_bytes.clone_from(&defaults.object_bytes);
    }
    if !settings.quick && settings.connections.is_empty() {
        settings.connections.clone_from(&defaults.connections);
    }
    if settings.modes.is_empty() {
        settings.modes = BOOT_MODES.into();
    }
    settings.quick = true;
    settings.pairs = Some(defaults.quick_pairs);
    settings.rate = Some(Rate::Off);
    settings
}

pub fn run(args: &HttpArgs) -> anyhow::Result<ExitCode> {
    // A stack that was named and is not installed, or a mode that was named.
    let is_asked = |line: &Unavailable| {
        let (stack, mode) = line.mode.rsplit_once(':').unwrap_or(("", &line.mode));
        let names_mode = args.modes.iter().any(|asked| asked.as_str() == mode);
        let names_stack = args.modes.is_empty()
            && mode == args.baseline.unwrap_or(HttpMode::Copy).as_str()
            && args.stack.iter().any(|asked| asked.as_str() == stack);
        names_mode || names_stack
    };
    if args.against.is_some() && args.stack.len() > 1 {
        eprintln!("ntcopy: --against compares two kernels, and --stack can name one stack then");
        return Ok(ExitCode::from(2));
    }
    let launch = Launch {
        common: &args.common,
        experiment: ExperimentKind::Http,
        kernel_cpus: match args.hot_set {
            // The host might give the kernel's copies and the victim two CPUs otherwise.
            Some(_) => KernelCpus::OnePinned,
            // Its processes take turns, and what one of them costs then shows.
            None => KernelCpus::Free(1),
        },
        worker_args: Vec::new(),
        against: args.boots(),
        plan: &|cpus| http::plan::plan(&args.settings(), cpus),
        is_asked: &is_asked,
    };
    launch.run()
}
