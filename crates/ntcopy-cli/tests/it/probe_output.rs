//! `ntcopy probe` as a user sees it.

use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{PROGRAM, ntcopy};

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn sections_fit_eighty_columns() {
    let text = text(&ntcopy(&["probe"]));
    for title in ["CPU", "Caches", "Instructions", "C library", "Kernel", "Hardware"] {
        assert!(text.lines().any(|line| line.starts_with(title)), "{title}: {text}");
    }
    // The line that corrects a threshold is left whole, to be copied.
    let lines = text.lines().filter(|line| !line.contains("GLIBC_TUNABLES="));
    for line in lines {
        assert!(line.chars().count() <= 80, "{line:?}");
        assert_eq!(line, line.trim_end());
    }
}

#[test]
fn json_is_one_object_that_agrees_with_the_text() {
    let object: Value = serde_json::from_str(&text(&ntcopy(&["probe", "--json"]))).expect("JSON");
    let text = text(&ntcopy(&["probe"]));
    let signature = object["machine"]["cpu_signature"].as_str().unwrap();
    assert!(text.contains(signature), "{signature}: {text}");
    let knows = object["kernel"]["msg_ntcopy"].as_bool().unwrap();
    let line = text.lines().find(|line| line.contains("MSG_NTCOPY")).unwrap();
    let says = if knows { " yes" } else { " no " };
    assert!(line.contains(says), "{line}");
    let counters = object["machine"]["hardware_counters"].as_array().unwrap();
    let name = |name: &str| counters.iter().find(|counter| counter["name"] == name);
    for counter in ["cycles", "instructions", "llc-misses", "mbm-total-bytes"] {
        let found = name(counter).unwrap_or_else(|| panic!("{counter}: {object}"));
        let says = if found["missing"].is_null() { "counts: " } else { "n/a (" };
        let line = text.lines().find(|line| line.trim_start().starts_with(counter)).unwrap();
        assert!(line.contains(says), "{found}: {line}");
    }
    for warning in object["warnings"].as_array().unwrap() {
        assert!(text.contains("Warning: "), "{warning}");
    }
}

#[test]
fn a_chosen_threshold_is_seen_and_not_warned_of() {
    let mut command = Command::new(PROGRAM);
    let tunables = "glibc.cpu.x86_non_temporal_threshold=1048576";
    command.args(["probe", "--json"]).env("GLIBC_TUNABLES", tunables);
    let object: Value =
        serde_json::from_str(&text(&command.output().expect("the program starts"))).expect("JSON");
    let machine = &object["machine"];
    let is_glibc = machine["libc"].as_str().unwrap().starts_with("glibc");
    if is_glibc && !machine["libc_nt_threshold_bytes"].is_null() {
        assert_eq!(machine["libc_nt_threshold_bytes"], 1 << 20, "{machine}");
        for warning in object["warnings"].as_array().unwrap() {
            assert!(warning["fix"].is_null(), "{warning}");
        }
    }
}
