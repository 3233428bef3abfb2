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
    let with = |verdict| -> Vec<Point<'_>> {
        points.iter().filter(|point| point.result.verdict == verdict).copied().collect()
    };
    let (wins, losses) = (with(Verdict::Win), with(Verdict::Loss));
    if let [only] = points {
        return single(name, only);
    }
    if let Some(sentence) = uniform(name, points, &wins, &losses) {
        return sentence;
    }
    let rank = |point: &Point<'_>| match point.result.verdict {
        Verdict::Loss => 0,
        Verdict::Equal | Verdict::Unresolved => 1,
        Verdict::Win => 2,
    };
    if points.is_sorted_by_key(rank) {
        let between = points.iter().filter(|point| rank(point) == 1).copied().collect();
        rising(name, &wins, &losses, between)
    } else {
        mixed(name, points, &wins, &losses)
    }
}

/// What neither wins nor loses, as a noun; none without points.
fn neither(points: &[Point<'_>]) -> Option<&'static str> {
    let has = |verdict| points.iter().any(|point| point.result.verdict == verdict);
    match (has(Verdict::Equal), has(Verdict::Unresolved)) {
        (true, true) => Some("no difference, or unresolved"),
        (true, false) => Some("no difference"),
        (false, true) => Some("unresolved"),
        (false, false) => None,
    }
}

fn single(name: &str, point: &Point<'_>) -> String {
    let says = super::says(point.result.verdict);
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
    } else if points.windows(2).all(|pair| pair[0].result.verdict == pair[1].result.verdict) {
        Some(format!("{name} {} {span}", super::says(points.first()?.result.verdict)))
    } else if wins.is_empty() && losses.is_empty() {
        let of = |verdict| -> Vec<Point<'_>> {
            points.iter().filter(|point| point.result.verdict == verdict).copied().collect()
        };
        let (equal, unresolved) = (sizes(&of(Verdict::Equal)), sizes(&of(Verdict::Unresolved)));
        Some(format!(
            "{name} makes no difference with {equal} in flight, and is unresolved with {unresolved}"
        ))
    } else {
        None
    }
}

/// Losses, then neither, then wins, at least two of the three.
fn rising(name: &str, wins: &[Point<'_>], losses: &[Point<'_>], between: Vec<Point<'_>>) -> String {
    let lost = worst(losses)
        .zip(losses.last())
        .map(|(worst, last)| format!("loses up to {} ({})", last.in_flight, peak(worst)));
    let won = best(wins).zip(wins.first()).map(|(best, first)| {
        format!("{name} wins from {} in flight on ({})", first.in_flight, peak(best))
    });
    let neither = between.first().zip(neither(&between));
    match (won, lost, neither) {
        (Some(won), Some(lost), Some((_, what))) => format!("{won}; it {lost}; in between {what}"),
        (Some(won), Some(lost), None) => format!("{won}; it {lost}"),
        (Some(won), None, Some((_, what))) => format!("{won}; it never loses; below that {what}"),
        (None, Some(lost), Some((from, what))) => {
            format!("{name} never wins here: it {lost}; from {} on {what}", from.in_flight)
        }
        (None, Some(lost), None) => format!("{name} never wins here: it {lost}"),
        // One verdict everywhere is `uniform`.
        (Some(won), None, None) => won,
        (None, None, what) => {
            format!("{name}: {}", what.map_or("nothing was compared", |(_, what)| what))
        }
    }
}

/// Anything else: each size under its verdict.
fn mixed(name: &str, points: &[Point<'_>], wins: &[Point<'_>], losses: &[Point<'_>]) -> String {
    let mut parts = Vec::new();
    if let Some(best) = best(wins) {
        parts.push(format!("wins with {} in flight (best {})", sizes(wins), peak(best)));
    }
    if let Some(worst) = worst(losses) {
        parts.push(format!("loses with {} (worst {})", sizes(losses), peak(worst)));
    }
    for verdict in [Verdict::Equal, Verdict::Unresolved] {
        let those: Vec<Point<'_>> =
            points.iter().filter(|point| point.result.verdict == verdict).copied().collect();
        if !those.is_empty() {
            parts.push(format!("{} with {}", super::says(verdict), sizes(&those)));
        }
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
