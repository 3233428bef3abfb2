//! A program that runs: what hinted sends are worth with as much in flight as it has.

use super::hints::Lengths;
use super::{About, Advice, Decision, Measure, Reason, Taker, Topic};
use crate::Judged;
use crate::claims::Point;
use ntcopy_record::number;

/// Cells with up to so many times as much in flight, or as little, are of that kind.
const NEAR: u64 = 2;
/// A send below it is hinted by nobody.
const SMALLEST_OBJECT: u64 = 4096;
/// What a guest has file descriptors and memory for in any case.
const MOST_SOCKETS: u64 = 1024;

/// What was seen of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight<'f> {
    /// `unix`, `tcp`, `udp`, as records name it.
    pub family: &'f str,
    pub bytes: u64,
    /// Those among which the bytes lie.
    pub sockets: u64,
    /// Who takes hints where the program runs, or would.
    pub taker: Taker,
}

/// What the records say of hinted sends: the number of all of them, and what it brings with about as
/// much in flight. A figure is measured or there is none: nothing is read off between two cells.
#[must_use]
pub fn for_program(records: &[&Judged], seen: InFlight<'_>) -> Advice {
    Advice { taker: seen.taker, ..of_sends(records, seen) }
}

fn of_sends(records: &[&Judged], seen: InFlight<'_>) -> Advice {
    let family = seen.family;
    if seen.bytes == 0 {
        let about = About::Sockets(family.to_owned());
        let bare = Advice::bare(Topic::Sends, Decision::Leave, Reason::NothingInFlight);
        return Advice { about, ..bare };
    }
    let mut records = records.to_vec();
    records.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let in_flight = |point: &Point<'_>| number(&point.cell.params, "in_flight_bytes").unwrap_or(0);
    let mut sends = Lengths::of(&records, family, seen.taker);
    let is_near = |point: &Point<'_>| {
        let there = in_flight(point);
        there.saturating_mul(NEAR) >= seen.bytes && there <= seen.bytes.saturating_mul(NEAR)
    };
    let (near, far): (Vec<Point<'_>>, Vec<Point<'_>>) =
        std::mem::take(&mut sends.cold).into_iter().partition(is_near);
    if near.is_empty() {
        return measure(seen, far.iter().map(in_flight));
    }
    sends.advice(&near)
}

/// What would have to be measured, of which there is no figure.
fn measure(seen: InFlight<'_>, measured: impl Iterator<Item = u64> + Clone) -> Advice {
    let sockets = seen.sockets.clamp(1, MOST_SOCKETS);
    let object = (seen.bytes / sockets).max(SMALLEST_OBJECT);
    // The nearest power of two that is not larger.
    let rounds = Measure::Rounds { sockets, object_bytes: 1 << object.ilog2() };
    let about = About::Sockets(seen.family.to_owned());
    let reason =
        Reason::NoneLikeIt { least_bytes: measured.clone().min(), most_bytes: measured.max() };
    Advice { reason, ..Advice::no_evidence(Topic::Sends, about, rounds) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{COLD, HOT, rounds};
    use super::super::{Target, advise};
    use super::*;
    use crate::judge;

    const MIB: u64 = 1 << 20;

    fn seen(bytes: u64) -> InFlight<'static> {
        InFlight { family: "unix", bytes, sockets: 64, taker: Taker::Kernel }
    }

    #[test]
    fn the_cells_with_about_as_much_in_flight_decide() {
        // At 1 MiB hints lose, at 8 MiB nothing shows, from 64 MiB on they win.
        let record = rounds(&[
            (1, MIB, COLD, 80),
            (8, MIB, COLD, 100),
            (64, MIB, COLD, 130),
            (128, MIB, COLD, 140),
            (64, MIB, HOT, 90),
        ]);
        let record = judge(&record);
        let decisions = [MIB, 6 * MIB, 100 * MIB].map(|bytes| {
            let advice = for_program(&[&record], seen(bytes));
            assert_eq!(advice.records, std::slice::from_ref(&record.header.id), "{advice:?}");
            advice.decision
        });
        assert_eq!(decisions, [Decision::Leave, Decision::AsItIs, Decision::Set]);
        let large = for_program(&[&record], seen(100 * MIB));
        assert_eq!(large.gain.unwrap().cells, 2, "64 and 128 MiB are within a factor of two");
        assert_eq!(large.hot.map(|hot| (hot.claim.cells, hot.losses)), Some((1, 1)));
        let whole = advise(&[&record], &Target::of(record.machine.clone()));
        let number =
            whole.iter().find(|one| one.topic == Topic::Sends).and_then(|one| one.from_bytes);
        assert_eq!(large.from_bytes, number, "the same number as of all records");
    }

    #[test]
    fn between_two_cells_that_are_far_apart_there_is_no_figure_but_a_command() {
        let record = judge(&rounds(&[(1, MIB, COLD, 80), (128, MIB, COLD, 140)]));
        let advice = for_program(&[&record], seen(11 * MIB));
        assert_eq!((advice.decision, advice.gain), (Decision::NoEvidence, None));
        let (least_bytes, most_bytes) = (Some(MIB), Some(128 * MIB));
        assert_eq!(advice.reason, Reason::NoneLikeIt { least_bytes, most_bytes });
        let rounds = Measure::Rounds { sockets: 64, object_bytes: 128 << 10 };
        assert_eq!(advice.measure, Some(rounds));
        let other = InFlight { family: "tcp", bytes: MIB, sockets: 1, taker: Taker::Kernel };
        assert_eq!(for_program(&[&record], other).decision, Decision::NoEvidence);
    }

    #[test]
    fn with_nothing_in_flight_there_is_nothing_to_measure() {
        let advice = for_program(&[], seen(0));
        assert_eq!((advice.decision, advice.measure), (Decision::Leave, None));
    }
}
