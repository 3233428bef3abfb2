//! Two measurements at one time: each learns of the other, and no advice goes by either record.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ntcopy_record::Record;

use crate::common::{at_home, good, preload::library, stderr, text, wait_until};

/// Turns of a script, with a record in a folder of the home.
fn turns(home: &Path, record: &str, script: &str) -> Command {
    let line = ["try", "--library", library(), "--anyway", "--allow-not-a-timing", "--pairs", "5"];
    let more = ["--out", record, "--", "sh", "-c", script];
    let mut command = at_home(home, &[&line[..], &more].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn pid(child: &Child) -> String {
    format!("process {}", child.id())
}

#[test]
fn two_measurements_notice_each_other_and_their_records_say_it() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let wait = "touch begun; while ! test -e gate; do sleep 0.05; done";
    let mut first = turns(home, "records/first", wait).spawn().unwrap();
    wait_until(Some(&mut first), || home.join("begun").exists());
    let second = turns(home, "records/second", "true").spawn().unwrap();
    let (one, other) = (pid(&first), pid(&second));
    let second = second.wait_with_output().unwrap();
    let said = good(&second);
    assert!(stderr(&second).contains(&one), "at the start: {}", stderr(&second));
    assert!(said.contains(&one), "{said}");
    fs::write(home.join("gate"), "").unwrap();
    let said = good(&first.wait_with_output().unwrap());
    assert!(said.contains("measured at the same time") && said.contains(&other), "{said}");
    for (record, beside) in [("first", &other), ("second", &one)] {
        let record = Record::read(home.join("records").join(record)).unwrap();
        assert!(record.complete && record.disturbed().unwrap().contains(beside), "{record:?}");
    }
    let advice = at_home(home, &["advise", "records"]).output().unwrap();
    let listed = text(&advice.stdout);
    assert_eq!(listed.matches("another ntcopy measured").count(), 2, "{listed}");
}
