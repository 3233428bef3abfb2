//! How a survey goes on, and what it came to.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ntcopy_survey::engine::Ask;
use ntcopy_survey::engine::fleet::{Event, Outcome, State};
use ntcopy_survey::store::Store;
use serde_json::{Value, json};

use crate::cmd::{PARTIAL, WRONG_BYTE, bench, report};

/// Shows on standard error how it goes on: a bar on a terminal, else a line for each event.
pub struct Watch {
    bar: Option<ProgressBar>,
    failed: usize,
}

impl Watch {
    /// Begins to watch `nodes` nodes.
    pub fn new(nodes: usize) -> Watch {
        let bar = io::stderr().is_terminal().then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(nodes as u64), ProgressDrawTarget::stderr());
            if let Ok(style) =
                ProgressStyle::with_template("{pos}/{len} nodes [{bar:32}] {elapsed} gone  {msg}")
            {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        Watch { bar, failed: 0 }
    }

    /// Something happened.
    pub fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Started(node, 1) => self.line(&format!("{node}: measuring"), true),
            Event::Started(node, attempt) => {
                self.line(&format!("{node}: measuring, attempt {attempt}"), true);
            }
            Event::Stored(node, asked) => self.line(&format!("{node}: stored {asked}"), true),
            Event::Again(node, why) => self.line(&format!("{node}: {why}; again later"), false),
            Event::Ended(outcome) => {
                self.failed += usize::from(outcome.state == State::Failed);
                let why = outcome.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                let is_good = outcome.state != State::Failed;
                let line = format!("{}: {}{why}", outcome.node, outcome.state.as_str());
                self.line(&line, is_good);
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                    if self.failed > 0 {
                        bar.set_message(format!("{} failed", self.failed));
                    }
                }
            }
        }
    }

    /// A line; on a terminal those that are only progress pass by beside the bar.
    fn line(&self, line: &str, is_progress: bool) {
        match &self.bar {
            Some(bar) if is_progress && self.failed == 0 => bar.set_message(line.to_owned()),
            Some(_) if is_progress => {}
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// It is over.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
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
    let text = if json {
        format!("{:#}\n", object(fleet, store.name(), ask, outcomes))
    } else {
        text(outcomes)
    };
    report::print(&text)?;
    if !json {
        eprintln!("store: {}", store.name());
    }
    if let Some(signal) = stopped {
        return Ok(bench::signalled(signal));
    }
    Ok(code(outcomes))
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

fn object(fleet: &str, store: &str, ask: &Ask, outcomes: &[Outcome]) -> Value {
    let nodes: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            let mut node = json!({
                "node": outcome.node,
                "state": outcome.state.as_str(),
                "attempts": outcome.attempts,
                "records": outcome.records,
            });
            if let Some(why) = &outcome.why {
                node["why"] = why.as_str().into();
            }
            if outcome.wrong_byte {
                node["wrong_byte"] = true.into();
            }
            node
        })
        .collect();
    let asked: Vec<String> = ask.experiments.iter().map(|name| ask.key(name)).collect();
    let mut object = json!({"fleet": fleet, "store": store});
    if !asked.is_empty() {
        object["asked"] = asked.into();
    }
    object["nodes"] = nodes.into();
    object["complete"] = outcomes.iter().all(is_good).into();
    object
}

fn text(outcomes: &[Outcome]) -> String {
    let mut lines = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| !is_good(outcome)) {
        let why = outcome.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let tried = match outcome.attempts {
            0 | 1 => String::new(),
            attempts => format!(" ({attempts} attempts)"),
        };
        lines.push(format!("{}: {}{tried}{why}", outcome.node, outcome.state.as_str()));
    }
    let states =
        [State::Measured, State::AlreadyThere, State::Failed, State::Waiting, State::Cancelled];
    let counts: Vec<String> = states
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(node: &str, state: State) -> Outcome {
        Outcome { state, ..Outcome::new(node) }
    }

    #[test]
    fn the_exit_code_says_whether_all_some_or_none_answered() {
        let is = |outcomes: &[Outcome], expected: u8| {
            assert_eq!(format!("{:?}", code(outcomes)), format!("{:?}", ExitCode::from(expected)));
        };
        let (good, bad) = (outcome("a", State::Measured), outcome("b", State::Failed));
        let there = outcome("c", State::AlreadyThere);
        is(&[good.clone(), there.clone()], 0);
        is(&[there, bad.clone()], PARTIAL);
        is(std::slice::from_ref(&bad), 1);
        is(&[good, Outcome { wrong_byte: true, ..bad }], WRONG_BYTE);
    }

    #[test]
    fn failed_nodes_are_named_with_their_reason() {
        let failed =
            Outcome { why: Some("down".into()), attempts: 3, ..outcome("n3", State::Failed) };
        let text = text(&[outcome("n1", State::Measured), failed]);
        assert_eq!(
            text,
            "n3: failed (3 attempts): down\n2 nodes: 1 measured, 1 failed; 0 records stored\n"
        );
    }
}
