//! `ntcopy report`: from records on disk to files and output.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::common::store::{here, write};
use crate::common::{ends, good, in_home, json, stderr};
use crate::synthetic;

fn report(folder: &Path, arguments: &[&str]) -> Output {
    in_home(folder, &[&["report"], arguments].concat())
}

fn with_rounds() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &synthetic::synthetic_rounds());
    folder
}

#[test]
fn a_directory_and_its_file_are_the_same_record_and_make_the_same_page() {
    let folder = with_rounds();
    let at = folder.path();
    // The page states its command, which names what it was given.
    let page = |record: &str| {
        let output = report(at, &[record, "--out", "page.html"]);
        assert_eq!(good(&output), "");
        let page = fs::read_to_string(at.join("page.html")).unwrap();
        let command = format!("ntcopy report {record} --out page.html");
        assert_eq!(page.matches(&command).count(), 1, "{command}");
        page.replace(&command, "")
    };
    let first = page("synthetic-rounds");
    assert!(first.starts_with("<!DOCTYPE html>"));
    assert_eq!(first, page("synthetic-rounds/record.jsonl"));
    let mode = fs::metadata(at.join("page.html")).unwrap().permissions().mode();
    assert_ne!(mode & 0o044, 0, "others may read a page: {mode:o}");
}

#[test]
fn without_a_record_those_of_this_cpu_in_the_store_are_taken_as_advise_takes_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let store = at.join(".local/share/ntcopy/records");
    // Of another machine.
    write(&store, &synthetic::synthetic_published());
    ends(&report(at, &[]), 1, &["0 records of this CPU ("]);
    let mut sweep = here(synthetic::synthetic_sweep());
    sweep.header.started_unix_ns += 1;
    write(&store, &sweep);
    write(&store, &here(synthetic::synthetic_rounds()));
    // What lies in the current folder is nothing to either.
    let mut foreign = here(synthetic::synthetic_retention());
    foreign.header.id = "in-the-current-folder".into();
    write(&at.join("bench/record"), &foreign);
    let output = report(at, &[]);
    let origin = "2 records of this CPU (";
    assert!(
        stderr(&output).contains(origin) && stderr(&output).contains("; 1 more "),
        "{output:?}"
    );
    let named = ["synthetic-sweep", "synthetic-rounds"].map(|name| store.join(name));
    let named = named.each_ref().map(|place| place.to_str().unwrap());
    assert_eq!(good(&output), good(&report(at, &named)), "the newest first");
    let newest = good(&report(at, &["--json"]));
    assert!(newest.contains("\"record\": \"synthetic-sweep\""), "the newest alone");

    let page = report(at, &["--out", "page.html"]);
    let verdict =
        stderr(&page).lines().find(|line| line.starts_with("verdict: ")).map(str::to_owned);
    let advised = good(&in_home(at, &["advise"]));
    let in_one_line = advised.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(in_one_line.contains(&verdict.unwrap()), "{advised}");
    assert!(advised.contains(origin), "{advised}");
}

#[test]
fn a_record_is_a_table_with_its_verdict_or_the_object_of_the_bench() {
    let folder = with_rounds();
    let text = good(&report(folder.path(), &["synthetic-rounds"]));
    assert!(text.contains("in flight") && text.contains("vmsplice"), "{text}");
    assert!(text.contains("every cell wins from 32 MiB in flight on"), "{text}");
    let object = json(&good(&report(folder.path(), &["synthetic-rounds", "--json"])));
    assert_eq!(object["record"], "synthetic-rounds");
}

#[test]
fn what_cannot_be_read_or_written_is_named_and_no_page_is_left() {
    let folder = with_rounds();
    for (places, named) in [
        (&["synthetic-rounds", "nowhere", "--out", "page.html"][..], "nowhere"),
        (&["synthetic-rounds", "--out", "no/such/page.html"], "no/such/page.html"),
    ] {
        ends(&report(folder.path(), places), 1, &[named]);
    }
    assert!(!folder.path().join("page.html").exists());
}

#[test]
fn what_is_no_record_is_named_once_with_the_reason_and_the_rest_is_reported() {
    let folder = with_rounds();
    let at = folder.path();
    fs::create_dir(at.join("foreign")).unwrap();
    fs::write(at.join("foreign/record.jsonl"), "{\"a\": 1}\n").unwrap();
    let output = report(at, &["."]);
    assert_eq!(good(&output), good(&report(at, &["synthetic-rounds"])));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("ntcopy: left out: ./foreign/record.jsonl:1: "), "{said}");
    ends(&report(at, &["foreign"]), 1, &[]);
    let said = ends(&report(at, &["nope"]), 1, &[]);
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}

#[test]
fn a_folder_with_records_in_it_stands_for_them() {
    let folder = with_rounds();
    write(folder.path(), &synthetic::synthetic_published());
    let named = good(&report(folder.path(), &["synthetic-published", "synthetic-rounds"]));
    assert_eq!(good(&report(folder.path(), &["."])), named);
    // Two records are not one object.
    ends(&report(folder.path(), &[".", "--json"]), 2, &["these are 2"]);
}

#[test]
fn what_the_page_says_first_is_printed_beside_it_line_by_line() {
    let folder = with_rounds();
    let output = report(folder.path(), &["synthetic-rounds", "--out", "page.html"]);
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 6, "{said}");
    assert!(lines[0].starts_with("verdict: Leave hints off here: 0.97x"), "{said}");
    assert_eq!(lines[1], "to set:  nothing");
    assert!(lines[2].starts_with("why:     Out of more data than the caches hold"), "{said}");
    assert!(lines[3].starts_with("beside:  Patches alone not measured; the hint on top"), "{said}");
    assert!(
        lines[4].starts_with("beside:  Plain sends relative to plain ones of other turns"),
        "{said}"
    );
    assert_eq!(lines[5], "page:    page.html");
}
