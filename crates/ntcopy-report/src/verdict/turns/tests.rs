use ntcopy_judge::judge;
use ntcopy_judge::stats::turns::{HINTED, LATENCY, METRIC, PROGRAM_CPU};
use ntcopy_record::{Record, testing};

use super::*;

/// Turns that take so long, with what the kernel counted of each hinted turn.
fn detailed(figures: &[(u64, u64)], counted: u64) -> Record {
    let mut record = testing::turns(figures);
    for sample in record.samples.iter_mut().filter(|turn| turn.mode == HINTED && counted > 0) {
        let counts = [
            ("NtcopyBytes", 8 * counted),
            ("NtcopyHintedBytes", 4 * counted),
            ("NtcopyBypassedBytes", counted),
        ];
        sample.counters = counts.map(|(name, count)| (name.to_owned(), count)).into();
    }
    record
}

fn outcome(record: &Record) -> Outcome {
    judge(record).outcome.unwrap()
}

#[test]
fn turns_that_differ_by_chance_are_unresolved_until_the_interval_is_narrow() {
    let figures = [(100, 108), (108, 100), (100, 92), (94, 100), (101, 102), (102, 101)];
    let wide = outcome(&detailed(&figures, 10));
    assert_eq!(wide.versus.verdict(), Verdict::Unresolved);
    assert!(verdict(&wide).starts_with("Unresolved, by a bar of 3 %: "), "{}", verdict(&wide));
    assert!(advice(&wide).contains("--budget"), "{}", advice(&wide));
    let figures = [(100, 101), (102, 100), (100, 99), (99, 100), (101, 102), (102, 101)];
    let equal = outcome(&detailed(&figures, 10));
    assert_eq!(equal.versus.verdict(), Verdict::Equal);
    assert!(verdict(&equal).starts_with("Equal: "), "{}", verdict(&equal));
    assert_eq!(equal.counted.bypassed_part(), Some(0.25));
    assert!(advice(&equal).contains("did not go past the caches"), "{}", advice(&equal));
    let said = counted(&equal);
    for words in ["40 hinted bytes", "50.0 % of those", "25.0 % of them"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_program_that_was_not_hinted_says_so_whatever_the_interval() {
    let slower = outcome(&detailed(&[(100, 200); 6], 0));
    assert_eq!(slower.versus.verdict(), Verdict::Loss);
    assert!(counted(&slower).contains("No hinted byte"));
    assert!(advice(&slower).contains("loading the library"), "{}", advice(&slower));
}

#[test]
fn cpu_time_is_said_where_the_load_had_a_rate_and_unfit_machines_in_any_case() {
    let unfit = [(100, 50), (110, 50), (100, 51), (111, 50), (101, 50), (110, 51)];
    let fit = [(100, 50), (101, 50), (100, 51), (100, 50), (101, 50), (101, 51)];
    for (figures, is_fit) in [(unfit, false), (fit, true)] {
        let mut record = detailed(&figures, 1);
        for turn in &mut record.samples {
            let ns = if turn.mode == HINTED { 100 } else { 200 };
            turn.series.insert(PROGRAM_CPU.to_owned(), vec![ns]);
        }
        let timed = outcome(&record);
        assert_eq!(!alike(&timed).unwrap().starts_with("Not fit: "), is_fit);
        assert_eq!(cpu(&timed), None);
        record.cells[0].params.insert(METRIC.to_owned(), LATENCY.into());
        let verdict = if is_fit { "win" } else { "unresolved" };
        let expected = format!("CPU s: program: {verdict}, 2.00x (2.00-2.00).");
        assert_eq!(cpu(&outcome(&record)).unwrap(), expected);
    }
}
