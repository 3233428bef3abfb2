//! `--ceiling`: what there is to gain at most, on any kernel. A chain of client, proxy and backend
//! is measured with plain sends and with a backend that copies nothing; a hint can get a part of
//! the difference, and where there is none it can get nothing.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_bench::machine;
use ntcopy_bench::run::Stop;
use ntcopy_bench::sample;
use ntcopy_judge::claims::results;
use ntcopy_judge::stats::{THROUGHPUT, Use, Verdict};
use ntcopy_judge::{Judged, Ratio, judge};
use ntcopy_record::units::{Bytes, count};
use ntcopy_record::{Cell, ExperimentKind, Record, number};
use ntcopy_report::text::wrapped;
use serde_json::{Value, json};

use crate::cmd::{Ended, WRONG_BYTE, bench};

/// A cell takes some seconds with as many.
const PAIRS: &str = "20";
const STARTS: &str = "5";
/// What a backend's objects may have: below, requests are what counts.
const OBJECTS: (u64, u64) = (64 << 10, 4 << 20);
const MOST_CONNECTIONS: u64 = 64;
const DATASET: &str = "64MiB";
/// The folder of these records, alongside those that count for advice: none has a hinted mode.
const FOLDER: &str = "ceilings";

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    transport: &'static str,
    objects: String,
    connections: String,
}

impl Chain {
    /// Where nothing is known of a program.
    pub fn usual() -> Chain {
        Chain { transport: "unix", objects: "1MiB".into(), connections: "1,16,64".into() }
    }

    /// One with about as much in flight, on about as many sockets; none of a family that no chain
    /// has, or of a program that has nothing in flight.
    pub fn like(family: &str, bytes: u64, sockets: u64) -> Option<Chain> {
        let transport = ["unix", "tcp"].into_iter().find(|transport| *transport == family)?;
        if bytes == 0 {
            return None;
        }
        let connections = sockets.clamp(1, MOST_CONNECTIONS);
        let object = (bytes / connections).clamp(OBJECTS.0, OBJECTS.1);
        Some(Chain {
            transport,
            objects: Bytes(1 << object.ilog2()).argument(),
            connections: connections.to_string(),
        })
    }
}

/// What a cell came to.
pub struct Ceiling {
    object_bytes: u64,
    connections: u64,
    mode: String,
    ratio: Ratio,
}

pub fn run(chain: &Chain, is_json: bool) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let all = measure(chain, &stop)?;
    match is_json {
        true => println!("{:#}", json!({"ceiling": object(&all)})),
        false => print!("{}", sentences(&all)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `ntcopy bench http`, this program anew, and reads its record.
pub fn measure(chain: &Chain, stop: &Stop) -> anyhow::Result<Vec<Ceiling>> {
    if let Some(why) = machine::not_a_timing() {
        return Err(bench::not_a_clock(&why));
    }
    let id = sample::new_id(&ExperimentKind::Http, &[]);
    let place = sample::place_in(FOLDER, &id)
        .context("neither XDG_DATA_HOME nor HOME names a directory for the record")?;
    let arguments = ["bench", "http", "--quick", "--rate", "off", "--modes", "sendfile"];
    let mut command = bench::anew(&arguments)?;
    command.args(["--pairs", PAIRS, "--starts", STARTS, "--dataset", DATASET]);
    command.args(["--transport", chain.transport, "--object", &chain.objects]);
    command.args(["--connections", &chain.connections, "--out"]).arg(&place);
    let code = bench::until_ended(command, stop)?;
    let all = read(&place).filter(|all| code != WRONG_BYTE && !all.is_empty());
    // An experiment may fail in one cell and have the others; it said so.
    all.ok_or_else(|| Ended { code: code.max(1), why: String::new() }.into())
}

fn read(place: &Path) -> Option<Vec<Ceiling>> {
    let record = judge(&Record::read(place).ok()?);
    Some(record.cells.iter().filter_map(|cell| of_cell(&record, cell)).collect())
}

/// By the way of copying nothing that gains most.
fn of_cell(record: &Judged, cell: &Cell) -> Option<Ceiling> {
    let number = |name: &str| number(&cell.params, name);
    let all = results(record, &[Use::Judged]).into_iter();
    let ways = all.filter(|one| one.cell == cell && one.question.metric == THROUGHPUT);
    let best = ways.max_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))?;
    let (mode, ratio) = (best.question.mode.to_owned(), best.versus.result());
    let (object_bytes, connections) = (number("object_bytes")?, number("connections")?);
    Some(Ceiling { object_bytes, connections, mode, ratio })
}

impl Ceiling {
    /// `gain`, `nothing`, `unresolved`: what its interval says of there being something to gain.
    fn outcome(&self) -> &'static str {
        match self.ratio.verdict() {
            Verdict::Win => "gain",
            Verdict::Loss | Verdict::Equal => "nothing",
            Verdict::Unresolved => "unresolved",
        }
    }

    fn sentence(&self) -> String {
        let figure = self.ratio;
        let at = format!(
            "objects of {}, {}, by {}",
            Bytes(self.object_bytes),
            count(self.connections as usize, "connection"),
            self.mode
        );
        match self.outcome() {
            "gain" => format!(
                "If the backend's copies cost nothing, a chain of client, proxy and backend would \
                 move at most {figure} here ({at}); a hint gets a part of that."
            ),
            "nothing" => format!(
                "A backend that copies nothing makes no chain faster here: {figure} ({at}). A hint \
                 has nothing to gain in what goes through; it may keep a hot set."
            ),
            _ => format!(
                "Whether a backend that copies nothing makes a chain faster here does not show: \
                 {figure} ({at}). Measure on a quiet machine."
            ),
        }
    }
}

pub fn sentences(all: &[Ceiling]) -> String {
    all.iter().map(|ceiling| wrapped(&ceiling.sentence())).collect()
}

pub fn object(all: &[Ceiling]) -> Value {
    let one = |ceiling: &Ceiling| {
        json!({
            "object_bytes": ceiling.object_bytes,
            "connections": ceiling.connections,
            "mode": ceiling.mode,
            "ratio": ceiling.ratio.ratio,
            "ci": ceiling.ratio.ci,
            "outcome": ceiling.outcome(),
        })
    };
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(ratio: f64, ci: (f64, f64)) -> Ceiling {
        let ratio = Ratio { ratio, ci };
        Ceiling { object_bytes: 1 << 20, connections: 1, mode: "sendfile".into(), ratio }
    }

    #[test]
    fn the_interval_decides_what_is_said() {
        let outcomes =
            [(1.2, (1.1, 1.3)), (1.0, (0.96, 1.02)), (0.8, (0.7, 0.9)), (1.1, (0.9, 1.3))]
                .map(|(ratio, ci)| ceiling(ratio, ci).outcome());
        assert_eq!(outcomes, ["gain", "nothing", "nothing", "unresolved"]);
        let said = sentences(&[ceiling(1.2, (1.1, 1.3))]);
        let said = said.split_whitespace().collect::<Vec<&str>>().join(" ");
        assert!(said.contains("at most 1.20x (1.10-1.30) here (objects of 1 MiB, 1 connection,"));
    }

    #[test]
    fn a_chain_is_like_the_program() {
        let chain = Chain::like("unix", 37 << 20, 112).unwrap();
        assert_eq!((chain.objects.as_str(), chain.connections.as_str()), ("512KiB", "64"));
        assert_eq!(Chain::like("tcp", 1000, 1).unwrap().objects, "64KiB");
        assert_eq!((Chain::like("udp", 1 << 20, 1), Chain::like("unix", 0, 1)), (None, None));
    }
}
