//! `ntcopy survey gather`: what the pods of a Job printed, into the store.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::run::Stop;
use ntcopy_survey::engine::Ask;
use ntcopy_survey::engine::fleet::State;
use ntcopy_survey::engine::kubernetes::Kubectl;
use ntcopy_survey::engine::kubernetes::gather::{self, GatherError};

use super::run::kubectl_failed;
use super::{StoreArg, say};

/// How often pods that are not done are asked after.
const LOOK: Duration = Duration::from_secs(10);

/// Arguments.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ntcopy survey gather --on kubernetes ntcopy-survey-0f3a9c2b11\n  \
                        ntcopy survey gather --on kubernetes JOB --wait --store \
                        postgresql://db/ntcopy\n\nGathering again stores nothing twice.\n\nExit \
                        codes: 0 every pod was done; 1 none was; 3 not available here; 4 a byte \
                        was wrong; 5 some were."
)]
pub struct Args {
    /// The scheduler: Slurm's records come back by themselves
    #[arg(long = "on", value_parser = ["kubernetes"], required = true)]
    _on: String,
    /// The Job's name
    job: String,
    /// Wait until all of its pods are done
    #[arg(long)]
    wait: bool,
    /// The fleet's name in the store [default: kubectl's context]
    #[arg(long, value_name = "NAME")]
    fleet: Option<String>,
    /// Context of kubectl
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    store: StoreArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let kubectl = Kubectl { context: args.context.clone(), namespace: args.namespace.clone() };
    let fleet = match args.fleet.clone().map_or_else(|| kubectl.cluster(), Ok) {
        Ok(fleet) => fleet,
        Err(error) => return kubectl_failed(error),
    };
    let mut store = args.store.open()?;
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let outcomes = loop {
        let outcomes = match gather::gather(&kubectl, &args.job, &fleet, &mut store) {
            Ok(outcomes) => outcomes,
            Err(GatherError::Kubectl(error)) => return kubectl_failed(error),
            Err(error) => return Err(error.into()),
        };
        let waiting = outcomes.iter().filter(|outcome| outcome.state == State::Waiting).count();
        if !args.wait || stop.signal().is_some() || (waiting == 0 && !outcomes.is_empty()) {
            break outcomes;
        }
        eprintln!("{waiting} of {} nodes not done yet", outcomes.len());
        let mut left = LOOK;
        while left > Duration::ZERO && stop.signal().is_none() {
            thread::sleep(Duration::from_millis(200));
            left = left.saturating_sub(Duration::from_millis(200));
        }
    };
    anyhow::ensure!(
        !outcomes.is_empty(),
        "there are no pods of a Job {}: see kubectl get jobs, --namespace and --context",
        args.job
    );
    // What was asked stands in the Job, and with every record.
    let ask = Ask { experiments: Vec::new(), quick: false, kernel: None };
    say::outcomes(&fleet, &store, &ask, &outcomes, args.json, stop.signal())
}
