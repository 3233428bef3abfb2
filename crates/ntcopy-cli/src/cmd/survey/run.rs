//! `ntcopy survey run`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use ntcopy_bench::run::Stop;
use ntcopy_survey::engine::fleet::{self, Plan};
use ntcopy_survey::engine::kubernetes::manifest::{self, Job, Nodes, Toleration};
use ntcopy_survey::engine::kubernetes::{Kubectl, KubectlError};
use ntcopy_survey::engine::slurm::{self, Slurm, SlurmError};

use super::say::{self, Watch};
use super::{AskArgs, StoreArg};
use crate::cmd::bench::not_available;
use crate::cmd::report;

const EXAMPLES: &str = "\
Examples:
  ntcopy survey run --on slurm --quick
  ntcopy survey run --on slurm --partition web --nodes 'web[1-40]' --store postgresql://db/ntcopy
  ntcopy survey run --on kubernetes --image registry/ntcopy:0.1 --count 40 > job.json
  ntcopy survey run --on kubernetes --image registry/ntcopy:0.1 --submit
  ntcopy survey gather --on kubernetes JOB

Slurm: one task a node, alone on it, by srun; records come back on its standard output and are
stored as they come. Nodes that fail are reported and tried again. Run again, it measures what the
store lacks: a node is asked nothing that it answered within --max-age days. Ctrl-C cancels the
tasks and keeps what came.

Kubernetes: prints an Indexed Job with one pod a node (JSON, for kubectl apply), or applies it. The
pods need no privilege: copies in user space are what they measure.

Exit codes: 0 every node answered; 1 none did; 2 usage; 3 not available here; 4 a byte was wrong;
5 some nodes answered, others failed.";

/// The scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum On {
    /// A task a node by srun
    Slurm,
    /// An Indexed Job with a pod a node
    Kubernetes,
}

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The scheduler that the fleet has
    #[arg(long, value_enum)]
    on: On,
    /// Nodes: names, separated by commas; for Slurm as it writes them, n[1-8] [default: all]
    #[arg(long, value_name = "LIST")]
    nodes: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
    /// The program ntcopy on the nodes, or in the image [default: ntcopy]
    #[arg(long, value_name = "PATH", default_value = "ntcopy", hide_default_value = true)]
    ntcopy: PathBuf,
    /// How often a node that failed is tried again
    #[arg(long, value_name = "N", default_value = "2",
          value_parser = clap::value_parser!(u32).range(..=100))]
    retries: u32,
    /// The fleet's name in the store [default: the cluster's own]
    #[arg(long, value_name = "NAME")]
    fleet: Option<String>,
    #[command(flatten)]
    store: StoreArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Slurm")]
    slurm: SlurmArgs,
    #[command(flatten, next_help_heading = "Kubernetes")]
    kubernetes: KubernetesArgs,
}

/// What Slurm alone takes.
#[derive(clap::Args)]
struct SlurmArgs {
    /// Partition [default: Slurm's]
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// Nodes at a time
    #[arg(long, value_name = "N", default_value = "32",
          value_parser = clap::value_parser!(u16).range(1..=512))]
    parallel: u16,
    /// Seconds that a busy node is waited for
    #[arg(long, value_name = "SECONDS", default_value = "3600",
          value_parser = clap::value_parser!(u32).range(1..))]
    patience: u32,
    /// Seconds before a node that failed is tried again
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    retry_after: u32,
    /// Minutes after which Slurm ends a task [default: the partition's]
    #[arg(long, value_name = "MINUTES")]
    time: Option<u32>,
    /// One more option for srun: --srun-option=--account=web
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    srun_option: Vec<String>,
    /// Answers of the last DAYS days are good enough
    #[arg(long, value_name = "DAYS", default_value = "7", conflicts_with = "again")]
    max_age: u32,
    /// Measure every node, whatever the store has
    #[arg(long)]
    again: bool,
}

/// What Kubernetes alone takes.
#[derive(clap::Args)]
struct KubernetesArgs {
    /// Image with the program ntcopy
    #[arg(long, value_name = "IMAGE", required_if_eq("on", "kubernetes"))]
    image: Option<String>,
    /// Number of nodes, whichever they are [default: as many as kubectl lists]
    #[arg(long, value_name = "N", conflicts_with = "nodes",
          value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Give the Job to the cluster instead of printing it
    #[arg(long, alias = "apply")]
    submit: bool,
    /// Context of kubectl
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only nodes with this label
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    node_selector: Vec<(String, String)>,
    /// A taint that does not keep a pod away: KEY or KEY=VALUE, maybe with :EFFECT, or all
    #[arg(long, value_name = "TAINT")]
    toleration: Vec<Toleration>,
    /// Memory of a pod
    #[arg(long, value_name = "QUANTITY", default_value = "4Gi")]
    memory: String,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.on {
        On::Slurm => on_slurm(args),
        On::Kubernetes => on_kubernetes(args),
    }
}

fn on_slurm(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(option) = given_of_kubernetes(&args.kubernetes) {
        return Ok(usage(&format!("{option} is for --on kubernetes")));
    }
    let fleet = match args.fleet.clone().map_or_else(slurm::cluster, Ok) {
        Ok(fleet) => fleet,
        Err(error) => return slurm_failed(error),
    };
    let engine = Slurm {
        fleet: fleet.clone(),
        partition: args.slurm.partition.clone(),
        program: args.ntcopy.clone(),
        patience_s: args.slurm.patience,
        minutes: args.slurm.time,
        options: args.slurm.srun_option.clone(),
    };
    let nodes = match engine.nodes(args.nodes.as_deref()) {
        Ok(nodes) => nodes,
        Err(error) => return slurm_failed(error),
    };
    anyhow::ensure!(!nodes.is_empty(), "Slurm lists no nodes: see sinfo, --partition and --nodes");
    let mut store = args.store.open()?;
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let ask = args.ask.ask();
    let plan = Plan {
        engine: &engine,
        fleet: &fleet,
        ask: &ask,
        nodes: &nodes,
        retries: args.retries,
        retry_after: Duration::from_secs(args.slurm.retry_after.into()),
        parallel: args.slurm.parallel.into(),
        good_since_unix_ns: (!args.slurm.again).then(|| since(args.slurm.max_age)),
    };
    let mut watch = Watch::new(nodes.len());
    let cancelled = || stop.signal().is_some();
    let outcomes = fleet::run(&plan, &mut store, &cancelled, &mut |event| watch.event(event))?;
    watch.end();
    say::outcomes(&fleet, &store, &ask, &outcomes, args.json, stop.signal())
}

/// The time `days` days ago.
fn since(days: u32) -> u64 {
    let age = Duration::from_secs(u64::from(days) * 24 * 3600);
    let since = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or_default()
}

/// An option that Slurm would not hear of.
fn given_of_kubernetes(args: &KubernetesArgs) -> Option<&'static str> {
    let given = [
        ("--image", args.image.is_some()),
        ("--count", args.count.is_some()),
        ("--submit", args.submit),
        ("--context", args.context.is_some()),
        ("--namespace", args.namespace.is_some()),
        ("--node-selector", !args.node_selector.is_empty()),
        ("--toleration", !args.toleration.is_empty()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
}

fn on_kubernetes(args: &Args) -> anyhow::Result<ExitCode> {
    let ours = &args.kubernetes;
    if args.slurm.partition.is_some() || !args.slurm.srun_option.is_empty() {
        return Ok(usage("--partition and --srun-option are for --on slurm"));
    }
    if args.ask.ask().kernel.is_some() {
        return Ok(usage("--kernel: a pod builds and boots no kernels; it measures in its node's"));
    }
    let kubectl = Kubectl { context: ours.context.clone(), namespace: ours.namespace.clone() };
    let job = match job(args, &kubectl) {
        Ok(Ok(job)) => job,
        Ok(Err(why)) => return Ok(usage(&why)),
        Err(error) => return kubectl_failed(error),
    };
    let text = format!("{:#}\n", job.object());
    let gather = format!("ntcopy survey gather --on kubernetes --fleet {} {}", job.fleet, job.name);
    if ours.submit {
        match kubectl.apply(&text) {
            Ok(said) => report::print(&format!("{said}\n"))?,
            Err(error) => return kubectl_failed(error),
        }
        eprintln!("when its pods are done: {gather}");
    } else {
        report::print(&text)?;
        eprintln!("for kubectl apply -f -; when its pods are done: {gather}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The Job; or what has to be said on the command line first.
fn job(args: &Args, kubectl: &Kubectl) -> Result<Result<Job, String>, KubectlError> {
    let ours = &args.kubernetes;
    let nodes = match (&args.nodes, ours.count) {
        (Some(list), _) => {
            let names: Vec<String> = list
                .split(',')
                .map(str::trim)
                .filter(|n| !n.is_empty())
                .map(str::to_owned)
                .collect();
            if names.is_empty() || list.contains('[') {
                return Ok(Err(format!("--nodes {list}: names, separated by commas")));
            }
            Nodes::Named(names)
        }
        (None, Some(count)) => Nodes::Any(count),
        (None, None) => {
            let labels: Vec<String> =
                ours.node_selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let selector = (!labels.is_empty()).then(|| labels.join(","));
            let names = kubectl.nodes(selector.as_deref())?;
            if names.is_empty() {
                return Ok(Err("kubectl lists no node that takes pods".to_owned()));
            }
            Nodes::Named(names)
        }
    };
    // Printing one takes no cluster.
    let fleet = args.fleet.clone().map_or_else(|| kubectl.cluster(), Ok);
    let fleet = match fleet {
        Ok(fleet) => fleet,
        Err(KubectlError::NotHere(_)) if !ours.submit => {
            return Ok(Err("say --fleet NAME: there is no kubectl here to ask".to_owned()));
        }
        Err(error) => return Err(error),
    };
    let Some(program) = args.ntcopy.to_str() else {
        return Ok(Err("--ntcopy is not UTF-8, and JSON is".to_owned()));
    };
    Ok(Ok(Job {
        name: manifest::new_name(),
        namespace: ours.namespace.clone(),
        fleet,
        ask: args.ask.ask(),
        image: ours.image.clone().unwrap_or_default(),
        program: program.to_owned(),
        nodes,
        node_selector: ours.node_selector.clone(),
        tolerations: ours.toleration.clone(),
        retries: args.retries,
        memory: ours.memory.clone(),
    }))
}

fn slurm_failed(error: SlurmError) -> anyhow::Result<ExitCode> {
    match error {
        SlurmError::NotHere { .. } => Ok(not_available(&error.to_string())),
        SlurmError::Failed { .. } => Err(error.into()),
    }
}

/// The same of `kubectl`.
pub fn kubectl_failed(error: KubectlError) -> anyhow::Result<ExitCode> {
    match error {
        KubectlError::NotHere(_) => Ok(not_available(&error.to_string())),
        _ => Err(error.into()),
    }
}

fn usage(why: &str) -> ExitCode {
    eprintln!("ntcopy: {why}");
    ExitCode::from(2)
}
