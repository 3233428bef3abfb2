use serde_json::json;

use super::*;
use crate::record::testing::{self, params, record};
use crate::record::{Cache, Params};
use crate::stats::{THROUGHPUT, Verdict, versus};
use crate::units::Ratio;

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

/// The number of the kernel's rule by one record.
fn number_by(record: &Record) -> Option<u64> {
    hints::best_number(&hints::rounds(&[record], "unix", "nt", "copy"))
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

/// Rounds of copy, nt and adaptive: (sockets, object, nt and adaptive in percent).
pub(super) fn rounds(cells: &[(u64, u64, u64, u64)]) -> Record {
    let cell = |(sockets, object, nt, adaptive): &(u64, u64, u64, u64)| {
        let asked = json!({
            "sockets": sockets, "object_bytes": object, "in_flight_bytes": sockets * object,
            "dataset_bytes": MIB, "form": "rounds", "family": "unix",
        });
        (params(asked), [*nt, *adaptive])
    };
    measured("unix", &["copy", "nt", "adaptive"], cells.iter().map(cell))
}

/// A hot set beside sends of these MiB in flight; nt and adaptive of walks, and of sends and walks
/// together, in percent of copy.
fn beside(cells: &[(u64, u64, u64)]) -> Record {
    let cell = |(mib, nt, adaptive): &(u64, u64, u64)| {
        let asked = json!({
            "sockets": mib, "object_bytes": MIB, "in_flight_bytes": mib * MIB,
            "dataset_bytes": MIB, "hot_set_bytes": MIB, "form": "victim",
        });
        (params(asked), [*nt, *adaptive])
    };
    let mut beside = measured("retention", &["copy", "nt", "adaptive"], cells.iter().map(cell));
    for sample in &mut beside.samples {
        sample.series = [("walk_ns".to_owned(), vec![sample.elapsed_ns])].into();
    }
    beside
}

fn about(topic: Topic, records: &[&Record]) -> Advice {
    let found: Vec<Advice> =
        advise(records, &target()).into_iter().filter(|advice| advice.topic == topic).collect();
    let [only] = found.as_slice() else { panic!("{topic:?}: {found:?}") };
    only.clone()
}

#[test]
fn a_threshold_is_the_size_from_which_every_cell_wins() {
    let record = tuned(&[(4, 80), (8, 120), (16, 97), (32, 130), (64, 150), (256, 300)]);
    let advice = about(Topic::MEMCPY_THRESHOLD, &[&record]);
    assert_eq!(advice.decision, Decision::Set, "{advice:?}");
    let setting = format!("GLIBC_TUNABLES=glibc.cpu.x86_non_temporal_threshold={}", 32 * MIB);
    assert_eq!(advice.setting.as_deref(), Some(setting.as_str()));
    let gain = advice.gain.unwrap();
    // 256 MiB is non-temporal with either threshold, so it says nothing.
    assert_eq!(gain.cells, 2);
    let Ratio { ratio, ci } = gain.all;
    assert!(ci.0 > 1.3 && ci.1 < 1.5 && (ratio - 1.396).abs() < 0.01, "{gain:?}");
    assert!(advice.why.contains("from 32 MiB a call on"), "{}", advice.why);
    assert!(advice.why.contains("2 lose (worst 0.80x"), "losses are said: {}", advice.why);
    assert_eq!(advice.records, [record.header.id.as_str()]);
}

#[test]
fn a_threshold_that_does_not_win_from_some_size_on_is_left() {
    for (percents, decision, words) in [
        ([70, 80, 93], Decision::Leave, "3 lose (worst 0.70x"),
        ([150, 150, 100], Decision::AsItIs, "1 makes no difference"),
    ] {
        let sizes: Vec<(u64, u64)> = [8, 32, 64].into_iter().zip(percents).collect();
        let advice = about(Topic::MEMCPY_THRESHOLD, &[&tuned(&sizes)]);
        assert_eq!((advice.decision, advice.value), (decision, None), "{advice:?}");
        assert!(advice.why.contains(words), "{}", advice.why);
    }
}

#[test]
fn another_release_of_the_library_says_nothing_of_this_one() {
    let mut record = tuned(&[(8, 150), (32, 150), (64, 150)]);
    record.machine.libc = "glibc 2.41".into();
    let advice = about(Topic::MEMCPY_THRESHOLD, &[&record]);
    assert_eq!(advice.decision, Decision::NoEvidence);
    let run = advice.run.unwrap().join(" ");
    let expected = "ntcopy bench memcpy --modes libc-tuned --libc-threshold 2MiB --size \
                    2MiB,4MiB,8MiB,16MiB,32MiB,64MiB";
    assert_eq!(run, expected);
}

#[test]
fn a_threshold_that_there_is_not_or_that_lies_within_level_2_is_not_here() {
    let advice = about(Topic::MEMSET_THRESHOLD, &[]);
    assert!(advice.decision == Decision::NotHere && advice.why.contains("2.40"), "{advice:?}");
    let with = |own: u64| {
        let mut target = target();
        target.machine.libc_memset_nt_threshold_bytes = Some(own);
        glibc::advice(&glibc::MEMSET, &[], &target)
    };
    assert!(with(OWN).run.unwrap().join(" ").starts_with("ntcopy bench memset --modes libc-tuned"));
    let advice = with(MIB);
    assert!(advice.decision == Decision::NotHere && advice.why.contains("level-2"), "{advice:?}");
}

#[test]
fn hints_are_advised_from_the_bytes_in_flight_from_which_all_cells_win() {
    let record =
        rounds(&[(1, MIB, 80, 99), (16, MIB, 85, 96), (64, MIB, 110, 108), (128, MIB, 130, 125)]);
    let sends = about(Topic::SENDS, &[&record]);
    assert_eq!(sends.decision, Decision::Set);
    assert!(sends.setting.unwrap().contains("64 MiB or more in flight"));
    assert!(sends.why.contains("1 loses (worst 0.96x"), "{}", sends.why);
    let hints = about(Topic::HINTS, &[&record]);
    assert_eq!(hints.value, Some(Value::Sysctl { name: "net.core.ntcopy", value: 1 }), "{hints:?}");
    assert_eq!(hints.gain.unwrap().cells, 2);
    let run = about(Topic::RUN, &[&record]);
    assert_eq!(run.setting.as_deref(), Some("ntcopy run --min-bytes 1MiB -- PROGRAM"));
}

#[test]
fn small_sends_that_lose_where_large_ones_win_raise_the_smallest() {
    let record = rounds(&[
        (1, MIB, 80, 97),
        (128, MIB, 130, 125),
        (2048, 64 << 10, 115, 112),
        (32768, 4 << 10, 80, 90),
    ]);
    let run = about(Topic::RUN, &[&record]);
    assert_eq!(run.setting.as_deref(), Some("ntcopy run --min-bytes 64KiB -- PROGRAM"));
    assert!(run.why.contains("1 loses (worst 0.90x"), "{}", run.why);
}

#[test]
fn hints_that_lose_everywhere_are_left_off() {
    let record = rounds(&[(1, MIB, 80, 93), (64, MIB, 85, 94), (128, MIB, 84, 95)]);
    for topic in [Topic::HINTS, Topic::SENDS, Topic::RUN] {
        let advice = about(topic, &[&record]);
        assert_eq!((advice.decision, advice.value), (Decision::Leave, None), "{topic:?}");
        assert!(advice.why.contains("3 lose"), "{}", advice.why);
    }
}

#[test]
fn hints_are_obeyed_only_where_that_is_better_than_the_rule_by_more_than_what_counts_as_equal() {
    let (by_a_hair, clearly) = ([(64, MIB, 122, 120), (128, MIB, 122, 120)], [(64, MIB, 130, 120)]);
    for (cells, choice) in [(&by_a_hair[..], Choice::RULE), (&clearly, Choice::OBEY)] {
        let record = rounds(cells);
        let beside = versus(&record, 0, "nt", "adaptive", THROUGHPUT).unwrap();
        assert_eq!(beside.verdict(), Verdict::Win, "{:?}", beside.ci);
        assert_eq!(Choice::from_records(&[&record]), choice);
    }
}

#[test]
fn one_value_of_the_option_is_advised_for_a_machine() {
    let by_rule = rounds(&[(1, MIB, 80, 98), (64, MIB, 110, 110), (128, MIB, 130, 130)]);
    let obeyed = rounds(&[(64, MIB, 130, 110), (128, MIB, 140, 120)]);
    let beside = beside(&[(64, 150, 140)]);
    for (sends, option) in [
        (&by_rule, "SO_NTCOPY = NTCOPY_SOCK_EVERY (2)"),
        (&obeyed, "SO_NTCOPY = NTCOPY_SOCK_OBEY (3)"),
    ] {
        let all = advise(&[sends, &beside], &target());
        let set = all.iter().filter(|advice| advice.decision == Decision::Set);
        let options: Vec<&str> = set
            .filter_map(|advice| advice.setting.as_deref())
            .filter(|setting| setting.contains("SO_NTCOPY"))
            .collect();
        assert_eq!(options.len(), 2, "sends, and the hot set: {options:?}");
        assert!(options.iter().all(|setting| setting.starts_with(option)), "{options:?}");
    }
    let hints = about(Topic::HINTS, &[&obeyed]);
    assert_eq!(hints.value, Some(Value::Sysctl { name: "net.core.ntcopy", value: 2 }));
    assert!(hints.why.contains("of sends that the rule decides about"), "{}", hints.why);
    let number = about(Topic::CACHE_BYTES, &[&obeyed]);
    assert_eq!((number.decision, number.value), (Decision::AsItIs, None), "{}", number.why);
}

#[test]
fn the_rules_number_is_where_obeyed_hints_begin_to_win_and_is_set_where_that_changes_something() {
    let name = "net.core.ntcopy_cache_bytes";
    for (by_rule, value) in [
        // The rule, with the number that it has, bypasses too seldom; does as well; does better.
        ([99, 101, 105], Some(Value::Sysctl { name, value: 65 * MIB / 2 })),
        ([99, 109, 129], None),
        ([110, 130, 150], None),
    ] {
        let cells = [(1, 60), (64, 110), (128, 130)].into_iter().zip(by_rule);
        let cells: Vec<_> = cells.map(|((mib, nt), rule)| (mib, MIB, nt, rule)).collect();
        let record = rounds(&cells);
        let advice = about(Topic::CACHE_BYTES, &[&record]);
        assert_eq!((advice.decision == Decision::Set, advice.value), (value.is_some(), value));
        assert!(value.is_some() || advice.setting.as_deref() == Some(name), "{advice:?}");
        assert!(advice.why.contains("of the rule with its own"), "{}", advice.why);
        assert_eq!(advice.gain.unwrap().cells, 3, "beside the rule as it is, over all cells");
    }
    // One cell that was disturbed moves nothing.
    let blot = rounds(&[(1, MIB, 80, 1), (4, MIB, 130, 1), (8, MIB, 97, 1), (64, MIB, 150, 1)]);
    assert_eq!(number_by(&blot), Some(5 * MIB / 2));
}

#[test]
fn the_rules_number_is_not_raised_where_sends_and_walks_together_gain_below_it() {
    let sends = rounds(&[(1, MIB, 60, 99), (64, MIB, 110, 101), (128, MIB, 130, 105)]);
    for (together, decision, words) in [
        (
            vec![],
            Decision::Set,
            "Sends alone decide: sends and another program's walks together were",
        ),
        (
            vec![(4, 98, 100), (16, 100, 100)],
            Decision::Set,
            "together gain nothing by hints below that, 0.990x",
        ),
        (
            vec![(4, 120, 100), (64, 90, 100)],
            Decision::AsItIs,
            "that decides, and the number stays",
        ),
    ] {
        let advice = about(Topic::CACHE_BYTES, &[&sends, &beside(&together)]);
        assert_eq!(
            (advice.decision, advice.value.is_some()),
            (decision, decision == Decision::Set)
        );
        assert!(advice.why.contains(words), "{}", advice.why);
    }
    // As much as that is copied normally already.
    let mut here = target();
    let beside = beside(&[(4, 120, 100)]);
    let decided = |here: &Target| {
        let all = advise(&[&sends, &beside], here);
        let number = all.into_iter().find(|one| one.topic == Topic::CACHE_BYTES).unwrap();
        number.decision
    };
    here.sysctls[1] = Some(8 * MIB);
    assert_eq!(decided(&here), Decision::Set);
    here.sysctls[1] = Some(0);
    assert_eq!(decided(&here), Decision::AsItIs, "a third of level 2");
    here.machine.cpu_signature = "AuthenticAMD-25-17-1".into();
    here.machine.caches.push(Cache {
        level: 3,
        kind: "unified".into(),
        size_bytes: 32 * MIB,
        shared_by_cpus: Some(2),
    });
    assert_eq!(decided(&here), Decision::Set, "a third of the part of level 3");
}

#[test]
fn hints_that_win_everywhere_or_nowhere_have_a_number_too() {
    let everywhere = rounds(&[(1, MIB, 110, 1), (4, MIB, 130, 1)]);
    assert_eq!(number_by(&everywhere), Some(MIB / 2));
    let why = about(Topic::CACHE_BYTES, &[&everywhere]).why;
    assert!(why.contains("from the least that was measured on"), "{why}");
    let record = rounds(&[(1, MIB, 80, 93), (4, MIB, 90, 94)]);
    assert_eq!(number_by(&record), Some(8 * MIB));
    let advice = about(Topic::CACHE_BYTES, &[&record]);
    assert_eq!((advice.decision, advice.value), (Decision::Leave, None));
    assert!(advice.why.contains("With 8 MiB all of these are copied normally"), "{}", advice.why);
    assert_eq!(number_by(&tuned(&[(64, 150)])), None);
    let run = about(Topic::CACHE_BYTES, &[]).run.unwrap().join(" ");
    assert_eq!(run, "ntcopy bench unix --kernel um --sweep");
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
    let copies = about(Topic::COPIES, &[&record]);
    assert_eq!((copies.decision, copies.gain.unwrap().cells), (Decision::Set, 2));
    assert!(copies.why.contains("from 1 MiB a call on"), "{}", copies.why);
    let in_use = about(Topic::COPIES_IN_USE, &[&record]);
    assert_eq!((in_use.decision, in_use.gain.unwrap().cells), (Decision::Leave, 1));
}

#[test]
fn the_newest_record_of_a_cell_counts() {
    let (mut old, mut new) = (tuned(&[(64, 150)]), tuned(&[(64, 80)]));
    (old.header.started_unix_ns, new.header.started_unix_ns) = (1, 2);
    assert_eq!(about(Topic::MEMCPY_THRESHOLD, &[&old, &new]).decision, Decision::Leave);
    (old.header.started_unix_ns, new.header.started_unix_ns) = (2, 1);
    assert_eq!(about(Topic::MEMCPY_THRESHOLD, &[&old, &new]).decision, Decision::Set);
}

#[test]
fn without_records_every_piece_names_its_command_or_why_there_is_none() {
    for advice in advise(&[], &target()) {
        match advice.decision {
            Decision::NoEvidence => assert!(advice.run.is_some(), "{advice:?}"),
            Decision::NotHere => assert!(!advice.why.is_empty()),
            _ => panic!("advice from nothing: {advice:?}"),
        }
    }
}

#[test]
fn records_of_other_machines_and_no_timings_do_not_count() {
    let record = tuned(&[(64, 150)]);
    assert_eq!(counts(&record, &machine()), Ok(()));
    let mut other = machine();
    other.cpu_signature = "GenuineIntel-6-85-7".into();
    assert!(counts(&record, &other).unwrap_err().contains("GenuineIntel-6-85-7"));
    let mut resized = machine();
    resized.llc_bytes *= 2;
    assert!(counts(&record, &resized).unwrap_err().contains("last-level cache"));
    let mut emulated = record.clone();
    emulated.header.not_a_timing = Some("an emulated CPU".into());
    assert!(counts(&emulated, &machine()).unwrap_err().contains("an emulated CPU"));
    let mut empty = record;
    empty.samples.clear();
    assert!(counts(&empty, &machine()).unwrap_err().contains("no samples"));
}
