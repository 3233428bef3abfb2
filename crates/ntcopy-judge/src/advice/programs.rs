//! Whole programs: a proxy and its backend, by stack; and a program with small requests beside large
//! ones.

use super::pays::{Pays, guest};
use super::{About, Advice, Decision, Measure, Reason, Taker, Topic};
use crate::Judged;
use crate::claims::{Asks, Claim, Of, Parts, Point, hint_of, ids, of_cells};
use crate::stats::{P50, P99, THROUGHPUT, Verdict};
use ntcopy_record::lists::unique;
use ntcopy_record::{Cell, ExperimentKind, word};

/// The stack of this project's own daemons, which is told of in any case.
pub const OWN_STACK: &str = "storaged+proxyd";

/// Hinted responses, for each stack of proxy and backend that was measured.
pub(super) fn http(records: &[&Judged], taker: Taker) -> Vec<Advice> {
    let ours = records.iter().filter(|record| record.header.experiment == ExperimentKind::Http);
    let measured = ours.flat_map(|record| {
        record.cells.iter().flat_map(|cell| stacks(record, cell)).collect::<Vec<&str>>()
    });
    let stacks = unique([OWN_STACK].into_iter().chain(measured));
    let advised = stacks.into_iter().filter_map(|stack| of_stack(records, taker, stack));
    advised.collect()
}

/// Those that a cell is of: a record of several names them with its modes.
fn stacks<'r>(record: &'r Judged, cell: &'r Cell) -> Vec<&'r str> {
    let named: Vec<&str> =
        record.header.modes.iter().filter_map(|mode| mode.stack.as_deref()).collect();
    if named.is_empty() { word(&cell.params, "stack").into_iter().collect() } else { named }
}

fn of_stack(records: &[&Judged], taker: Taker, stack: &str) -> Option<Advice> {
    let is_about = |record: &Judged, cell: &Cell| {
        word(&cell.params, "form") == Some("closed") && stacks(record, cell).contains(&stack)
    };
    let http = &ExperimentKind::Http;
    let of = Of { taker, stack: Some(stack) };
    let points = of_cells(records, http, &|record| hint_of(record, of, THROUGHPUT), &is_about);
    if points.is_empty() && stack != OWN_STACK {
        return None;
    }
    let pays = Pays { topic: Topic::Http, about: About::Stack(stack.to_owned()), least: Some(1.0) };
    let (advice, used) = pays.answer(&points);
    let parts = Parts::of(records, http, of, &is_about);
    Some(Advice { parts, guest: guest(used), ..advice })
}

/// What small requests feel of large ones that are hinted, in a program as it is.
pub(super) fn app(records: &[&Judged], taker: Taker) -> Advice {
    let by = |metric| -> Vec<Point<'_>> {
        let asks: Asks<'_> = &|record| hint_of(record, taker.into(), metric);
        of_cells(records, &ExperimentKind::App, asks, &|_, _| true)
    };
    let (halves, tails) = (by(P50), by(P99));
    let (Some(half), Some(tail)) = (Claim::of(&halves), Claim::of(&tails)) else {
        return Advice::no_evidence(Topic::App, About::Whole, Measure::Usual);
    };
    let either = |verdict| half.verdict == verdict || tail.verdict == verdict;
    let decision = match () {
        () if either(Verdict::Loss) => Decision::Leave,
        () if either(Verdict::Win) => Decision::Set,
        () if either(Verdict::Unresolved) => Decision::Unresolved,
        () => Decision::AsItIs,
    };
    Advice {
        gain: Some(half),
        records: ids(&halves),
        guest: guest(&halves),
        ..Advice::bare(Topic::App, decision, Reason::Waits { half, tail })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Judged, judge};
    use ntcopy_record::testing::{params, rated};
    use ntcopy_record::{Kernel, Mode};

    /// One cell of a stack at these rates of the stock kernel, of the patches, of the hint, of sends
    /// that copy nothing.
    fn proxied(stack: &str, rates: [u64; 4]) -> Judged {
        let cell = json!({"form": "closed", "stack": stack, "asked_bytes": 1 << 20});
        let names = ["plain-stock", "plain", "hinted", "sendfile"];
        let mut record = rated(&names, [(params(cell), [rates; 5])]);
        record.header.experiment = ExperimentKind::Http;
        let patched = names[1..].iter().map(|name| Mode::named(*name).on(Kernel::Patched));
        record.header.modes =
            [Mode::named("plain").on(Kernel::Stock)].into_iter().chain(patched).collect();
        judge(&record)
    }

    #[test]
    fn the_hint_has_no_credit_for_what_the_patches_bring_and_the_three_stand_side_by_side() {
        let record = proxied("haproxy+storaged", [1000, 1070, 1060, 1600]);
        let all = http(&[&record], Taker::Kernel);
        let [ours, theirs] = &all[..] else { panic!("two stacks: {all:?}") };
        assert_eq!(ours.decision, Decision::NoEvidence);
        assert_eq!(theirs.about, About::Stack("haproxy+storaged".to_owned()));
        assert_eq!(theirs.decision, Decision::AsItIs, "{theirs:?}");
        let Parts { patches, hint, at_most } = theirs.parts.unwrap();
        let parts = [patches, hint, at_most].map(|claim| claim.unwrap().all.parts().0);
        assert_eq!(parts, ["1.07", "0.99", "1.50"]);
    }

    #[test]
    fn each_stack_of_one_record_has_its_own_hint() {
        let cell = json!({"form": "closed", "stack": "a,storaged+proxyd", "asked_bytes": 1 << 20});
        let names = ["a:plain", "a:hinted", "storaged+proxyd:plain", "storaged+proxyd:hinted"];
        let mut record = rated(&names, [(params(cell), [[1000, 1000, 1000, 1200]; 5])]);
        record.header.experiment = ExperimentKind::Http;
        let of = |stack| ["plain", "hinted"].map(|name| Mode::named(name).of_stack(stack));
        record.header.modes = ["a", OWN_STACK].into_iter().flat_map(of).collect();
        let judged = judge(&record);
        let all = http(&[&judged], Taker::Kernel);
        let found: Vec<_> = all.iter().map(|one| (&one.about, one.decision)).collect();
        let [own, a] = [OWN_STACK, "a"].map(|stack| About::Stack(stack.to_owned()));
        assert_eq!(found, [(&own, Decision::Set), (&a, Decision::AsItIs)]);
    }
}
