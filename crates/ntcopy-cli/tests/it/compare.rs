//! `ntcopy report --against`: the text, the object and the page.

use std::fs;

use ntcopy_record::Record;
use tempfile::TempDir;

use crate::common::{ends, good, in_home, json, store::write};
use crate::synthetic;

/// The rounds on another machine, where `nt` moves a tenth more in the same time.
fn elsewhere() -> Record {
    let mut record = synthetic::synthetic_rounds();
    record.header.id = "elsewhere".into();
    record.machine.cpu_model = "SYNTHETIC CPU 9001".into();
    record.machine.libc = "glibc 2.41".into();
    for sample in record.samples.iter_mut().filter(|sample| sample.mode == "hinted") {
        sample.elapsed_ns = sample.elapsed_ns * 10 / 11;
    }
    record
}

fn two() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), &synthetic::synthetic_rounds());
    write(&folder.path().join("b"), &elsewhere());
    folder
}

#[test]
fn what_differs_comes_first_then_the_sentence_then_the_cells_in_every_form() {
    let folder = two();
    let text = good(&in_home(folder.path(), &["report", "a", "--against", "b/elsewhere"]));
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is missing: {text}"));
    let cpu = at("CPU: SYNTHETIC CPU 9000 (AuthenticAMD-26-2-1) in A, SYNTHETIC CPU 9001");
    let libc = at("C library: glibc 2.36 in A, glibc 2.41 in B");
    let said = at("hinted against plain, by throughput, does better in B than in A");
    let cell = at("objects of 1 MiB");
    assert!(cpu < libc && libc < said && said < cell, "{text}");
    assert!(text.contains("vmsplice against plain, by throughput, does as well in B as in A"));
    assert!(text.contains("better in B") && !text.contains("worse in B "), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let said = good(&in_home(folder.path(), &["report", "a", "--against", "b", "--json"]));
    assert!(json(&said)["sentences"][0].as_str().unwrap().contains("1.10x"), "{said}");
    let line = ["report", "a", "--against", "b", "--out", "page.html"];
    assert_eq!(good(&in_home(folder.path(), &line)), "");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    let command = format!("ntcopy {}", line.join(" "));
    for words in ["<!DOCTYPE html>", "does better in B", "SYNTHETIC CPU 9001", &command] {
        assert!(page.contains(words), "{words} is missing");
    }
    assert!(!page.contains("<script"));
}

#[test]
fn sides_without_a_cell_in_common_are_not_available() {
    let folder = two();
    write(&folder.path().join("c"), &synthetic::synthetic_retention());
    let output = in_home(folder.path(), &["report", "a", "--against", "c"]);
    ends(&output, 3, &[]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("Nothing can be compared"));
    fs::create_dir(folder.path().join("empty")).unwrap();
    let output = in_home(folder.path(), &["report", "a", "--against", "empty"]);
    ends(&output, 1, &["no record is left of empty"]);
    ends(&in_home(folder.path(), &["report", "a", "--against"]), 2, &["--against"]);
}
