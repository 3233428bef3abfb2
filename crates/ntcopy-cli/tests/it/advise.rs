//! `ntcopy advise`: from records on disk to advice and exit codes. The records are made up by the
//! tests, or those in `bench/record`; nothing is measured.

use std::fs;
use std::path::Path;
use std::process::Output;

use ntcopy_record::FILE_NAME;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{
    self, ends, good, in_home, project, stderr,
    store::{here, write},
};
use crate::synthetic;

/// A machine that there is not.
const ELSEWHERE: &str = "AuthenticAMD-26-200-1";

fn advise(home: &Path, arguments: &[&str]) -> Output {
    in_home(home, &[&["advise"], arguments].concat())
}

/// Advice as JSON, by topic; the first of a topic.
fn topics(output: &Output) -> impl Fn(&str) -> Value {
    let object = common::json(&common::text(&output.stdout));
    move |topic| {
        let all = object["advice"].as_array().expect("a list");
        all.iter().find(|one| one["topic"] == topic).cloned().expect("every topic is there")
    }
}

/// A folder with a sweep of this machine in it.
fn with_sweep() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    write(&home.path().join("records"), &here(synthetic::synthetic_sweep()));
    home
}

#[test]
fn an_empty_store_gives_commands_and_no_advice() {
    let home = tempfile::tempdir().unwrap();
    let text = good(&advise(home.path(), &[]));
    assert!(
        text.contains("No evidence yet") && !text.contains("SET ") && !text.contains("USE "),
        "{text}"
    );
    assert!(text.starts_with("Advice from 0 records of this CPU ("), "{text}");
}

#[test]
fn anothers_records_are_listed_and_not_counted_unless_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let mut record = synthetic::synthetic_sweep();
    record.machine.cpu_signature = ELSEWHERE.to_owned();
    write(&home.path().join("records"), &record);
    let output = advise(home.path(), &["records"]);
    let (text, said) = (good(&output), stderr(&output));
    assert!(text.contains("Not counted") && text.contains("of another machine"), "{text}");
    assert!(!text.contains("SET ") && !text.contains("USE "), "{text}");
    assert!(said.contains(&format!("ntcopy advise --for {ELSEWHERE}")), "{said}");
    let output = advise(home.path(), &["records", "--for", ELSEWHERE, "--json"]);
    let hints = topics(&output)("sends");
    assert_eq!(hints["value"]["kind"], "option");
    assert_eq!(hints["value"]["name"], "SO_NTCOPY");
    assert_eq!(hints["gain"]["verdict"], "win");
    ends(&advise(home.path(), &["nowhere"]), 1, &["cannot read nowhere"]);
    let output = advise(home.path(), &["records", "--for", "Nobody-0-0-0"]);
    ends(&output, 3, &[&format!("there are those of {ELSEWHERE}")]);
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_counts() {
    let home = with_sweep();
    let torn = write(&home.path().join("records"), &{
        let mut record = here(synthetic::synthetic_rounds());
        record.header.id = "torn".into();
        record
    });
    let file = torn.join(FILE_NAME);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"type\":\"sample\"", "\"type\":\"sam", 1)).unwrap();
    // Cut short, as by a crash: what it holds is good.
    let short = write(&home.path().join("records"), &{
        let mut record = here(synthetic::synthetic_retention());
        record.header.id = "short".into();
        record
    });
    let text = fs::read_to_string(short.join(FILE_NAME)).unwrap();
    fs::write(short.join(FILE_NAME), text.trim_end().rsplit_once('\n').unwrap().0).unwrap();
    let output = advise(home.path(), &["records", "--json"]);
    let object = common::json(&common::text(&output.stdout));
    let left = object["not_counted"].as_array().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    let why = left[0]["why"].as_str().unwrap();
    assert!(why.contains("cannot be read") && why.contains("record.jsonl:"), "{why}");
    assert_eq!(object["counted"].as_array().unwrap().len(), 2);
    assert_eq!(topics(&output)("sends")["decision"], "set");
}

#[test]
fn the_records_of_the_repository_give_advice_with_their_figures() {
    let home = tempfile::tempdir().unwrap();
    let records = project().join("bench/record");
    let arguments = [records.to_str().unwrap(), "--for", "GenuineIntel-6-167-1", "--json"];
    let output = advise(home.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let of = topics(&output);
    let copies = of("copies");
    assert_eq!(copies["decision"], "set", "{copies}");
    let low = copies["gain"]["ci"][0].as_f64().unwrap();
    assert!(low > 1.0 && !copies["records"].as_array().unwrap().is_empty(), "{copies}");
    // Every piece has figures and a record, or a command, or a reason why there is neither.
    let object = common::json(&common::text(&output.stdout));
    for one in object["advice"].as_array().unwrap() {
        let has_figures = one["gain"]["ratio"].is_f64() && one["records"][0].is_string();
        let is_bare = one["decision"] == "no evidence" || one["decision"] == "not here";
        assert!(has_figures != is_bare, "{one}");
        assert_eq!(one["decision"] == "no evidence", one["measure"].is_array(), "{one}");
    }
}
