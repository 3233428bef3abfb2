//! Imports go one way only: between the crates, and between this crate's stages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules of this crate, each with those that it may use.
const MODULES: &[(&str, &[&str])] = &[
    ("tcp", &[]),
    ("hardware", &[]),
    ("machine", &["tcp", "hardware"]),
    ("experiment", &[]),
    ("plan", &["experiment"]),
    ("run", &["tcp", "hardware", "experiment", "plan"]),
    // In the place of `run`, with the feature `fake-lanes`.
    ("fake", &["hardware", "experiment", "plan"]),
    ("sample", &["tcp", "experiment", "plan", "run"]),
    // Measures for a decision, not for a record.
    ("calibrate", &["experiment", "plan", "run", "sample"]),
    // Whole in a folder each.
    ("experiments", &["hardware", "experiment", "plan", "run", "sample"]),
    // Takes the whole pipeline into another kernel.
    ("guest", &["hardware", "experiment", "plan", "machine", "run", "sample"]),
];

/// The project's crates, each with those of them that it may depend on.
const CRATES: &[(&str, &[&str])] = &[
    ("ntcopy", &[]),
    ("ntcopy-capi", &["ntcopy"]),
    ("ntcopy-preload", &["ntcopy"]),
    ("storaged", &["ntcopy"]),
    ("proxyd", &["ntcopy"]),
    ("ntcopy-kernel", &[]),
    ("ntcopy-record", &[]),
    ("ntcopy-bench", &["ntcopy", "ntcopy-kernel", "ntcopy-record"]),
    ("ntcopy-report", &["ntcopy-record"]),
    ("ntcopy-survey", &["ntcopy-record", "ntcopy-report"]),
    (
        "ntcopy-cli",
        &[
            "ntcopy",
            "ntcopy-kernel",
            "ntcopy-record",
            "ntcopy-bench",
            "ntcopy-report",
            "ntcopy-survey",
        ],
    ),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The modules of the crate that a source file names.
fn named(text: &str) -> Vec<String> {
    text.match_indices("crate::")
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .map(|(at, path)| {
            let rest = &text[at + path.len()..];
            rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        })
        .collect()
}

#[test]
fn a_stage_uses_only_the_stages_before_it() {
    let allowed: BTreeMap<&str, &[&str]> = MODULES.iter().copied().collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut seen = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap();
        let first = path.components().next().unwrap();
        let module = Path::new(first.as_os_str()).file_stem().unwrap().to_str().unwrap();
        if module == "lib" {
            continue;
        }
        let may = allowed.get(module).unwrap_or_else(|| panic!("{module} is in no layer"));
        for used in named(&fs::read_to_string(&file).unwrap()) {
            // An empty name is a group, `crate::{...}`, which this test could not follow.
            let fine = used == module || may.contains(&used.as_str());
            assert!(fine, "{} uses crate::{used}, and may use {may:?}", path.display());
            seen.push(used);
        }
    }
    assert!(seen.iter().any(|used| used == "plan"), "the test sees no imports at all");
}

#[test]
fn crates_depend_downwards_only() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert_eq!(packages.len(), CRATES.len(), "every crate of the workspace is in a layer");
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let may = CRATES.iter().find(|(crate_name, _)| *crate_name == name);
        let (_, may) = may.unwrap_or_else(|| panic!("{name} is in no layer"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let ours = CRATES.iter().any(|(crate_name, _)| *crate_name == used);
            assert!(!ours || may.contains(&used), "{name} depends on {used}");
        }
    }
}

#[test]
fn names_are_found_and_other_crates_are_not() {
    assert_eq!(named("use crate::plan::Plan; super::x; my_crate::run"), ["plan"]);
    assert_eq!(named("use crate::{plan, run};"), [""]);
}
