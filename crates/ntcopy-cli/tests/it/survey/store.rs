//! Into a store and out of it.

use std::fs;
use std::process::Stdio;

use super::{at_home, done, ends, in_home, json, recorded, run};

#[test]
fn records_go_in_once_and_come_out_as_they_were() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    let (memset, pages) = (recorded("memset"), recorded("pages"));
    let added = run(folder, &["survey", "add", &memset, &pages, "--node", "web7", "--json"]);
    let added = json(&added);
    assert_eq!((added["new"].as_u64(), added["known"].as_u64()), (Some(2), Some(0)));
    let again = run(folder, &["survey", "add", &memset, "--node", "web7"]);
    assert!(again.starts_with("0 new, 1 there already"), "{again}");
    let listed = json(&run(folder, &["survey", "list", "--json"]));
    let records = listed["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|one| one["node"] == "web7" && one["not_counted"].is_null()));
    assert!(run(folder, &["survey", "list"]).contains("local/web7"));
    let out = folder.join("out");
    let out_text = out.display().to_string();
    assert!(run(folder, &["survey", "export", "--out", &out_text]).starts_with("2 written"));
    assert!(run(folder, &["survey", "export", "--out", &out_text]).starts_with("0 written, 2"));
    for (record, source) in records.iter().zip([&memset, &pages]) {
        let id = record["record"].as_str().unwrap();
        let exported = fs::read(out.join("local/web7").join(id).join("record.jsonl")).unwrap();
        assert!(exported == fs::read(format!("{source}/record.jsonl")).unwrap(), "{id}");
    }
}

#[test]
fn several_programs_add_to_a_new_store_at_once() {
    let home = tempfile::tempdir().unwrap();
    let names = ["memset", "order", "module", "udp-gso", "published"];
    let places: Vec<String> = names.iter().map(|name| recorded(name)).collect();
    let children: Vec<_> = (0..4)
        .map(|first| {
            let mut words = vec!["survey", "add"];
            words.extend((0..4).map(|at| places[(first + at) % places.len()].as_str()));
            let mut command = at_home(home.path(), &words);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        done(&child.wait_with_output().unwrap(), 0);
    }
    let listed = json(&run(home.path(), &["survey", "list", "--json"]));
    assert_eq!(listed["records"].as_array().unwrap().len(), names.len());
}

#[test]
fn what_is_no_record_is_told_of_and_the_rest_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let wrong = home.path().join("wrong.jsonl");
    fs::write(&wrong, "{\"type\":\"end\"}\n").unwrap();
    let (wrong, memset) = (wrong.display().to_string(), recorded("memset"));
    let output = in_home(home.path(), &["survey", "add", &wrong, &memset]);
    assert!(done(&output, 1).starts_with("1 new"));
    ends(&output, 1, &["wrong.jsonl:1"]);
}

#[test]
fn a_postgres_url_is_refused_and_its_password_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let url = "postgresql://me:s3cret@db/survey";
    let output = at_home(home.path(), &["survey", "list"]).env("NTCOPY_SURVEY_STORE", url).output();
    let said = ends(&output.unwrap(), 1, &["SQLite file"]);
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn the_report_is_text_an_object_and_a_page() {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), &["survey", "add", &recorded("memset"), "--node", "web7"]);
    assert!(run(home.path(), &["survey", "report"]).starts_with("1 record of 1 machine, 1 CPU"));
    let object = json(&run(home.path(), &["survey", "report", "--json"]));
    let signature = object["models"][0]["signature"].as_str().unwrap();
    assert!(object["models"][0]["series"][0]["points"][0]["median"].is_f64(), "{object}");
    let page = home.path().join("page.html").display().to_string();
    run(home.path(), &["survey", "report", "--out", &page]);
    assert!(fs::read_to_string(&page).unwrap().contains(signature));
    let words = ["survey", "report", "--fleet", "another"];
    done(&in_home(home.path(), &words), 3);
}

#[test]
fn a_list_of_no_store_says_what_makes_one() {
    let home = tempfile::tempdir().unwrap();
    ends(&in_home(home.path(), &["survey", "list"]), 1, &["ntcopy survey add"]);
}

/// A node measures for real, and its record arrives.
#[test]
fn a_node_measures_and_its_record_arrives() {
    let home = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_ntcopy");
    let words = ["survey", "run", "--with", "env ON={node} {ntcopy}", "--ntcopy", program];
    let ask = ["--nodes", "n1", "--fleet", "f", "--quick", "--experiments", "memset"];
    run(home.path(), &[&words[..], &ask].concat());
    let listed = json(&run(home.path(), &["survey", "list", "--json"]));
    let one = &listed["records"][0];
    assert_eq!((&one["node"], &one["fleet"]), (&"n1".into(), &"f".into()));
    assert_eq!(one["asked"], "memset --quick");
    // Other tests measure at the same time.
    let reason = one["not_counted"].as_str();
    assert!(reason.is_none_or(|reason| reason.starts_with("another ntcopy measured")), "{one}");
}

/// A kernel that is not there is an experiment that fails, said by the node.
#[test]
fn an_experiment_that_cannot_be_is_told_of() {
    let home = tempfile::tempdir().unwrap();
    let words = ["survey", "measure", "--kernel", "none-such", "--experiments", "unix"];
    let output = in_home(home.path(), &words);
    let said = done(&output, 1);
    assert!(said.contains("failed") && said.contains("none-such"), "{said}");
}
