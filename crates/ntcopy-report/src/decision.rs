//! What records come to before anything else is read: what to set, what it brings, what it costs.

use ntcopy_record::stats::{self, THROUGHPUT, Verdict, Versus, geomean};
use ntcopy_record::verdict;
use ntcopy_record::{Cell, ExperimentKind, Params, Record};
use serde_json::Value;

use crate::retention::hot;
use crate::text;

/// The baseline, the obeyed hint, and the hint that the kernel's rule decides about.
const COPY: &str = "copy";
const NT: &str = "nt";
const ADAPTIVE: &str = "adaptive";

/// What to set on one machine, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub cpu: String,
    /// The answer in a line, as the title of a page has it; none where nothing is decided.
    pub answer: Option<String>,
    /// What to set and what it brings, then what it costs. One sentence at least.
    pub sentences: Vec<String>,
}

impl Decision {
    /// All of it in one line, as it stands at the top of a page; with the CPU, where a page is of
    /// several.
    #[must_use]
    pub fn text(&self, is_of_several: bool) -> String {
        let said = self.sentences.join(" ");
        if is_of_several { format!("{}: {said}", self.cpu) } else { said }
    }

    /// The same for a terminal: the verdict, what to set, what it costs, a line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Some((first, rest)) = self.sentences.split_first() else { return Vec::new() };
        let mut lines = match (&self.answer, first.split_once(": ")) {
            (Some(answer), Some((set, _))) => {
                vec![format!("verdict: {answer}"), format!("to set:  {set}")]
            }
            _ => vec![format!("verdict: {first}")],
        };
        if !rest.is_empty() {
            lines.push(format!("costs:   {}", rest.join(" ")));
        }
        lines
    }
}

/// A decision for each machine that the records are of, in the order in which they are met.
#[must_use]
pub fn all(records: &[Record]) -> Vec<Decision> {
    let mut machines: Vec<(&str, Vec<&Record>)> = Vec::new();
    for record in records {
        let machine = &record.machine;
        match machines.iter_mut().find(|(known, _)| *known == machine.cpu_signature) {
            Some((_, ours)) => ours.push(record),
            None => machines.push((&machine.cpu_signature, vec![record])),
        }
    }
    machines.into_iter().map(|(_, ours)| of_machine(ours)).collect()
}

fn of_machine(mut records: Vec<&Record>) -> Decision {
    records.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let cpu = records.first().map_or_else(String::new, |record| record.machine.cpu_model.clone());
    let timings: Vec<&Record> =
        records.iter().copied().filter(|record| is_timing(record)).collect();
    let sends = Sends::of(&timings);
    let answer = sends.as_ref().map(Sends::answer);
    let (mut sentences, chosen) = match &sends {
        Some(sends) => (sends.sentences(), sends.chosen()),
        None => (Vec::new(), ADAPTIVE),
    };
    sentences.extend(hot::worst(&timings).and_then(|hot| hot.sentence(chosen)));
    if sentences.is_empty() {
        // Nothing here says what to set for sends; the newest record says what it is about.
        sentences.extend(
            records.first().and_then(|record| verdict::sentences(record).into_iter().next()),
        );
    }
    Decision { cpu, answer, sentences }
}

/// Whether a record may decide anything.
fn is_timing(record: &Record) -> bool {
    record.header.not_a_timing.is_none() && !record.errors.iter().any(|error| error.wrong_byte)
}

/// A mode by another in one cell.
struct Point {
    in_flight_bytes: u64,
    versus: Versus,
}

impl Point {
    fn verdict(&self) -> Verdict {
        self.versus.verdict()
    }
}

/// Rounds over unix sockets, by the bytes in flight.
struct Sends {
    /// The rule's decision by plain sends.
    rule: Vec<Point>,
    /// Obeyed hints by plain sends.
    obeyed: Vec<Point>,
    /// Whether obeyed hints beat the rule over all cells, and plain sends too.
    is_obeyed_better: bool,
}

impl Sends {
    fn of(records: &[&Record]) -> Option<Sends> {
        let (rule, obeyed) = (points(records, ADAPTIVE, COPY), points(records, NT, COPY));
        let wins = |points: &[Point]| {
            over_all(points).is_some_and(|(_, ci)| Verdict::from_interval(ci) == Verdict::Win)
        };
        let is_obeyed_better =
            wins(&obeyed) && (rule.is_empty() || wins(&points(records, NT, ADAPTIVE)));
        (!rule.is_empty() || !obeyed.is_empty()).then_some(Sends { rule, obeyed, is_obeyed_better })
    }

    /// The mode that the decision is about.
    fn chosen(&self) -> &'static str {
        if self.is_obeyed_better || self.rule.is_empty() { NT } else { ADAPTIVE }
    }

    /// `Hint large sends: 1.15x to 1.26x from 16 MiB in flight on; they lose below`.
    fn answer(&self) -> String {
        let points = if self.chosen() == NT { &self.obeyed } else { &self.rule };
        let all: Vec<&Point> = points.iter().collect();
        let Some(from) = wins_from(points) else {
            let figure = range(&all);
            let over_all = over_all(points).map(|(_, ci)| Verdict::from_interval(ci));
            return match over_all {
                Some(Verdict::Win) => format!("Hint only what you measured: {figure}"),
                Some(Verdict::Loss) => format!("Leave hints off here: {figure}"),
                Some(Verdict::Equal) => format!("Hints are as fast as plain sends here: {figure}"),
                _ => format!("Whether hints pay here is unresolved: {figure}"),
            };
        };
        let (above, below): (Vec<&Point>, Vec<&Point>) =
            all.into_iter().partition(|point| point.in_flight_bytes >= from);
        let loses = if worst_loss(&below).is_some() { "; they lose below" } else { "" };
        let (gain, size) = (range(&above), text::size(from));
        format!("Hint large sends: {gain} from {size} in flight on{loses}")
    }

    fn sentences(&self) -> Vec<String> {
        let (points, setting) = match self.chosen() {
            // What the rule would have done was not measured: nothing for the whole machine.
            NT if self.rule.is_empty() => (&self.obeyed, "obey hints (SO_NTCOPY = 3)"),
            NT => (&self.obeyed, "set net.core.ntcopy to 2"),
            _ => (&self.rule, "leave net.core.ntcopy at 1, its default"),
        };
        match wins_from(points) {
            Some(from) => self.pays_from(points, setting, from),
            None => self.over_cells(points, setting),
        }
    }

    /// Where there is no such number: what it comes to over all cells.
    fn over_cells(&self, points: &[Point], setting: &str) -> Vec<String> {
        let all: Vec<&Point> = points.iter().collect();
        let count = |verdict| points.iter().filter(|point| point.verdict() == verdict).count();
        let (wins, losses, cells) = (count(Verdict::Win), count(Verdict::Loss), points.len());
        let (ratio, ci) = over_all(points).unwrap_or((1.0, (1.0, 1.0)));
        let figure = format!("{} ({})", text::ratio(ratio), text::interval(ci));
        let counted = format!("{wins} of {cells} cells win and {losses} lose, {}", range(&all));
        let is_cheap = worst_loss(&all).is_none_or(|worst| worst.versus.ratio >= CHEAP);
        match Verdict::from_interval(ci) {
            Verdict::Win if is_cheap => {
                let most = points.iter().map(|point| point.versus.ratio).fold(0.0, f64::max);
                let brings = format!(
                    "Hint large sends and {setting}: {figure} of plain sends' throughput over {cells} \
                     cells, and up to {}.",
                    text::ratio(most)
                );
                vec![brings, self.costs(&all, None)]
            }
            Verdict::Win => vec![format!(
                "Hint large sends only where you measured a gain: {figure} of plain sends' \
                 throughput over all, but {counted}."
            )],
            Verdict::Loss => vec![format!("Leave hints off here: {counted}.")],
            Verdict::Equal => vec![format!(
                "Set nothing: hints make no difference here over all, {figure}; {counted}."
            )],
            Verdict::Unresolved => vec![format!(
                "Measure longer before you set anything (--budget, pinned, on a quieter machine): \
                 whether hints pay here is unresolved, {figure} over all; {counted}."
            )],
        }
    }

    /// Where the hint wins in every cell from some number of bytes in flight on.
    fn pays_from(&self, points: &[Point], setting: &str, from: u64) -> Vec<String> {
        let (above, below): (Vec<&Point>, Vec<&Point>) =
            points.iter().partition(|point| point.in_flight_bytes >= from);
        let (gain, size) = (range(&above), text::size(from));
        let brings = if self.rule.is_empty() {
            format!(
                "Obey hints (SO_NTCOPY = 3) in programs with {size} or more in flight: {gain} of \
                 plain sends' throughput."
            )
        } else {
            format!(
                "Hint large sends and {setting}: {gain} of plain sends' throughput from {size} in \
                 flight on."
            )
        };
        vec![brings, self.costs(&below, Some(from))]
    }

    /// What the chosen setting costs in some cells, and what obeying would; `from` is where they
    /// end, if they are not all there are.
    fn costs(&self, cells: &[&Point], from: Option<u64>) -> String {
        let place = if from.is_some() { "Below that it costs" } else { "It costs" };
        let mut sentence = match (cells.is_empty(), worst_loss(cells)) {
            (true, _) => "Nothing smaller was measured".to_owned(),
            (false, Some(worst)) => format!(
                "{place} up to {} ({} at {})",
                loss(worst.versus.ratio),
                text::ratio(worst.versus.ratio),
                text::size(worst.in_flight_bytes)
            ),
            (false, None) => format!("{place} nothing ({})", range(cells)),
        };
        if self.chosen() == ADAPTIVE {
            let is_here = |point: &&Point| from.is_none_or(|from| point.in_flight_bytes < from);
            let obeyed: Vec<&Point> = self.obeyed.iter().filter(is_here).collect();
            if let Some(worst) = worst_loss(&obeyed) {
                let lost = loss(worst.versus.ratio);
                sentence.push_str(&format!("; obeyed without the rule, hints lose up to {lost}"));
            }
        }
        sentence + "."
    }
}

/// A setting that loses no more than this leaves of the throughput, in any cell, is worth what it
/// wins over all.
const CHEAP: f64 = 0.95;

/// The cell that loses most; none where none loses.
fn worst_loss<'a>(points: &[&'a Point]) -> Option<&'a Point> {
    let lost = points.iter().copied().filter(|point| point.verdict() == Verdict::Loss);
    lost.min_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))
}

/// `1.20x to 1.90x`.
fn range(points: &[&Point]) -> String {
    let ratios = || points.iter().map(|point| point.versus.ratio);
    let (low, high) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    let (low, high) = (text::ratio(low), text::ratio(high));
    if low == high { low } else { format!("{low} to {high}") }
}

/// `24 %`, of a ratio below 1.
fn loss(ratio: f64) -> String {
    text::percent((1.0 - ratio).max(0.0))
}

/// Geometric mean with its interval; none of no points.
fn over_all(points: &[Point]) -> Option<(f64, (f64, f64))> {
    geomean(points.iter().map(|point| &point.versus))
}

/// The smallest number of bytes in flight from which on every point wins.
fn wins_from(points: &[Point]) -> Option<u64> {
    let other = points.iter().filter(|point| point.verdict() != Verdict::Win);
    let last_other = other.map(|point| point.in_flight_bytes).max();
    let sizes = points.iter().map(|point| point.in_flight_bytes);
    sizes.filter(|size| Some(*size) > last_other).min()
}

/// The records come newest first: of a cell that was measured twice, the newest counts.
fn points(records: &[&Record], mode: &str, other: &str) -> Vec<Point> {
    let mut seen: Vec<&Params> = Vec::new();
    let mut points = Vec::new();
    for record in records.iter().filter(|record| record.header.experiment == ExperimentKind::Unix) {
        for cell in record.cells.iter().filter(|cell| is_round(cell)) {
            let in_flight = cell.params.get("in_flight_bytes").and_then(Value::as_u64);
            let Some(in_flight_bytes) = in_flight.filter(|_| !seen.contains(&&cell.params)) else {
                continue;
            };
            if let Some(versus) = stats::versus(record, cell.cell, mode, other, THROUGHPUT) {
                seen.push(&cell.params);
                points.push(Point { in_flight_bytes, versus });
            }
        }
    }
    points
}

/// Whether a cell is of whole objects on unix sockets, in rounds.
pub(crate) fn is_round(cell: &Cell) -> bool {
    let is = |name: &str, wanted: &str| {
        cell.params.get(name).and_then(Value::as_str).is_none_or(|value| value == wanted)
    };
    cell.params.contains_key("form")
        && is("form", "rounds")
        && is("family", "unix")
        && !cell.params.contains_key("pieces")
}
