//! `ntcopy survey run`.

use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_bench::run::{self, Stop};
use ntcopy_record::foreign::visible;
use ntcopy_record::lists::unique;
use ntcopy_survey::engine::fleet::{self, Event, Outcome, Plan, State};
use ntcopy_survey::engine::tool::{TEMPLATES, Tool};
use serde::Serialize;

use super::{AskArgs, StoreArg};
use crate::cmd::{PARTIAL, WRONG_BYTE, signal_code, usage};
use crate::say;

const EXAMPLES: &str = "\
Examples:
  ntcopy survey run --on slurm --nodes \"$(sinfo -hN -o %N | sort -u)\" --quick
  ntcopy survey run --on kubernetes --image registry/ntcopy:0.2.0 --nodes n1,n2
  ntcopy survey run --with 'my-tool --host {node} -- {ntcopy}' --nodes web7,web8

The site's own tool is called once for each node, and records are stored as they come. Run again, it
measures what the store lacks. Ctrl-C ends the tools and keeps what came. docs/reference/record.md has the templates.

Exit codes: 0 every node answered; 1 none did; 2 usage; 4 a byte was wrong; 5 some nodes answered,
others failed.";

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The template of this name
    #[arg(long, value_name = "TOOL", value_parser = TEMPLATES.map(|(name, _)| name),
          required_unless_present = "with", conflicts_with = "with")]
    on: Option<String>,
    /// A template of your own
    #[arg(long, value_name = "COMMAND")]
    with: Option<String>,
    /// Names of nodes, separated by commas or white space
    #[arg(long, value_name = "LIST")]
    nodes: String,
    /// The image with ntcopy in it, for {image} in a template
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
    /// The program ntcopy on the nodes, or in the image
    #[arg(long, value_name = "PATH", default_value = "ntcopy")]
    ntcopy: String,
    /// Nodes at a time
    #[arg(long, value_name = "N", default_value = "32",
          value_parser = clap::value_parser!(u16).range(1..=512))]
    parallel: u16,
    /// Answers of the last DAYS days are good enough; with 0 every node is measured
    #[arg(long, value_name = "DAYS", default_value = "7")]
    max_age: u32,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Object<'a> {
    fleet: &'a str,
    store: &'a str,
    asked: Vec<String>,
    nodes: &'a [Outcome],
    complete: bool,
}

pub fn run(asked: &StoreArg, args: &Args) -> anyhow::Result<ExitCode> {
    let named = TEMPLATES.iter().find(|(name, _)| args.on.as_deref() == Some(*name));
    let template = args.with.as_deref().or(named.map(|(_, template)| *template));
    let template = template.unwrap_or_default();
    let tool = Tool::new(template, args.image.as_deref(), asked.fleet(), &args.ntcopy);
    let tool = tool.map_err(usage)?;
    let words = args.nodes.split([',', ' ', '\t', '\n']).filter(|name| !name.is_empty());
    let nodes = unique(words.map(str::to_owned));
    anyhow::ensure!(!nodes.is_empty(), "--nodes names no node");
    let mut store = asked.open()?;
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let ask = args.ask.ask();
    let plan = Plan {
        tool: &tool,
        fleet: asked.fleet(),
        ask: &ask,
        nodes: &nodes,
        parallel: args.parallel.into(),
        good_since_unix_ns: (args.max_age > 0)
            .then(|| run::unix_now_ns().saturating_sub(u64::from(args.max_age) * DAY_NS)),
    };
    let cancelled = || stop.signal().is_some();
    let outcomes = fleet::run(&plan, &mut store, &cancelled, &mut tell)?;
    if asked.json {
        say::object(&Object {
            fleet: asked.fleet(),
            store: store.name(),
            asked: ask.experiments.iter().map(|name| ask.key(name)).collect(),
            nodes: &outcomes,
            complete: outcomes.iter().all(is_good),
        })?;
    } else {
        print(&outcomes);
        eprintln!("store: {}", store.name());
    }
    Ok(ExitCode::from(stop.signal().map_or_else(|| code(&outcomes), signal_code)))
}

/// Says in a line on standard error how it goes on.
fn tell(event: Event<'_>) {
    let line = match event {
        Event::Started(node) => format!("{node}: measuring"),
        Event::Stored(node, asked) => format!("{node}: stored {asked}"),
        Event::Ended(outcome) => ended(outcome),
    };
    eprintln!("{}", visible(&line));
}

fn ended(outcome: &Outcome) -> String {
    let why = outcome.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{}: {}{why}", outcome.node, outcome.state.as_str())
}

fn is_good(outcome: &Outcome) -> bool {
    matches!(outcome.state, State::Measured | State::AlreadyThere)
}

fn code(outcomes: &[Outcome]) -> u8 {
    let good = outcomes.iter().filter(|outcome| is_good(outcome)).count();
    if outcomes.iter().any(|outcome| outcome.wrong_byte) {
        WRONG_BYTE
    } else if good == outcomes.len() {
        0
    } else if good > 0 {
        PARTIAL
    } else {
        1
    }
}

/// What became of nodes that did not answer, and how many did.
fn print(outcomes: &[Outcome]) {
    let (good, failed): (Vec<&Outcome>, Vec<&Outcome>) =
        outcomes.iter().partition(|one| is_good(one));
    for outcome in failed {
        println!("{}", visible(&ended(outcome)));
    }
    let records: usize = outcomes.iter().map(|outcome| outcome.records.len()).sum();
    println!(
        "nodes that answered: {} of {}; records stored: {records}",
        good.len(),
        outcomes.len()
    );
}
