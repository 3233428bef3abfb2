use serde_json::json;

use super::*;
use crate::ratio::Ratio;
use crate::stats::Tally;
use crate::{Judged, judge};
use ntcopy_record::testing::{self, params, record};
use ntcopy_record::{Cache, Kernel, Mode, Params, Record};

const MIB: u64 = 1 << 20;
/// The machine of the tests: 2 MiB of level 2, and glibc's memcpy non-temporal from 100 MiB on.
const OWN: u64 = 100 * MIB;

fn machine() -> Machine {
    let mut machine = record(&["libc"], &[]).machine;
    machine.libc = "glibc 2.36".into();
    machine.libc_nt_threshold_bytes = Some(OWN);
    machine.caches = vec![Cache {
        level: 2,
        kind: "unified".into(),
        size_bytes: 2 * MIB,
        shared_by_cpus: Some(1),
    }];
    machine
}

fn target() -> Target {
    Target::of(machine())
}

/// A record of an experiment on that machine: cells of these parameters, and in each the other modes
/// in percent of the first.
fn measured<R: AsRef<[u64]>>(
    experiment: &str,
    modes: &[&str],
    cells: impl Iterator<Item = (Params, R)>,
) -> Record {
    let mut record = testing::measured(modes, cells);
    record.header.experiment = experiment.into();
    record.header.id = format!("20261121-000000-{experiment}-0000000{}", record.cells.len());
    record.machine = machine();
    record
}

/// glibc with a threshold of 4 MiB by glibc as it is, in percent, at these sizes in MiB.
fn tuned(sizes: &[(u64, u64)]) -> Record {
    let cell = |(mib, percent): &(u64, u64)| {
        let asked = json!({
            "size_bytes": mib * MIB, "threads": 1, "libc_tuned_threshold_bytes": 4 * MIB,
            "source": "cold", "destination": "cold",
        });
        (params(asked), [*percent])
    };
    measured("memcpy", &["libc", "libc-tuned"], sizes.iter().map(cell))
}

/// What stands for more data than the caches hold, and for what lies in level 2.
pub(super) const COLD: u64 = 256 * MIB;
pub(super) const HOT: u64 = MIB;

/// Rounds over unix sockets: (sockets, object, data set, hinted in percent of plain).
pub(super) fn rounds(cells: &[(u64, u64, u64, u64)]) -> Record {
    let cell = |(sockets, object, dataset, hinted): &(u64, u64, u64, u64)| {
        let asked = json!({
            "sockets": sockets, "object_bytes": object, "in_flight_bytes": sockets * object,
            "dataset_bytes": dataset, "form": "rounds", "family": "unix",
        });
        (params(asked), [*hinted])
    };
    measured("unix", &["plain", "hinted"], cells.iter().map(cell))
}

/// A hot set beside sends of these MiB in flight; hinted of walks, and of sends and walks together, in
/// percent of plain.
fn beside(cells: &[(u64, u64)]) -> Record {
    let cell = |(mib, hinted): &(u64, u64)| {
        let asked = json!({
            "sockets": mib, "object_bytes": MIB, "in_flight_bytes": mib * MIB,
            "dataset_bytes": MIB, "hot_set_bytes": MIB, "form": "victim",
        });
        (params(asked), [*hinted])
    };
    let mut beside = measured("retention", &["plain", "hinted"], cells.iter().map(cell));
    for sample in &mut beside.samples {
        sample.series = [("walk_ns".to_owned(), vec![sample.elapsed_ns])].into();
    }
    beside
}

fn about(topic: Topic, records: &[&Record]) -> Advice {
    let judged: Vec<Judged> = records.iter().map(|record| judge(record)).collect();
    let found: Vec<Advice> = advise(&judged.iter().collect::<Vec<&Judged>>(), &target())
        .into_iter()
        .filter(|advice| advice.topic == topic)
        .collect();
    let [only] = found.as_slice() else { panic!("{topic:?}: {found:?}") };
    only.clone()
}

#[test]
fn what_the_module_brings_is_never_counted_with_what_the_kernel_does() {
    const KIB: u64 = 1 << 10;
    let sends = |percents: [u64; 2]| {
        let [quarter, whole] = percents;
        rounds(&[(64, 256 * KIB, COLD, quarter), (64, MIB, COLD, whole)])
    };
    let (kernel, mut module) = (sends([110, 130]), sends([90, 115]));
    for mode in &mut module.header.modes {
        mode.kernel = Some(Kernel::Module);
    }
    // Of `--against module`: plain and hinted sends of both kernels.
    let cells = [(256 * KIB, [110, 100, 90]), (MIB, [130, 100, 115])].map(|(object, percents)| {
        let asked = json!({
            "object_bytes": object, "dataset_bytes": COLD, "form": "rounds", "family": "unix",
        });
        (params(asked), percents)
    });
    let names = ["plain", "hinted", "plain-module", "hinted-module"];
    let mut both = measured("unix", &names, cells.into_iter());
    both.header.modes = [Kernel::Patched, Kernel::Module]
        .into_iter()
        .flat_map(|kernel| ["plain", "hinted"].map(|name| Mode::named(name).on(kernel)))
        .collect();
    for records in [vec![kernel, module], vec![both]] {
        let judged: Vec<Judged> = records.iter().map(judge).collect();
        let all = advise(&judged.iter().collect::<Vec<&Judged>>(), &target());
        let sends = all.iter().filter(|one| one.topic == Topic::Sends);
        let gain = |one: &Advice| one.gain.map(|gain| gain.most.parts().0);
        let found: Vec<_> =
            sends.map(|one| (one.taker, one.decision, one.from_bytes, gain(one))).collect();
        // A number for the module is not cut down to that for a kernel which remembers the rest of a
        // send.
        let expected = [
            (Taker::Kernel, Decision::Set, Some(256 * KIB), Some("1.30".to_owned())),
            (Taker::Module, Decision::Set, Some(MIB), Some("1.15".to_owned())),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn a_threshold_is_the_size_from_which_every_cell_wins() {
    let record = tuned(&[(4, 80), (8, 120), (16, 97), (32, 130), (64, 150), (256, 300)]);
    let advice = about(Topic::MemcpyThreshold, &[&record]);
    assert_eq!(advice.decision, Decision::Set, "{advice:?}");
    assert_eq!(advice.from_bytes, Some(32 * MIB));
    let gain = advice.gain.unwrap();
    // 256 MiB is non-temporal with either threshold, so it says nothing.
    assert_eq!(gain.cells, 2);
    let Ratio { ratio, ci } = gain.all;
    assert!(ci.0 > 1.3 && ci.1 < 1.5 && (ratio - 1.396).abs() < 0.01, "{gain:?}");
    let Reason::WinsFrom { from, below: Some(below) } = &advice.reason else {
        panic!("{advice:?}")
    };
    assert_eq!((from.bytes, below.tally.wins, below.tally.losses), (32 * MIB, 1, 2));
    let worst = below.worst.unwrap();
    assert_eq!((worst.result.parts().0.as_str(), worst.size.bytes), ("0.80", 4 * MIB));
    assert_eq!(advice.records, [record.header.id.as_str()]);
}

#[test]
fn a_threshold_that_does_not_win_from_some_size_on_is_left() {
    for (percents, decision, [wins, losses, equal]) in
        [([70, 80, 93], Decision::Leave, [0, 3, 0]), ([150, 150, 100], Decision::AsItIs, [2, 0, 1])]
    {
        let sizes: Vec<(u64, u64)> = [8, 32, 64].into_iter().zip(percents).collect();
        let advice = about(Topic::MemcpyThreshold, &[&tuned(&sizes)]);
        assert_eq!((advice.decision, advice.from_bytes), (decision, None), "{advice:?}");
        let Reason::OverAll(all) = advice.reason else { panic!("{advice:?}") };
        assert_eq!(all.tally, Tally { wins, losses, equal, unresolved: 0 });
    }
}

#[test]
fn a_threshold_that_is_set_already_is_left() {
    let record = tuned(&[(8, 90), (32, 130), (64, 150)]);
    let mut target = target();
    target.machine.libc_nt_threshold_bytes = Some(32 * MIB);
    let advice = glibc::advice(&glibc::MEMCPY, &[&judge(&record)], &target);
    assert_eq!((advice.decision, advice.from_bytes), (Decision::AsItIs, Some(32 * MIB)));
    assert_eq!(advice.now, Some(Now::Threshold(32 * MIB)));
}

#[test]
fn another_release_of_the_library_says_nothing_of_this_one() {
    let mut record = tuned(&[(8, 150), (32, 150), (64, 150)]);
    record.machine.libc = "glibc 2.41".into();
    let advice = about(Topic::MemcpyThreshold, &[&record]);
    assert_eq!(advice.decision, Decision::NoEvidence);
    let sizes = [2, 4, 8, 16, 32, 64].map(|mib| mib * MIB);
    assert_eq!(advice.measure, Some(Measure::Sizes(sizes.into())));
}

#[test]
fn a_threshold_that_there_is_not_or_that_lies_within_level_2_is_not_here() {
    let advice = about(Topic::MemsetThreshold, &[]);
    let libc = "glibc 2.36".to_owned();
    assert_eq!(advice.decision, Decision::NotHere);
    assert_eq!(advice.reason, Reason::NoTunable { libc: libc.clone() });
    let with = |own: u64| {
        let mut target = target();
        target.machine.libc_memset_nt_threshold_bytes = Some(own);
        glibc::advice(&glibc::MEMSET, &[], &target)
    };
    assert!(matches!(with(OWN).measure, Some(Measure::Sizes(_))));
    let advice = with(MIB);
    assert_eq!(advice.decision, Decision::NotHere);
    assert_eq!(advice.reason, Reason::ThresholdWithinLevel2 { libc, bytes: MIB });
}

#[test]
fn the_number_is_the_shortest_send_from_which_on_none_loses_out_of_a_cold_source() {
    const KIB: u64 = 1 << 10;
    for (percents, number) in [
        // 64, 128, 256 KiB and 1 MiB.
        ([90, 100, 110, 130], 128 * KIB),
        ([90, 90, 110, 130], 256 * KIB),
        ([105, 105, 110, 130], 64 * KIB),
        // None is advised above 256 KiB.
        ([90, 90, 90, 170], 256 * KIB),
    ] {
        let sizes = [64 * KIB, 128 * KIB, 256 * KIB, MIB];
        let cells: Vec<_> = sizes
            .into_iter()
            .zip(percents)
            .map(|(size, hinted)| (16, size, COLD, hinted))
            .collect();
        let sends = about(Topic::Sends, &[&rounds(&cells)]);
        assert_eq!(sends.decision, Decision::Set, "{sends:?}");
        let run = about(Topic::Run, &[&rounds(&cells)]);
        assert_eq!([sends.from_bytes, run.from_bytes], [Some(number); 2], "{percents:?}");
    }
}

#[test]
fn a_hot_source_decides_nothing_and_its_losses_are_told_as_such() {
    let record = rounds(&[
        (16, MIB, COLD, 130),
        (64, MIB, COLD, 140),
        (1, MIB, HOT, 80),
        (64, MIB, HOT, 120),
        (64, MIB, 3 * MIB, 50),
    ]);
    let sends = about(Topic::Sends, &[&record]);
    assert_eq!((sends.decision, sends.gain.unwrap().cells), (Decision::Set, 2));
    let Reason::Lengths { all, .. } = sends.reason else { panic!("{:?}", sends.reason) };
    assert_eq!((all.tally.total(), all.worst), (2, None));
    let hot = sends.hot.unwrap();
    assert_eq!((hot.claim.cells, hot.losses), (2, 1));
    assert_eq!(hot.worst.unwrap().result.parts().0, "0.80");
    let hot_alone = about(Topic::Sends, &[&rounds(&[(1, MIB, HOT, 150)])]);
    assert_eq!(hot_alone.decision, Decision::NoEvidence);
}

#[test]
fn hints_that_lose_everywhere_are_left_off_and_equal_ones_as_they_are() {
    for (percents, decision, [losses, equal]) in
        [([80, 85, 84], Decision::Leave, [3, 0]), ([100, 100, 100], Decision::AsItIs, [0, 3])]
    {
        let cells: Vec<_> = percents.map(|hinted| (16, MIB, COLD, hinted)).into();
        let cells: Vec<_> = cells
            .into_iter()
            .zip(1..)
            .map(|((_, o, d, hinted), sockets)| (sockets, o, d, hinted))
            .collect();
        for topic in [Topic::Sends, Topic::Run] {
            let advice = about(topic, &[&rounds(&cells)]);
            assert_eq!(
                (advice.decision, advice.from_bytes.is_some()),
                (decision, false),
                "{topic:?}"
            );
            let Reason::Lengths { above, .. } = advice.reason else { panic!("{advice:?}") };
            assert_eq!(above.tally, Tally { losses, equal, ..Tally::default() });
        }
    }
}

#[test]
fn a_hot_set_is_advised_on_beside_the_sends() {
    let sends = rounds(&[(64, MIB, COLD, 130)]);
    let beside = beside(&[(64, 150)]);
    let advice = about(Topic::HotSetSends, &[&sends, &beside]);
    assert_eq!((advice.decision, advice.about), (Decision::Set, About::BesideSends(Decision::Set)));
    let advice = about(Topic::HotSetSends, &[&beside]);
    assert_eq!(advice.about, About::BesideSends(Decision::NoEvidence));
}

#[test]
fn copies_speak_of_cells_where_the_library_was_nontemporal_and_of_no_others() {
    let cells = [(1, "cold", 150), (64, "cold", 160), (64, "hot", 80), (4, "hot", 50)];
    let cell = |(mib, destination, percent): (u64, &str, u64)| {
        let asked = json!({
            "size_bytes": mib * MIB, "threads": 1, "source": "cold", "destination": destination,
        });
        (params(asked), [percent])
    };
    let mut record = measured("memcpy", &["libc", "ours"], cells.into_iter().map(cell));
    for sample in record.samples.iter_mut().filter(|s| s.mode == "ours" && s.cell < 3) {
        sample.counters = [("nontemporal_bytes".to_owned(), sample.bytes)].into();
    }
    let copies = about(Topic::Copies, &[&record]);
    assert_eq!((copies.decision, copies.gain.unwrap().cells), (Decision::Set, 2));
    assert_eq!(copies.from_bytes, Some(MIB));
    let in_use = about(Topic::CopiesInUse, &[&record]);
    assert_eq!((in_use.decision, in_use.gain.unwrap().cells), (Decision::Leave, 1));
}

#[test]
fn the_newest_record_of_a_cell_counts() {
    let (mut old, mut new) = (tuned(&[(64, 150)]), tuned(&[(64, 80)]));
    (old.header.started_unix_ns, new.header.started_unix_ns) = (1, 2);
    assert_eq!(about(Topic::MemcpyThreshold, &[&old, &new]).decision, Decision::Leave);
    (old.header.started_unix_ns, new.header.started_unix_ns) = (2, 1);
    assert_eq!(about(Topic::MemcpyThreshold, &[&old, &new]).decision, Decision::Set);
}

#[test]
fn without_records_every_piece_says_what_to_measure_or_why_there_is_none() {
    for advice in advise(&[], &target()) {
        match advice.decision {
            Decision::NoEvidence => assert!(advice.measure.is_some(), "{advice:?}"),
            Decision::NotHere => assert!(matches!(advice.reason, Reason::NoTunable { .. })),
            _ => panic!("advice from nothing: {advice:?}"),
        }
    }
}

#[test]
fn records_of_other_machines_and_no_timings_do_not_count() {
    let record = tuned(&[(64, 150)]);
    assert_eq!(counts(&judge(&record), &machine()), Ok(()));
    let mut other = machine();
    other.cpu_signature = "GenuineIntel-6-85-7".into();
    assert!(counts(&judge(&record), &other).unwrap_err().contains("GenuineIntel-6-85-7"));
    let mut resized = machine();
    resized.llc_bytes *= 2;
    assert!(counts(&judge(&record), &resized).unwrap_err().contains("last-level cache"));
    let mut emulated = record.clone();
    emulated.header.not_a_timing = Some("an emulated CPU".into());
    assert!(counts(&judge(&emulated), &machine()).unwrap_err().contains("an emulated CPU"));
    let mut empty = record;
    empty.samples.clear();
    assert!(counts(&judge(&empty), &machine()).unwrap_err().contains("no samples"));
}
