//! `survey run`: the site's tool is a script here, which is called as the real ones are.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use ntcopy_survey::engine::frame::{PREFIX, write_done, write_record};
use ntcopy_survey::engine::{NodeFacts, Received};
use serde_json::Value;

use super::{at_home, done, json, recorded, run};
use crate::common::signal::{self, Signal};
use crate::common::wait_until;

/// What a node prints that answers by a record of the repository, under an id of its own.
fn frames(folder: &Path, node: &str, code: i32) {
    let raw = fs::read_to_string(Path::new(&recorded("memset")).join("record.jsonl")).unwrap();
    let (header, rest) = raw.split_once('\n').unwrap();
    let mut header = json(header);
    header["id"] = format!("20261127-000000-memset-{node}").into();
    header["started_unix_ns"] = 1_900_000_000_000_000_000_u64.into();
    let raw = format!("{header}\n{rest}").into_bytes();
    let facts = NodeFacts { fleet: "local".into(), node: node.into() };
    let mut out = Vec::new();
    write_record(&mut out, &Received { facts, asked: "memset".into(), code, raw }).unwrap();
    write_done(&mut out).unwrap();
    fs::write(folder.join(format!("{node}.frames")), out).unwrap();
}

/// Calls `tool`, a script that has the node's name as `$1`, for each of the nodes.
fn survey(folder: &Path, tool: &str, nodes: &str, more: &[&str]) -> Command {
    let script = folder.join("tool");
    fs::write(&script, format!("cd {}\necho \"$@\" >>called\n{tool}\n", folder.display())).unwrap();
    let with = format!("sh {} {{node}} {{ntcopy}}", script.display());
    let mut words = vec!["survey", "run", "--with", &with, "--nodes", nodes, "--json"];
    words.extend(["--experiments", "memset"]);
    words.extend(more);
    at_home(folder, &words)
}

fn node<'a>(object: &'a Value, name: &str) -> &'a Value {
    let nodes = object["nodes"].as_array().unwrap();
    nodes.iter().find(|node| node["node"] == name).unwrap_or_else(|| panic!("{name}: {object}"))
}

fn records(folder: &Path) -> usize {
    let listed = json(&run(folder, &["survey", "list", "--json"]));
    listed["records"].as_array().unwrap().len()
}

#[test]
fn nodes_that_answer_are_stored_and_the_others_told_of() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    frames(folder, "n1", 0);
    frames(folder, "n2", 1);
    let text = fs::read_to_string(folder.join("n1.frames")).unwrap();
    // Killed in the middle of its record; and what is no record of ntcopy's.
    let cut: Vec<&str> = text.lines().take(2).collect();
    fs::write(folder.join("n3.frames"), cut.join("\n")).unwrap();
    let garbage = format!("{PREFIX}begin {{\n{PREFIX}data x\n\u{1b}[31m{PREFIX}\n{PREFIX}done\n");
    fs::write(folder.join("n4.frames"), garbage).unwrap();
    // One that answers again and again.
    frames(folder, "n6", 0);
    frames(folder, "more", 0);
    let twice = ["n6.frames", "more.frames"].map(|name| fs::read(folder.join(name)).unwrap());
    fs::write(folder.join("n6.frames"), twice.concat()).unwrap();
    // Its last line comes after its end.
    let last = "(sleep 0.3; echo no such host >&2) >/dev/null &";
    let tool = &format!("echo noise; cat $1.frames || {{ {last} exit 255; }}");
    // The last two are names that a shell would take for two commands, and ssh for an option.
    let nodes = "n1,n2 n3\nn4,n5,n6,n1,x;reboot -oProxyCommand=x";
    let object = json(&done(&survey(folder, tool, nodes, &[]).output().unwrap(), 5));
    assert_eq!(object["nodes"].as_array().unwrap().len(), 8);
    assert_eq!(node(&object, "n6")["records"].as_array().unwrap().len(), 1, "{object}");
    assert_eq!(
        (&node(&object, "n1")["state"], &object["complete"]),
        (&"measured".into(), &false.into())
    );
    for (name, why) in [
        ("n2", "ended with 1"),
        ("n3", "cut short"),
        ("n4", "cannot be read"),
        ("n5", "no such host"),
        ("x;reboot", "may have letters"),
        ("-oProxyCommand=x", "may have letters"),
    ] {
        let node = node(&object, name);
        assert_eq!(node["state"], "failed", "{node}");
        assert!(node["why"].as_str().unwrap().contains(why), "{node}");
    }
    // What failed is kept, and answers nothing.
    assert_eq!(records(folder), 3);
    let called = fs::read_to_string(folder.join("called")).unwrap();
    let measure = "n1 ntcopy survey measure --fleet local --node n1 --experiments memset";
    assert_eq!(called.lines().filter(|line| *line == measure).count(), 1, "{called}");
    assert!(!called.contains("reboot") && !called.contains("Proxy"), "{called}");

    // Again: only what is missing is asked.
    frames(folder, "n5", 0);
    let object = json(&done(&survey(folder, tool, "n1,n5", &[]).output().unwrap(), 0));
    assert_eq!(node(&object, "n1")["state"], "already there");
    assert_eq!(node(&object, "n5")["state"], "measured");
    let called = fs::read_to_string(folder.join("called")).unwrap();
    assert_eq!(called.lines().filter(|line| *line == measure).count(), 1, "{called}");
    assert_eq!(records(folder), 4);
}

/// Ctrl-C: the tools end, and what came stays.
#[test]
fn a_survey_that_is_interrupted_ends_its_tools() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    frames(folder, "n1", 0);
    let tool = "[ $1 = n1 ] || { trap 'echo >$1.end; exit 1' TERM; echo >$1.begun; }
                cat $1.frames && exit; while :; do sleep 0.1; done";
    let mut command = survey(folder, tool, "n1,n2", &[]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().starts_with("n1: measured")));
    wait_until(Some(&mut child), || folder.join("n2.begun").exists());
    signal::send(&child, Signal::INT);
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(folder.join("n2.end").exists());
    assert_eq!(records(folder), 1);
}
