//! The sentence for cells that differ in their bytes in flight alone: where the
//! mode wins, where it loses, and what lies between.

use serde_json::Value;

use crate::record::Params;
use crate::stats::{CellResult, Verdict};
use crate::units::Bytes;

/// What distinguishes the cells of a series.
const VARYING: [&str; 2] = ["in_flight_bytes", "sockets"];

/// A result at its bytes in flight.
#[derive(Debug, Clone, Copy)]
pub struct Point<'a> {
    in_flight: Bytes,
    result: &'a CellResult,
}

/// The results in order of bytes in flight, if that is all in which their cells differ.
pub fn series<'a>(results: &[&'a CellResult]) -> Option<Vec<Point<'a>>> {
    let mut points = Vec::new();
    for result in results {
        let in_flight = result.params.get("in_flight_bytes").and_then(Value::as_u64)?;
        points.push(Point { in_flight: Bytes(in_flight), result });
    }
    points.sort_by_key(|point| point.in_flight);
    let same = points.windows(2).all(|pair| {
        pair[0].in_flight < pair[1].in_flight
            && constant(&pair[0].result.params).eq(constant(&pair[1].result.params))
    });
    (same && !points.is_empty()).then_some(points)
}

fn constant(params: &Params) -> impl Iterator<Item = (&String, &Value)> {
    params.iter().filter(|(name, _)| !VARYING.contains(&name.as_str()))
}

/// A sentence for each of two data sets, if the cells differ in these and in their
/// bytes in flight alone.
pub fn by_dataset(name: &str, results: &[&CellResult]) -> Option<Vec<String>> {
    let dataset = |result: &CellResult| result.params.get("dataset_bytes").and_then(Value::as_u64);
    let mut sizes: Vec<u64> = results.iter().filter_map(|result| dataset(result)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() != 2 {
        return None;
    }
    let mut sentences = Vec::new();
    for size in sizes {
        let ours: Vec<&CellResult> =
            results.iter().filter(|result| dataset(result) == Some(size)).copied().collect();
        let points = series(&ours)?;
        // Inside a sentence an article is not the first word.
        let said = sentence(&name.replacen("The ", "the ", 1), &points);
        sentences.push(format!("With a data set of {}, {said}.", Bytes(size)));
    }
    Some(sentences)
}

/// One sentence, without its full stop.
pub fn sentence(name: &str, points: &[Point<'_>]) -> String {
    let of = |verdict| -> Vec<Point<'_>> {
        points.iter().filter(|point| point.result.verdict == verdict).copied().collect()
    };
    let (wins, losses, level) = (of(Verdict::Win), of(Verdict::Loss), of(Verdict::NoDifference));
    if let [only] = points {
        return single(name, only);
    }
    if let Some(sentence) = uniform(name, points, &wins, &losses) {
        return sentence;
    }
    let rank = |point: &Point<'_>| match point.result.verdict {
        Verdict::Loss => 0,
        Verdict::NoDifference => 1,
        Verdict::Win => 2,
    };
    if points.is_sorted_by_key(rank) {
        rising(name, &wins, &losses, &level)
    } else {
        mixed(name, &wins, &losses, &level)
    }
}

fn single(name: &str, point: &Point<'_>) -> String {
    let says = match point.result.verdict {
        Verdict::Win => "wins",
        Verdict::Loss => "loses",
        Verdict::NoDifference => "makes no difference",
    };
    format!("{name} {says} with {} in flight ({})", point.in_flight, super::figure(point.result))
}

fn uniform(
    name: &str,
    points: &[Point<'_>],
    wins: &[Point<'_>],
    losses: &[Point<'_>],
) -> Option<String> {
    let span =
        format!("from {} to {} in flight", points.first()?.in_flight, points.last()?.in_flight);
    if wins.len() == points.len() {
        Some(format!("{name} wins everywhere {span} ({})", peak(best(wins)?)))
    } else if losses.len() == points.len() {
        Some(format!("{name} loses everywhere {span} ({})", peak(worst(losses)?)))
    } else if wins.is_empty() && losses.is_empty() {
        Some(format!("{name} makes no difference {span}"))
    } else {
        None
    }
}

/// Losses, then no difference, then wins, at least two of the three.
fn rising(name: &str, wins: &[Point<'_>], losses: &[Point<'_>], level: &[Point<'_>]) -> String {
    let lost = worst(losses)
        .zip(losses.last())
        .map(|(worst, last)| format!("loses up to {} ({})", last.in_flight, peak(worst)));
    let won = best(wins).zip(wins.first()).map(|(best, first)| {
        format!("{name} wins from {} in flight on ({})", first.in_flight, peak(best))
    });
    match (won, lost, level.first()) {
        (Some(won), Some(lost), Some(_)) => format!("{won}; it {lost}; in between no difference"),
        (Some(won), Some(lost), None) => format!("{won}; it {lost}"),
        (Some(won), None, _) => {
            format!("{won}; it never loses, and below that makes no difference")
        }
        (None, Some(lost), Some(from)) => {
            format!("{name} never wins here: it {lost}; from {} on no difference", from.in_flight)
        }
        (None, Some(lost), None) => format!("{name} never wins here: it {lost}"),
        (None, None, _) => format!("{name} makes no difference here"),
    }
}

/// Anything else: each size under its verdict.
fn mixed(name: &str, wins: &[Point<'_>], losses: &[Point<'_>], level: &[Point<'_>]) -> String {
    let mut parts = Vec::new();
    if let Some(best) = best(wins) {
        parts.push(format!("wins with {} in flight (best {})", sizes(wins), peak(best)));
    }
    if let Some(worst) = worst(losses) {
        parts.push(format!("loses with {} (worst {})", sizes(losses), peak(worst)));
    }
    if !level.is_empty() {
        parts.push(format!("makes no difference with {}", sizes(level)));
    }
    format!("{name} is mixed here: it {}", parts.join(", "))
}

fn sizes(points: &[Point<'_>]) -> String {
    let sizes: Vec<String> = points.iter().map(|point| point.in_flight.to_string()).collect();
    match sizes.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => sizes.concat(),
    }
}

fn best<'a, 'b>(points: &'a [Point<'b>]) -> Option<&'a Point<'b>> {
    points.iter().max_by(|a, b| a.result.ratio.total_cmp(&b.result.ratio))
}

fn worst<'a, 'b>(points: &'a [Point<'b>]) -> Option<&'a Point<'b>> {
    points.iter().min_by(|a, b| a.result.ratio.total_cmp(&b.result.ratio))
}

/// `1.31x at 64 MiB, interval 1.28-1.35`.
fn peak(point: &Point<'_>) -> String {
    let result = point.result;
    let (low, high) = result.ci;
    format!("{:.2}x at {}, interval {low:.2}-{high:.2}", result.ratio, point.in_flight)
}
