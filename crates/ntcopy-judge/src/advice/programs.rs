//! Whole programs: a proxy and its backend, by stack; and a program with small requests beside large
//! ones.

use super::pays::{Pays, name_kernel};
use super::{Advice, Decision, Topic};
use crate::Judged;
use crate::claims::{Claim, Parts, Point, cells, hint, ids, losses, of_cells};
use crate::stats::{P50, P99, THROUGHPUT, Verdict};
use ntcopy_record::lists::unique;
use ntcopy_record::{Cell, ExperimentKind, word};

/// The stack of this project's own daemons, which is told of in any case.
const OURS: &str = "storaged+proxyd";

/// Hinted responses, for each stack of proxy and backend that was measured.
pub(super) fn http(records: &[&Judged]) -> Vec<Advice> {
    let ours = records.iter().filter(|record| record.header.experiment == ExperimentKind::Http);
    let measured = ours.flat_map(|record| &record.cells).filter_map(|c| word(&c.params, "stack"));
    let stacks = unique([OURS].into_iter().chain(measured));
    let advised = stacks.into_iter().filter_map(|stack| of_stack(records, stack));
    advised.collect()
}

fn of_stack(records: &[&Judged], stack: &str) -> Option<Advice> {
    let is_about = |_: &Judged, cell: &Cell| {
        word(&cell.params, "form") == Some("closed") && word(&cell.params, "stack") == Some(stack)
    };
    let http = &ExperimentKind::Http;
    let points = of_cells(records, http, &|record| hint(record, THROUGHPUT), &is_about);
    if points.is_empty() && stack != OURS {
        return None;
    }
    let pays = Pays {
        topic: Topic::HTTP,
        thing: &format!("Hinted responses ({stack})"),
        setting: &|from| match stack {
            OURS => format!("--mode nt of storaged where {from} or more are asked for at a time"),
            _ => format!("SO_NTCOPY in the backend where {from} or more are asked for at a time"),
        },
        leave: "SO_NTCOPY in the backend",
        least: Some(1.0),
        run: "ntcopy bench http --kernel um",
    };
    let (mut advice, used) = pays.answer(&points);
    name_kernel(&mut advice, used);
    let parts = Parts::of(records, http, &is_about);
    Some(Advice { about: Some(stack.to_owned()), parts, ..advice })
}

/// What small requests feel of large ones that are hinted, in a program as it is.
pub(super) fn app(records: &[&Judged]) -> Advice {
    let by = |metric| -> Vec<Point<'_>> {
        of_cells(records, &ExperimentKind::App, &|record| hint(record, metric), &|_, _| true)
    };
    let (halves, tails) = (by(P50), by(P99));
    let (Some(half), Some(tail)) = (Claim::of(&halves), Claim::of(&tails)) else {
        let why = "Small requests beside large ones: nothing was measured on this machine.";
        return Advice::no_evidence(Topic::APP, why, "ntcopy bench app --kernel um");
    };
    let either = |verdict| half.verdict == verdict || tail.verdict == verdict;
    let decision = match () {
        () if either(Verdict::Loss) => Decision::Leave,
        () if either(Verdict::Win) => Decision::Set,
        () if either(Verdict::Unresolved) => Decision::Unresolved,
        () => Decision::AsItIs,
    };
    let why = format!(
        "Small requests beside large ones, relative to plain sends of the same kernel: {half} at the \
         median, {tail} at the 99th percentile, of {}.",
        cells(half.cells)
    );
    let mut advice = Advice {
        setting: Some("ntcopy run -- PROGRAM".to_owned()),
        gain: Some(half),
        costs: Some(losses(&halves)),
        records: ids(&halves),
        ..Advice::bare(Topic::APP, decision, why)
    };
    name_kernel(&mut advice, &halves);
    advice
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
        let all = http(&[&record]);
        let [ours, theirs] = &all[..] else { panic!("two stacks: {all:?}") };
        assert_eq!(ours.decision, Decision::NoEvidence);
        assert_eq!(theirs.about.as_deref(), Some("haproxy+storaged"));
        assert_eq!(theirs.decision, Decision::AsItIs, "{theirs:?}");
        let parts = theirs.parts.unwrap().to_string();
        let words = "patches alone 1.07x (1.07-1.07) in 1 cell; the hint on top 0.99x (0.99-0.99) in 1 \
                     cell; sends that copy nothing 1.50x (1.50-1.50) in 1 cell";
        assert_eq!(parts, words);
    }
}
