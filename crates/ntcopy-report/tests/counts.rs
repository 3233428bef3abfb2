//! What counts: every kind of record that `bench` and `try` write reaches `advise`, or stands in
//! one table. The records are those that the repository keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ntcopy_judge::advice::{Decision, Target, advise};
use ntcopy_judge::{Judged, judge};
use ntcopy_record::{Cell, ExperimentKind, Record, word};

/// Kinds of records that no advice rests on, and why.
const EXCEPTIONS: [(&str, &str); 12] = [
    ("footprint", "it says what a call displaces, and compares no copies"),
    ("http closed, nothing hinted", "it compares daemons"),
    ("memcpy, other loops", "it compares loops that the library does not choose"),
    ("net closed, nothing hinted", "its mode is a feature of the device"),
    ("net open, nothing hinted", "its mode is a feature of the device"),
    ("order", "it shows what a cache does, and has no hint"),
    ("pages fork", "the kernel clears and copies pages, and no program chooses"),
    ("pages pages", "the kernel clears and copies pages, and no program chooses"),
    ("pingpong", "no topic asks for the time of one exchange"),
    ("try", "it gives its own verdict, of one program"),
    ("unix free-running", "its source is hot, which decides nothing by itself"),
    ("unix two-senders", "no topic asks for two senders"),
];

/// Every record that the repository keeps.
fn kept() -> Vec<Judged> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/record");
    let folders = |place: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let machines = folders(&root);
    let places = machines.iter().flat_map(|machine| folders(machine));
    let all: Vec<Judged> =
        places.filter_map(|place| Some(judge(&Record::read(&place).ok()?))).collect();
    assert!(all.len() > 40, "{} records", all.len());
    all
}

/// What kind of a record a cell makes of its own: its experiment, its form, and what its modes are.
fn kind(record: &Judged, cell: &Cell) -> String {
    let experiment = &record.header.experiment;
    let has = |names: &[&str]| record.modes.iter().any(|mode| names.contains(&mode.as_str()));
    let form = match experiment {
        ExperimentKind::Pingpong => "",
        _ => word(&cell.params, "form").unwrap_or_default(),
    };
    let of_modes = match experiment {
        ExperimentKind::Memcpy if !has(&["ours"]) => ", other loops",
        ExperimentKind::Http | ExperimentKind::Net if !has(&["hinted"]) => ", nothing hinted",
        _ => "",
    };
    let gap = if form.is_empty() { "" } else { " " };
    format!("{experiment}{gap}{form}{of_modes}")
}

#[test]
fn every_kind_of_record_reaches_advise_or_is_an_exception_by_name() {
    let mut is_counted: BTreeMap<String, bool> = BTreeMap::new();
    for record in kept() {
        let advice = advise(&[&record], &Target::of(record.machine.clone()));
        let has_evidence = |decision| !matches!(decision, Decision::NoEvidence | Decision::NotHere);
        let counts = advice.iter().any(|one| has_evidence(one.decision));
        for cell in &record.cells {
            *is_counted.entry(kind(&record, cell)).or_default() |= counts;
        }
    }
    let exceptions: BTreeSet<&str> = EXCEPTIONS.iter().map(|(kind, _)| *kind).collect();
    let unheard: Vec<&String> = is_counted
        .iter()
        .filter(|(kind, counts)| !**counts && !exceptions.contains(kind.as_str()))
        .map(|(kind, _)| kind)
        .collect();
    assert!(
        unheard.is_empty(),
        "no advice rests on these, and no exception names them: {unheard:?}"
    );
    let is_kept =
        |name: &str| is_counted.keys().any(|kind| kind.split([' ', ',']).next() == Some(name));
    let needless: Vec<&&str> = exceptions
        .iter()
        .filter(|kind| is_counted.get(**kind).map_or(is_kept(kind), |counts| *counts))
        .collect();
    assert!(needless.is_empty(), "advice rests on these, or there are none: {needless:?}");
    // What is measured, but kept nowhere, has to be named as well.
    for experiment in ExperimentKind::KNOWN {
        let name = experiment.as_str();
        assert!(is_kept(name) || exceptions.contains(name), "no record of {name} is kept");
    }
}
