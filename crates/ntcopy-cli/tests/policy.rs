//! What the adaptive mode decides, in the program of `kernel/policy`: the kernel's own code beside
//! made-up caches, and whether its tests notice when that code is broken.

use std::path::Path;
use std::process::Command;

/// Runs a target of `kernel/policy`'s makefile, and gives what it printed.
fn make(target: &str) -> String {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernel/policy");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("policy-{target}"));
    let output = Command::new("make")
        .arg("-C")
        .arg(policy)
        .arg(format!("OUT={}", out.display()))
        .arg(target)
        .output()
        .expect("make can be run");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}\n{complained}", output.status);
    said
}

#[test]
fn each_decision_is_the_one_that_the_costs_ask_for() {
    let said = make("check");
    let passed = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!(passed, 15, "{said}");
}

#[test]
fn a_broken_policy_is_noticed() {
    let said = make("mutations");
    assert!(said.contains("17 mutations caught, 0 not"), "{said}");
}
