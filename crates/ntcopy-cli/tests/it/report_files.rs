//! `ntcopy report`: from records on disk to files and output.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::store::write;
use crate::common::{stderr, stdout};
use crate::synthetic;

fn report(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
    command.current_dir(folder).arg("report").args(arguments).env("XDG_DATA_HOME", folder);
    command.output().expect("the program starts")
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
        assert_eq!(stdout(&output), "");
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
fn two_records_are_one_page() {
    let folder = with_rounds();
    write(folder.path(), &synthetic::synthetic_published());
    let arguments = ["synthetic-rounds", "synthetic-published", "--out", "/dev/stdout"];
    let page = stdout(&report(folder.path(), &arguments));
    assert!(page.contains("id=\"record-0\"") && page.contains("id=\"record-1\""));
}

#[test]
fn without_an_option_table_and_verdict_are_printed() {
    let folder = with_rounds();
    let text = stdout(&report(folder.path(), &["synthetic-rounds"]));
    assert!(text.contains("in flight") && text.contains("vmsplice"), "{text}");
    assert!(text.contains("every cell wins from 32 MiB in flight on"), "{text}");
}

#[test]
fn without_a_record_the_newest_of_the_store_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let none = report(folder.path(), &[]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("there is no record yet"), "{}", stderr(&none));
    let store = folder.path().join("ntcopy/records");
    write(&store, &synthetic::synthetic_rounds());
    write(&store, &synthetic::synthetic_published());
    let earlier = fs::File::open(store.join("synthetic-published/record.jsonl")).unwrap();
    earlier.set_modified(std::time::UNIX_EPOCH).unwrap();
    let output = report(folder.path(), &[]);
    assert!(stderr(&output).contains("synthetic-rounds"), "{}", stderr(&output));
    assert_eq!(stdout(&output), stdout(&report(&store, &["synthetic-rounds"])));
}

#[test]
fn json_is_the_object_of_the_bench() {
    let folder = with_rounds();
    let text = stdout(&report(folder.path(), &["synthetic-rounds", "--json"]));
    let object: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(object["record"], "synthetic-rounds");
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_no_page_is_left() {
    let folder = with_rounds();
    let output = report(folder.path(), &["synthetic-rounds", "nowhere", "--out", "page.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nowhere"), "{output:?}");
    assert!(!folder.path().join("page.html").exists());
}

#[test]
fn usage_errors_are_two() {
    let folder = with_rounds();
    let record = "synthetic-rounds";
    for arguments in [
        &[record, record, "--markdown"][..],
        &[record, record, "--json"],
        &[record, "--out", "x.html", "--json"],
    ] {
        assert_eq!(report(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error_with_its_name() {
    let folder = with_rounds();
    let output = report(folder.path(), &["synthetic-rounds", "--out", "no/such/page.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no/such/page.html"), "{output:?}");
}

#[test]
fn a_folder_with_records_in_it_stands_for_them() {
    let folder = with_rounds();
    write(folder.path(), &synthetic::synthetic_published());
    let named = stdout(&report(folder.path(), &["synthetic-published", "synthetic-rounds"]));
    assert_eq!(stdout(&report(folder.path(), &["."])), named);
    let output = report(folder.path(), &[".", "--json"]);
    assert_eq!(output.status.code(), Some(2), "two records are not one object");
    assert!(stderr(&output).contains("these are 2"), "{output:?}");
}

#[test]
fn what_the_page_says_first_is_printed_beside_it_line_by_line() {
    let folder = with_rounds();
    let output = report(folder.path(), &["synthetic-rounds", "--out", "page.html"]);
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(lines[0].starts_with("verdict: Hint large sends: "), "{said}");
    assert!(lines[0].ends_with("from 32 MiB in flight on; they lose below"), "{said}");
    let set = "to set:  SO_NTCOPY = 3 in programs with 32 MiB or more in flight on unix sockets";
    assert_eq!(lines[1], set);
    assert!(
        lines[2].starts_with("why:     Obeyed hints (unix sockets) win in every cell"),
        "{said}"
    );
    assert_eq!(lines[3], "page:    page.html");
}
