//! `ntcopy bench http`: client, proxy and backend, in this kernel or in a booted one.

use std::process::ExitCode;

use ntcopy_bench::experiments::http::{self, HttpMode, Rate, Scheme, Settings, Stack, Transport};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Unavailable};

use super::against::AgainstArgs;
use super::args::Common;
use super::launch::{KernelCpus, Launch};

const EXAMPLES: &str = "\
Examples:
  ntcopy bench http --kernel um                   storaged and proxyd, in the kernel with the flag
  ntcopy bench http --kernel um --against unpatched --sndbuf 4MiB     relative to a stock kernel
  ntcopy bench http --quick                       on this kernel, in a minute
  ntcopy bench http --stack haproxy+nginx,storaged+proxyd --modes copy
  ntcopy bench http --stack haproxy+nginx,storaged+proxyd --modes sendfile --baseline sendfile
  ntcopy bench http --kernel um --stack haproxy+nginx --nginx-buffer 1MiB    files read, not sendfile
  ntcopy bench http --kernel um --stack haproxy+storaged          HAProxy before a hinted backend
  ntcopy bench http --scheme tls --object 64KiB,1MiB --connections 64
  ntcopy bench http --kernel um --transport veth         the hint beside tx-nocache-copy
  ntcopy bench http --kernel um --hot-set 512KiB         what the backend leaves of the cache

A client asks a proxy, which asks a backend. Each cell is measured twice. Without a pause, every \
connection asks again as soon as it is answered: how much goes through, and what CPU time it costs \
each process. On a schedule, requests come at an offered rate, the same in every mode, whether or \
not others have been answered: how long does an answer take, from the moment its request was due?

Modes: copy (plain sends, the baseline), nt (hinted, obeyed), adaptive (hinted, the kernel's rule \
decides), sendfile (the backend copies nothing); storaged also has vmsplice and auto. nginx, and \
HAProxy before it, get the hint from `ntcopy run`; before storaged HAProxy is as it is. Proxies and \
backends are started again for each pair, because which memory a process got changes its speed by a \
few percent, in any mode.

--transport veth adds the mode nocache: plain sends, and the feature tx-nocache-copy of both \
devices. Client and proxy are then in one network namespace and the backend in another, joined by a \
pair of devices for each mode. Namespaces and devices have no names and end with the program; the \
namespace it was started in is not touched. This takes root, or a system that lets users make \
namespaces.

--hot-set starts another program on the backend's CPU, which reads a hot set of that size every \
2 ms, line after line in random order, and times itself; idle is that time without requests. A \
booted kernel is put on one CPU of the host then, so that both share its caches.

With --against connections ask without a pause, because a rate would be another one in each boot.

With several stacks a mode is called STACK:MODE. The baseline is the first stack's copy, or what \
--baseline says, and the offered rate is a part of what the baseline does without a pause.";

/// Arguments of `bench http`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct HttpArgs {
    /// Proxy and backend: storaged+proxyd, haproxy+storaged, haproxy+nginx, nginx+nginx [default:
    /// storaged+proxyd]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    stack: Vec<Stack>,
    /// Modes to compare with the baseline [default: nt,adaptive,sendfile; with --transport veth
    /// nt,adaptive,nocache]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<HttpMode>,
    /// Mode of the first stack that all are compared with, and whose rate counts [default: copy]
    #[arg(long, value_name = "MODE", conflicts_with = "against")]
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
    /// requests per second, or off [default: 0.7]
    #[arg(long, value_name = "FRACTION|REQ/S", conflicts_with = "against")]
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
    /// HAProxy reads bodies and writes them, where it would splice them
    #[arg(long)]
    no_splice: bool,
    /// What each of HAProxy's pipes holds [default: HAProxy's own, 64 KiB]
    #[arg(long, value_name = "SIZE")]
    haproxy_pipe: Option<Bytes>,
    /// Hot set of another program on the backend's CPU; without --cpus the backend is kept on the
    /// last CPU [default: none]
    #[arg(long, value_name = "SIZE")]
    hot_set: Option<Bytes>,
    /// How often proxies and backends are started anew in each cell [default: for each pair; with
    /// --quick once]
    #[arg(long, hide = true, value_name = "N", conflicts_with = "against")]
    starts: Option<u32>,
    #[command(flatten)]
    against: AgainstArgs,
}

impl HttpArgs {
    fn settings(&self, common: &Common) -> Settings {
        let settings = self.as_asked(common);
        match self.against.modes(&self.modes) {
            Some(modes) => one_boot(settings, modes),
            None => settings,
        }
    }

    fn as_asked(&self, common: &Common) -> Settings {
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
            without_splice: self.no_splice,
            haproxy_pipe_bytes: self.haproxy_pipe.map(|size| size.0),
            hot_set_bytes: self.hot_set.map(|size| size.0),
            pairs: common.extent.pairs,
            starts: self.starts,
            quick: common.extent.quick,
        }
    }
}

/// What one boot measures of two that are compared, briefly.
fn one_boot(mut settings: Settings, modes: Vec<HttpMode>) -> Settings {
    let defaults = http::defaults();
    if !settings.quick && settings.object_bytes.is_empty() {
        settings.object_bytes.clone_from(&defaults.object_bytes);
    }
    if !settings.quick && settings.connections.is_empty() {
        settings.connections.clone_from(&defaults.connections);
    }
    settings.modes = modes;
    settings.quick = true;
    settings.pairs = Some(defaults.quick_pairs);
    settings.rate = Some(Rate::Off);
    settings
}

pub fn run(common: &Common, args: &HttpArgs) -> anyhow::Result<ExitCode> {
    // A stack that was named and is not installed, or a mode that was named.
    let is_asked = |line: &Unavailable| {
        let (stack, mode) = line.mode.rsplit_once(':').unwrap_or(("", &line.mode));
        let names_mode = args.modes.iter().any(|asked| asked.as_str() == mode);
        let names_stack = args.modes.is_empty()
            && mode == args.baseline.unwrap_or(HttpMode::Copy).as_str()
            && args.stack.iter().any(|asked| asked.as_str() == stack);
        names_mode || names_stack
    };
    if args.against.kernel().is_some() && args.stack.len() > 1 {
        eprintln!("ntcopy: --against compares two kernels, and --stack can name one stack then");
        return Ok(ExitCode::from(2));
    }
    let defaults = http::defaults();
    let launch = Launch {
        common,
        experiment: ExperimentKind::Http,
        kernel_cpus: match args.hot_set {
            // The host might give the kernel's copies and the other program two CPUs otherwise.
            Some(_) => KernelCpus::OnePinned,
            // Its processes take turns, and what one of them costs then shows.
            None => KernelCpus::Free(1),
        },
        worker_args: Vec::new(),
        against: args.against.boots(common, &args.modes, (defaults.pairs, defaults.quick_pairs)),
        plan: &|cpus| http::plan::plan(&args.settings(common), cpus),
        is_asked: &is_asked,
    };
    launch.run()
}
