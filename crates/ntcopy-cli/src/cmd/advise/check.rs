//! `--check`: measures advice anew, and says whether it held.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_bench::machine;
use ntcopy_bench::run::Stop;
use ntcopy_record::Record;
use ntcopy_record::advice::{Advice, Check, Judged, Target, judge, most_valuable};
use ntcopy_report::advice as show;
use serde_json::{Value, json};

use super::Args;
use crate::cmd::{NOT_AVAILABLE, WRONG_BYTE, bench, not_available};

/// How many pieces of advice are measured.
const MOST: usize = 3;

/// What became of one piece of advice.
enum Outcome {
    Judged(Judged),
    /// It cannot be measured here.
    Unavailable(String),
    /// Its measurement failed.
    Failed(String),
    /// A byte was wrong.
    WrongByte,
}

pub fn run(all: &[Advice], target: &Target, args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(why) = machine::not_a_timing() {
        return Err(bench::not_a_clock(&why));
    }
    let worth = most_valuable(all, MOST);
    if worth.is_empty() {
        return Err(not_available(
            "no advice that could be measured again: ntcopy advise names the commands that give \
             evidence",
        ));
    }
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let aside = tempfile::tempdir().context("cannot make a folder for the records")?;
    let folder = args.out.as_deref().unwrap_or(aside.path());
    let mut outcomes = Vec::new();
    for (number, advice) in worth.into_iter().enumerate() {
        let Some(check) = &advice.check else { continue };
        let place = folder.join(format!("check-{}-{}", number + 1, advice.topic.slug()));
        eprintln!("{}: {} cells", advice.topic.title(), check.cells());
        let outcome = measure(check, &place, args, &stop)?;
        if !args.json {
            print!("{}", line(advice, &outcome));
        }
        outcomes.push((advice, outcome));
    }
    if args.json {
        println!("{:#}", object(&outcomes, target));
    }
    Ok(code(&outcomes))
}

/// Runs the experiment, this program anew, and judges its record.
fn measure(check: &Check, place: &Path, args: &Args, stop: &Stop) -> anyhow::Result<Outcome> {
    // What it says on the way matters only if it fails.
    let mut said = tempfile::tempfile().context("cannot make a file for the experiment's words")?;
    let words = said.try_clone().context("cannot share that file")?;
    let mut command = bench::anew(&[])?;
    command.args(&check.args).arg("--out").arg(place).stderr(words);
    if args.quick {
        command.arg("--quick");
    }
    let code = bench::until_ended(command, stop)?;
    if code == WRONG_BYTE {
        return Ok(Outcome::WrongByte);
    }
    // An experiment may fail in one cell and have the others.
    let judged = Record::read(place).ok().and_then(|record| judge(check, &record));
    Ok(match judged {
        Some(judged) => Outcome::Judged(judged),
        None => {
            let why = format!("ntcopy {}: {}", check.args.join(" "), last_line(&mut said));
            if code == NOT_AVAILABLE { Outcome::Unavailable(why) } else { Outcome::Failed(why) }
        }
    })
}

/// The last thing that the experiment said.
fn last_line(said: &mut File) -> String {
    let mut text = Vec::new();
    // If it cannot be read, it said nothing.
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| "it gave no figures".to_owned(), str::to_owned)
}

fn line(advice: &Advice, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Judged(judged) => show::checked(advice, judged),
        Outcome::Unavailable(why) | Outcome::Failed(why) => {
            format!("not measured: {}\n    {why}\n", advice.topic.title())
        }
        Outcome::WrongByte => {
            format!("a byte was wrong: {}\n", advice.topic.title())
        }
    }
}

fn object(outcomes: &[(&Advice, Outcome)], target: &Target) -> Value {
    let list: Vec<Value> = outcomes
        .iter()
        .map(|(advice, outcome)| {
            let mut entry = show::json_of(advice);
            match outcome {
                Outcome::Judged(judged) => {
                    entry["now"] = show::gain_json(&judged.gain);
                    entry["held"] = judged.held.into();
                }
                Outcome::Unavailable(why) => entry["unavailable"] = why.as_str().into(),
                Outcome::Failed(why) => entry["error"] = why.as_str().into(),
                Outcome::WrongByte => entry["wrong_byte"] = true.into(),
            }
            entry
        })
        .collect();
    json!({"machine": target.machine, "checked": list})
}

fn code(outcomes: &[(&Advice, Outcome)]) -> ExitCode {
    let any = |is: &dyn Fn(&Outcome) -> bool| outcomes.iter().any(|(_, outcome)| is(outcome));
    if any(&|outcome| matches!(outcome, Outcome::WrongByte)) {
        ExitCode::from(WRONG_BYTE)
    } else if any(&|outcome| match outcome {
        Outcome::Judged(judged) => !judged.held,
        outcome => matches!(outcome, Outcome::Failed(_)),
    }) {
        ExitCode::FAILURE
    } else if !any(&|outcome| matches!(outcome, Outcome::Judged(_))) {
        ExitCode::from(NOT_AVAILABLE)
    } else {
        ExitCode::SUCCESS
    }
}
