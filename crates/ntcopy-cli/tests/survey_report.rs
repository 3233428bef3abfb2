//! `ntcopy survey report` over a generated fleet in a store.

#[path = "../../ntcopy-survey/tests/generated/mod.rs"]
mod generated;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use generated::{Fleet, Size};
use ntcopy_record::{Line, Record};
use ntcopy_survey::store::{Entry, Place, Store};
use serde_json::Value;
use tempfile::TempDir;

const FEW: Size = Size { models: 8, machines: 100, carriers: 3 };

fn ntcopy(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ntcopy"))
        .current_dir(folder)
        .env_remove("NTCOPY_SURVEY_STORE")
        .args(["survey", "report", "--store", "survey.sqlite"])
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn raw(record: &Record) -> Vec<u8> {
    let lines =
        [Line::Header(record.header.clone()), Line::Machine(Box::new(record.machine.clone()))]
            .into_iter()
            .chain(record.cells.iter().cloned().map(Line::Cell))
            .chain(record.samples.iter().cloned().map(Line::Sample));
    let text: String = lines.map(|line| serde_json::to_string(&line).unwrap() + "\n").collect();
    text.into_bytes()
}

/// A folder with a store of 400 records in it.
fn surveyed() -> (TempDir, Fleet) {
    let folder = tempfile::tempdir().unwrap();
    let fleet = Fleet::new(FEW, 5);
    let entries: Vec<Entry> = (0..fleet.records())
        .map(|number| Entry {
            summary: fleet.summary(number),
            fleet: Some("synthetic".into()),
            asked: None,
            raw: raw(&fleet.record(number)),
        })
        .collect();
    let place = Place::Sqlite(folder.path().join("survey.sqlite"));
    Store::open(&place).unwrap().insert(&entries).unwrap();
    (folder, fleet)
}

#[test]
fn text_object_and_page_name_the_carriers() {
    let (folder, fleet) = surveyed();
    let text = stdout(&ntcopy(folder.path(), &[]));
    assert!(text.starts_with("400 records of 100 machines, 8 CPU models."), "{text}");
    let object: Value = serde_json::from_str(&stdout(&ntcopy(folder.path(), &["--json"]))).unwrap();
    assert_eq!(stdout(&ntcopy(folder.path(), &["--out", "page.html"])), "");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("ntcopy survey report --store survey.sqlite --out page.html"));
    let unlike = object["unlike"].as_array().unwrap();
    assert!(unlike.len() >= 2, "{unlike:?}");
    for one in unlike {
        let node = one["node"].as_str().unwrap();
        assert!(text.contains(node) && page.contains(node), "{node}");
        let is_carrier = |id: &str| fleet.carriers.iter().any(|one| one.machine.0 == id);
        assert!(is_carrier(one["machine"].as_str().unwrap()), "{one}");
    }
}

#[test]
fn one_fleet_and_one_model_can_be_asked_for() {
    let (folder, fleet) = surveyed();
    let signature = &fleet.models[4].signature;
    let arguments = ["--json", "--fleet", "synthetic", "--model", signature];
    let object: Value = serde_json::from_str(&stdout(&ntcopy(folder.path(), &arguments))).unwrap();
    let models = object["models"].as_array().unwrap();
    assert_eq!((models.len(), models[0]["signature"].as_str()), (1, Some(signature.as_str())));
    let output = ntcopy(folder.path(), &["--model", "None-0-0-0"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains(signature.as_str()), "{}", stderr(&output));
    let output = ntcopy(folder.path(), &["--fleet", "another"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    fs::remove_file(folder.path().join("survey.sqlite")).unwrap();
    let output = ntcopy(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!folder.path().join("survey.sqlite").exists(), "a report makes no store");
}

#[test]
fn drop_ins_lie_in_a_folder_a_model_and_never_in_the_system() {
    let (folder, _) = surveyed();
    let arguments = ["--json", "--drop-ins", "out/advice"];
    let object: Value = serde_json::from_str(&stdout(&ntcopy(folder.path(), &arguments))).unwrap();
    let mut files = 0;
    for model in object["drop_ins"].as_array().unwrap() {
        for file in model["files"].as_array().unwrap() {
            let path = file["file"].as_str().unwrap();
            assert!(path.contains(model["signature"].as_str().unwrap()), "{path}");
            let text = fs::read_to_string(path).unwrap();
            assert!(text.starts_with("# Written by ntcopy advise."), "{text}");
            files += 1;
        }
    }
    assert!(files > 0, "no model wants anything: {object}");
    assert!(object["models"][0]["advice"]["pieces"].is_array());
    let text = stdout(&ntcopy(folder.path(), &["--drop-ins", "out/advice"]));
    assert!(text.contains("Wants, over ") && text.contains("Written, and read by nothing"));
    let output = ntcopy(folder.path(), &["--drop-ins", "/etc"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("--drop-ins /etc"), "{}", stderr(&output));
}
