//! How a survey goes on, and what it came to.

use std::process::ExitCode;

use ntcopy_record::foreign::visible;
use ntcopy_survey::engine::Ask;
use ntcopy_survey::engine::fleet::{Event, Outcome, State};
use ntcopy_survey::store::Store;
use serde_json::json;

use crate::cmd::{PARTIAL, WRONG_BYTE, bench};

/// Says it in a line on standard error.
pub fn event(event: Event<'_>) {
    let line = match event {
        Event::Started(node, 1) => format!("{node}: measuring"),
        Event::Started(node, attempt) => format!("{node}: measuring, attempt {attempt}"),
        Event::Stored(node, asked) => format!("{node}: stored {asked}"),
        Event::Again(node, why) => format!("{node}: {why}; again later"),
        Event::Ended(outcome) => {
            format!("{}: {}{}", outcome.node, outcome.state.as_str(), why(outcome))
        }
    };
    eprintln!("{}", visible(&line));
}

fn why(outcome: &Outcome) -> String {
    outcome.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
}

/// Says what became of every node, and gives the exit code for that.
pub fn outcomes(
    fleet: &str,
    store: &Store,
    ask: &Ask,
    outcomes: &[Outcome],
    json: bool,
    stopped: Option<i32>,
) -> anyhow::Result<ExitCode> {
    if json {
        let asked: Vec<String> = ask.experiments.iter().map(|name| ask.key(name)).collect();
        let is_complete = outcomes.iter().all(is_good);
        let object = json!({"fleet": fleet, "store": store.name(), "asked": asked,
            "nodes": outcomes, "complete": is_complete});
        println!("{object:#}");
    } else {
        print!("{}", text(outcomes));
        eprintln!("store: {}", store.name());
    }
    Ok(stopped.map_or_else(|| code(outcomes), bench::signalled))
}

fn is_good(outcome: &Outcome) -> bool {
    matches!(outcome.state, State::Measured | State::AlreadyThere)
}

fn code(outcomes: &[Outcome]) -> ExitCode {
    let good = outcomes.iter().filter(|outcome| is_good(outcome)).count();
    if outcomes.iter().any(|outcome| outcome.wrong_byte) {
        ExitCode::from(WRONG_BYTE)
    } else if good == outcomes.len() {
        ExitCode::SUCCESS
    } else if good > 0 {
        ExitCode::from(PARTIAL)
    } else {
        ExitCode::FAILURE
    }
}

fn text(outcomes: &[Outcome]) -> String {
    let mut lines = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| !is_good(outcome)) {
        let tried = match outcome.attempts {
            0 | 1 => String::new(),
            attempts => format!(" ({attempts} attempts)"),
        };
        let (node, state) = (&outcome.node, outcome.state.as_str());
        let line = format!("{node}: {state}{tried}{}", why(outcome));
        lines.push(visible(&line).into_owned());
    }
    let counts: Vec<String> =
        [State::Measured, State::AlreadyThere, State::Failed, State::Cancelled]
            .into_iter()
            .filter_map(|state| {
                let count = outcomes.iter().filter(|outcome| outcome.state == state).count();
                (count > 0).then(|| format!("{count} {}", state.as_str()))
            })
            .collect();
    let records: usize = outcomes.iter().map(|outcome| outcome.records.len()).sum();
    let nodes = if outcomes.len() == 1 { "1 node" } else { &format!("{} nodes", outcomes.len()) };
    let records = if records == 1 { "1 record".to_owned() } else { format!("{records} records") };
    lines.push(format!("{nodes}: {}; {records} stored", counts.join(", ")));
    lines.join("\n") + "\n"
}
