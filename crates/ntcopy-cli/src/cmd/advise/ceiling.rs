//! `--ceiling`: what there is to gain at most, on any kernel. A chain of client, proxy and backend
//! is measured with plain sends and with a backend that copies nothing; a hint can get a part of
//! the difference, and where there is none it can get nothing.

use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_bench::experiments::http::{self, HttpMode, Rate, Settings, Transport};
use ntcopy_bench::run::{self, Stop};
use ntcopy_bench::sample;
use ntcopy_judge::claims::results;
use ntcopy_judge::stats::{THROUGHPUT, Use, Verdict};
use ntcopy_judge::{Judged, Ratio, judge};
use ntcopy_record::units::{Bytes, count};
use ntcopy_record::{Cell, ExperimentKind, Record, number};
use ntcopy_report::text::wrapped;
use serde::Serialize;

use crate::cmd::bench::{Runner, complain};
use crate::cmd::{Ended, WRONG_BYTE, signalled, usage};
use crate::say;

/// A cell takes some seconds with as many.
const PAIRS: u32 = 20;
const STARTS: u32 = 5;
/// What a backend's objects may have: below, requests are what counts.
const OBJECTS: (u64, u64) = (64 << 10, 4 << 20);
const MOST_CONNECTIONS: u64 = 64;
const DATASET_BYTES: u64 = 64 << 20;
/// The folder of these records, alongside those that count for advice: none has a hinted mode.
const FOLDER: &str = "ceilings";

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    transport: Transport,
    object_bytes: u64,
    connections: Vec<u32>,
}

impl Chain {
    /// Where nothing is known of a program.
    pub fn usual() -> Chain {
        Chain { transport: Transport::Unix, object_bytes: 1 << 20, connections: vec![1, 16, 64] }
    }

    /// One with about as much in flight, on about as many sockets; none of a family that no chain
    /// has, or of a program that has nothing in flight.
    pub fn like(family: &str, bytes: u64, sockets: u64) -> Option<Chain> {
        let transport = family.parse().ok()?;
        if bytes == 0 {
            return None;
        }
        let connections = sockets.clamp(1, MOST_CONNECTIONS);
        let object = (bytes / connections).clamp(OBJECTS.0, OBJECTS.1);
        Some(Chain {
            transport,
            object_bytes: 1 << object.ilog2(),
            connections: vec![connections as u32],
        })
    }

    fn settings(&self) -> Settings {
        Settings {
            modes: vec![HttpMode::Sendfile],
            transport: Some(self.transport),
            object_bytes: vec![self.object_bytes],
            connections: self.connections.clone(),
            dataset_bytes: vec![DATASET_BYTES],
            rate: Some(Rate::Off),
            starts: Some(STARTS),
            pairs: Some(PAIRS),
            quick: true,
            ..Settings::default()
        }
    }
}

/// What a cell came to. As JSON, it is what programs are told.
#[derive(Serialize)]
pub struct Ceiling {
    object_bytes: u64,
    connections: u64,
    mode: String,
    #[serde(flatten)]
    ratio: Ratio,
    outcome: Outcome,
}

/// What an interval says of there being something to gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Gain,
    Nothing,
    Unresolved,
}

impl Outcome {
    fn of(ratio: Ratio) -> Outcome {
        match ratio.verdict() {
            Verdict::Win => Outcome::Gain,
            Verdict::Loss | Verdict::Equal => Outcome::Nothing,
            Verdict::Unresolved => Outcome::Unresolved,
        }
    }
}

#[derive(Serialize)]
struct Object {
    ceiling: Vec<Ceiling>,
}

pub fn run(chain: &Chain, is_json: bool) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let ceiling = measure(chain, &stop)?;
    if is_json {
        say::object(&Object { ceiling })?;
    } else {
        print!("{}", sentences(&ceiling));
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures as `ntcopy bench http` does, and reads the record.
pub fn measure(chain: &Chain, stop: &Stop) -> anyhow::Result<Vec<Ceiling>> {
    let id = sample::new_id(&ExperimentKind::Http, &[]);
    let place = sample::place_in(FOLDER, &id)
        .context("neither XDG_DATA_HOME nor HOME names a directory for the record")?;
    let plan = http::plan(&chain.settings(), &run::cpus()?).map_err(usage)?;
    let outcome = Runner::here(place).record(&plan, stop)?;
    let record = judge(&Record::read(&outcome.place)?);
    complain(&record);
    eprintln!("record: {}", outcome.place.display());
    if let Some(signal) = outcome.stopped {
        return Err(signalled(signal));
    }
    // An experiment may fail in one cell and have the others.
    let all: Vec<Ceiling> = record.cells.iter().filter_map(|cell| of_cell(&record, cell)).collect();
    let is_wrong = record.errors.iter().any(|error| error.wrong_byte);
    if is_wrong || all.is_empty() {
        let code = if is_wrong { WRONG_BYTE } else { 1 };
        return Err(Ended { code, why: String::new() }.into());
    }
    Ok(all)
}

/// By the way of copying nothing that gains most.
fn of_cell(record: &Judged, cell: &Cell) -> Option<Ceiling> {
    let number = |name: &str| number(&cell.params, name);
    let all = results(record, &[Use::Judged]).into_iter();
    let ways = all.filter(|one| one.cell == cell && one.question.metric == THROUGHPUT);
    let best = ways.max_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))?;
    let (mode, ratio) = (best.question.mode.to_owned(), best.versus.result());
    let (object_bytes, connections) = (number("object_bytes")?, number("connections")?);
    let outcome = Outcome::of(ratio);
    Some(Ceiling { object_bytes, connections, mode, ratio, outcome })
}

impl Ceiling {
    fn sentence(&self) -> String {
        let figure = self.ratio;
        let at = format!(
            "objects of {}, {}, by {}",
            Bytes(self.object_bytes),
            count(self.connections as usize, "connection"),
            self.mode
        );
        match self.outcome {
            Outcome::Gain => format!(
                "If the backend's copies cost nothing, a chain of client, proxy and backend would \
                 move at most {figure} here ({at}); a hint gets a part of that."
            ),
            Outcome::Nothing => format!(
                "A backend that copies nothing makes no chain faster here: {figure} ({at}). A hint \
                 has nothing to gain in what goes through; it may keep a hot set."
            ),
            Outcome::Unresolved => format!(
                "Whether a backend that copies nothing makes a chain faster here does not show: \
                 {figure} ({at}). Measure on a quiet machine."
            ),
        }
    }
}

pub fn sentences(all: &[Ceiling]) -> String {
    all.iter().map(|ceiling| wrapped(&ceiling.sentence())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(ratio: f64, ci: (f64, f64)) -> Ceiling {
        let ratio = Ratio { ratio, ci };
        let outcome = Outcome::of(ratio);
        Ceiling { object_bytes: 1 << 20, connections: 1, mode: "sendfile".into(), ratio, outcome }
    }

    #[test]
    fn the_interval_decides_what_is_said() {
        let outcomes =
            [(1.2, (1.1, 1.3)), (1.0, (0.96, 1.02)), (0.8, (0.7, 0.9)), (1.1, (0.9, 1.3))]
                .map(|(ratio, ci)| ceiling(ratio, ci).outcome);
        use Outcome::{Gain, Nothing, Unresolved};
        assert_eq!(outcomes, [Gain, Nothing, Nothing, Unresolved]);
        let said = sentences(&[ceiling(1.2, (1.1, 1.3))]);
        let said = said.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(said.contains("at most 1.20x (1.10-1.30) here (objects of 1 MiB, 1 connection,"));
    }

    #[test]
    fn a_chain_is_like_the_program() {
        let chain = Chain::like("unix", 37 << 20, 112).unwrap();
        assert_eq!((chain.object_bytes, chain.connections), (512 << 10, vec![64]));
        assert_eq!(Chain::like("tcp", 1000, 1).unwrap().object_bytes, 64 << 10);
        assert_eq!((Chain::like("udp", 1 << 20, 1), Chain::like("unix", 0, 1)), (None, None));
    }
}
