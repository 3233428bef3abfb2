//! What an unmodified program sends.

use super::hints::{ADAPTIVE, COPY, RUN_SWEEP, rounds};
use super::pays::name_kernel;
use super::{Advice, Decision, Topic};
use crate::judge::{Claim, Point, Size, cells, ids, outcomes, split, wins_from};
use crate::record::{Record, number};
use crate::stats::Verdict;
use crate::units::Bytes;

/// Bytes in flight from which on sends of the largest object win in every cell, and the cells with as
/// much, by the size of one send: elsewhere a loss says nothing of that. None where hints do not
/// win in every cell from any number of bytes in flight on.
fn enough_in_flight<'a>(sends: &[Point<'a>]) -> Option<(u64, Vec<Point<'a>>)> {
    let object = |point: &Point<'_>| number(&point.cell.params, "object_bytes");
    let largest = sends.iter().filter_map(object).max()?;
    let of_largest = sends.iter().filter(|point| object(point) == Some(largest)).cloned();
    let (in_flight, _) = wins_from(&of_largest.collect::<Vec<_>>())?;
    let mut there = split(sends, in_flight.bytes).1.to_vec();
    for point in &mut there {
        point.size = Size { bytes: object(point).unwrap_or(0), of: "a send" };
    }
    there.sort_by_key(|point| point.size.bytes);
    Some((in_flight.bytes, there))
}

/// `ntcopy run`: from which send on an unmodified program's sends are hinted.
pub fn advice(records: &[&Record]) -> Advice {
    let sends = rounds(records, "unix", ADAPTIVE, COPY);
    let there = enough_in_flight(&sends);
    let large = there.as_ref().and_then(|(in_flight, there)| {
        Some((Bytes(*in_flight), Bytes(wins_from(there)?.0.bytes), there.as_slice()))
    });
    let Some((in_flight, send, there)) = large else { return do_not_run(&sends) };
    let (small, large) = split(there, send.0);
    let smaller = if small.is_empty() {
        "Smaller sends were not measured there.".to_owned()
    } else {
        format!("Among smaller ones {}.", outcomes(small))
    };
    let why = format!(
        "For programs that have {in_flight} or more in flight: there hinted sends of {send} and more \
         win in every cell ({}). {smaller}",
        cells(large.len()),
    );
    let mut advice = Advice {
        setting: Some(format!("ntcopy run --min-bytes {} -- PROGRAM", send.argument())),
        gain: Claim::of(large),
        records: ids(large),
        ..Advice::bare(Topic::RUN, Decision::Set, why)
    };
    name_kernel(&mut advice, large);
    advice
}

fn do_not_run(sends: &[Point<'_>]) -> Advice {
    let Some(gain) = Claim::of(sends) else {
        let why = "Hinted sends were not measured on this machine.";
        return Advice::no_evidence(Topic::RUN, why, RUN_SWEEP);
    };
    let decision = match gain.verdict {
        Verdict::Loss => Decision::Leave,
        Verdict::Unresolved => Decision::Unresolved,
        Verdict::Win | Verdict::Equal => Decision::AsItIs,
    };
    let why = format!(
        "Hinted sends do not win in every cell from any number of bytes in flight on: of {} {}.",
        cells(sends.len()),
        outcomes(sends)
    );
    Advice {
        setting: Some("ntcopy run".to_owned()),
        gain: Some(gain),
        records: ids(sends),
        ..Advice::bare(Topic::RUN, decision, why)
    }
}
