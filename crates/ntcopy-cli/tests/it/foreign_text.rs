//! What a record of a stranger says is printed, and obeyed by nothing that prints it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{at_home, good, json, project, text};

/// A title, a colour, both again as C1 controls, a deletion, another direction of writing, a line
/// separator; and lines, a row and a script for those that take a line as it is.
const PUT: &str = "\x1b]0;title\x07\x1b[31m\u{9b}31m\x7f\u{202e}\u{2028}\r\n| forged | 9.99x |\n\
                   forged: row\n<script>alert(1)</script> `code` [a](b)";

/// Names that say which record it is, and without which it is read by no rule.
const KEPT: [&str; 3] = ["type", "experiment", "counts"];
/// Without these in their own words a record has hardly a result.
const MODES: [&str; 2] = ["mode", "baseline"];

fn records() -> Vec<PathBuf> {
    let root = project().join("bench/record");
    let mut all = Vec::new();
    for folder in fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()) {
        let below = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        all.extend(below.filter(|place| place.join("record.jsonl").exists()));
    }
    all.sort();
    let experiment = |place: &PathBuf| {
        let text = fs::read_to_string(place.join("record.jsonl")).unwrap();
        let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        head["experiment"].as_str().unwrap().to_owned()
    };
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|place| seen.insert(experiment(place)));
    assert!(seen.len() > 7, "{seen:?}");
    all
}

/// Adds [`PUT`] to every string, and to every name of a parameter or counter.
fn put(value: &mut Value, name: &str, kept: &[&str]) {
    match value {
        Value::String(text) if !kept.contains(&name) => text.push_str(PUT),
        Value::Array(list) => list.iter_mut().for_each(|value| put(value, name, kept)),
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                // Lists of CPUs and packed histograms have a form; what breaks it is refused.
                if !["topology", "histograms"].contains(&name.as_str()) {
                    put(value, name, kept);
                }
            }
            if ["params", "counters"].contains(&name) {
                map.insert(format!("x{PUT}"), 7.into());
            }
        }
        _ => {}
    }
}

fn forged(folder: &Path, from: &Path, kept: &[&str]) -> PathBuf {
    let text = fs::read_to_string(from.join("record.jsonl")).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let why = serde_json::json!({"type": "unavailable", "mode": "zz", "why": "not here"});
    let error = serde_json::json!(
        {"type": "error", "cell": 0, "mode": "hinted", "what": "failed", "wrong_byte": false});
    let first = lines.iter().position(|line| line["type"] == "sample").unwrap();
    lines.splice(first..first, [why, error]);
    lines.iter_mut().for_each(|line| put(line, "", kept));
    let place = folder.join(from.file_name().unwrap());
    fs::create_dir_all(&place).unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(place.join("record.jsonl"), text).unwrap();
    place
}

/// Runs the program, and holds both its outputs to be obeyed by no terminal.
fn unobeyed(folder: &Path, words: &[&str]) -> Output {
    let mut command = at_home(folder, words);
    let profile = folder.join("profile.toml");
    if profile.exists() {
        command.env("NTCOPY_PROFILE", profile);
    }
    let output = command.output().expect("the program starts");
    for bytes in [&output.stdout, &output.stderr] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(!text.contains(is_obeyed), "{words:?}: {text:?}");
    }
    output
}

fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\n') || ('\u{2028}'..='\u{202e}').contains(&c)
}

/// Likewise, and no line of the record's becomes one of the program's.
fn harmless(folder: &Path, words: &[&str]) -> Output {
    let output = unobeyed(folder, words);
    assert_forges_nothing(&text(&output.stdout));
    assert_forges_nothing(&text(&output.stderr));
    output
}

fn assert_forges_nothing(text: &str) {
    let forged = |line: &&str| line.starts_with("| forged") || line.starts_with("forged: row");
    assert_eq!(text.lines().find(forged), None);
}

fn assert_outputs_are_harmless(kept: &[&str]) {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for from in records() {
        let place = forged(at, &from, kept);
        let place = place.to_str().unwrap();
        for form in [&[][..], &["--markdown"], &["--json"], &["--out", "page.html"]] {
            let output = harmless(at, &[&["report", place][..], form].concat());
            let text = good(&output);
            if form == ["--markdown"] {
                for markup in ["<script", " `code", " [a]("] {
                    assert!(!text.contains(markup), "{markup}: {text}");
                }
            }
        }
        let page = fs::read_to_string(at.join("page.html")).unwrap();
        assert_forges_nothing(&page);
        assert!(!page.contains("<script>alert") && !page.contains(is_obeyed), "page of {place}");
        assert_others_are_harmless(at, place);
    }
}

/// What else reads records.
fn assert_others_are_harmless(at: &Path, place: &str) {
    let signature = {
        let object = json(&good(&harmless(at, &["report", place, "--json"])));
        object["machine"]["cpu_signature"].as_str().unwrap().to_owned()
    };
    let store = at.join("store.sqlite");
    let store = store.to_str().unwrap();
    for words in [
        &["report", place, "--against", place][..],
        &["report", place, "--against", place, "--json"],
        &["report", place, "--against", place, "--out", "/dev/stdout"],
        &["advise", place],
        &["advise", place, "--for", &signature],
        &["survey", "add", place, "--store", store],
        &["survey", "list", "--store", store],
        &["survey", "report", "--store", store],
    ] {
        harmless(at, words);
    }
}

#[test]
fn no_word_and_no_mode_of_a_strangers_record_is_obeyed() {
    assert_outputs_are_harmless(&[&KEPT[..], &MODES].concat());
    assert_outputs_are_harmless(&KEPT);
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_its_words_are_not_obeyed() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join(format!("x{}", PUT.replace('/', "")));
    fs::create_dir_all(&place).unwrap();
    let line = serde_json::json!({"type": format!("header{PUT}")});
    fs::write(place.join("record.jsonl"), format!("{line}\n")).unwrap();
    for words in [&["report", "."][..], &["advise", "."], &["report", ".", "--against", "."]] {
        harmless(folder.path(), words);
    }
}

#[test]
fn counters_of_a_stranger_are_not_obeyed() {
    let folder = TempDir::new().unwrap();
    let counters = "NtcopyBytes 7\nNtcopyHintedBytes 7\nNtcopyBypassedBytes 5\n";
    let stranger = "new\x1b[31m\u{202e}x_bytes 5\n";
    fs::write(folder.path().join("stat"), [counters, stranger].concat()).unwrap();
    for form in [&[][..], &["--json"], &["--prometheus"]] {
        harmless(folder.path(), &[&["stat", "--file", "stat"][..], form].concat());
    }
}

/// Folders, processes and files of somebody else, in the words of commands that read no record.
#[test]
fn no_name_of_a_stranger_is_obeyed() {
    let folder = TempDir::new().unwrap();
    let name = PUT.replace('/', "");
    let at = folder.path().join(&name);
    for (place, text) in [
        ("root/proc/sys/kernel/osrelease", "6.12.1\n"),
        ("root/proc/modules", "ntcopy 1 1 - Live 0x0\n"),
        ("root/sys/module/ntcopy/version", "1\x1b[31m\u{202e}\n"),
        ("root/proc/12/comm", "x\x1b[31m\u{9b}\u{202e}\n"),
        ("profile.toml", "x\x1b[31m = \"\u{202e}\"\n"),
    ] {
        let path = at.join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let fds = at.join("root/proc/12/fd");
    fs::create_dir_all(&fds).unwrap();
    std::os::unix::fs::symlink("/dev/ntcopy", fds.join("3")).unwrap();
    let script = at.join("script");
    fs::write(&script, format!("#!{}\n", at.join("sh").display().to_string().replace('\n', "")))
        .unwrap();
    let there = |place: &str| at.join(place).display().to_string();
    for words in [
        &["module", "status", "--sysroot", &there("root")][..],
        &["module", "status", "--json", "--sysroot", &there("root")],
        &["module", "build", "--sysroot", &there("root"), "--headers", &there("root")],
        &["kernel", "list"],
        &["kernel", "list", "--json"],
        &["run", "--", &there("script")],
        &["run", "--", &there("none")],
        &["probe"],
        &["probe", "--json"],
        &["report", &there("none")],
        &["stat", "--file", &there("none")],
        &["survey", "add", &there("none"), "--store", &there("store")],
        &["survey", "list", "--store", &there("none")],
        &["survey", "list", "--json", "--store", &there("store")],
        &["advise", &there("none")],
    ] {
        let output = unobeyed(&at, words);
        if words.contains(&"--json") && !output.stdout.is_empty() {
            json(&text(&output.stdout));
        }
    }
}
