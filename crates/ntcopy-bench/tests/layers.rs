//! Imports go one way only: between the crates, between this crate's stages, and between the modules
//! of every crate, which are in no circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules of this crate, each with those that it may use.
const MODULES: &[(&str, &[&str])] = &[
    ("tcp", &[]),
    ("alone", &[]),
    ("c_library", &[]),
    ("cpu", &[]),
    ("hardware", &[]),
    ("machine", &["tcp", "hardware", "c_library", "cpu"]),
    ("experiment", &[]),
    ("plan", &["experiment"]),
    ("run", &["hardware", "experiment", "plan"]),
    ("sample", &["plan", "run"]),
    // Each whole in one folder: see `EXPERIMENTS`.
    (
        "experiments",
        &["tcp", "hardware", "c_library", "cpu", "experiment", "plan", "run", "sample"],
    ),
    // Measures for a decision, not for a record.
    ("calibrate", &["experiment", "experiments", "plan", "run", "sample"]),
    // Takes the whole pipeline into another kernel.
    ("guest", &["hardware", "experiment", "experiments", "plan", "machine", "run", "sample"]),
];

/// The folders of `experiments`, each with those that it may use: an experiment, or a family of them.
const EXPERIMENTS: &[(&str, &[&str])] = &[
    ("bulk", &[]),
    ("footprint", &[]),
    ("messages", &[]),
    ("sends", &[]),
    // Turns of programs of the user's.
    ("turns", &[]),
    ("http", &["turns"]),
    ("app", &["http", "turns"]),
];

/// The stages within a folder of `experiments`, where it has them as modules of their own.
const STAGES: [&str; 3] = ["plan", "run", "sample"];

/// The project's crates, each with those of them that it may depend on.
const CRATES: &[(&str, &[&str])] = &[
    ("ntcopy", &[]),
    ("ntcopy-capi", &["ntcopy"]),
    ("ntcopy-preload", &["ntcopy"]),
    ("httpd", &[]),
    ("storaged", &["httpd", "ntcopy"]),
    ("proxyd", &["httpd", "ntcopy"]),
    ("ntcopy-kernel", &["ntcopy", "ntcopy-record"]),
    ("ntcopy-record", &[]),
    ("ntcopy-judge", &["ntcopy-record"]),
    ("ntcopy-inflight", &[]),
    ("ntcopy-bench", &["ntcopy", "ntcopy-kernel", "ntcopy-judge", "ntcopy-record"]),
    ("ntcopy-report", &["ntcopy-judge", "ntcopy-record"]),
    ("ntcopy-survey", &["ntcopy-judge", "ntcopy-record", "ntcopy-report"]),
    (
        "ntcopy-cli",
        &[
            "ntcopy",
            "ntcopy-kernel",
            "ntcopy-judge",
            "ntcopy-record",
            "ntcopy-bench",
            "ntcopy-inflight",
            "ntcopy-report",
            "ntcopy-survey",
            // For its manual pages and its tests alone.
            "proxyd",
            "storaged",
            "xtask",
        ],
    ),
    ("xtask", &["ntcopy-kernel", "ntcopy-judge", "ntcopy-record", "ntcopy-report"]),
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
        for words in paths(&fs::read_to_string(&file).unwrap()) {
            let [first, used, ..] = &words[..] else { continue };
            if first != "crate" {
                continue;
            }
            let fine = *used == module || may.contains(&used.as_str());
            assert!(fine, "{} uses crate::{used}, and may use {may:?}", path.display());
            seen.push(used.clone());
        }
    }
    assert!(seen.iter().any(|used| used == "plan"), "the test sees no imports at all");
}

#[test]
fn an_experiment_uses_those_that_it_may_and_its_stages_those_before_them() {
    let allowed: BTreeMap<&str, &[&str]> = EXPERIMENTS.iter().copied().collect();
    let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let stage = |module: &Module| {
        STAGES.iter().position(|stage| module.get(2).is_some_and(|name| name == stage))
    };
    let mut seen = BTreeSet::new();
    for (module, text) in &modules {
        let ["experiments", folder, ..] = names(module)[..] else { continue };
        let may = allowed.get(folder).unwrap_or_else(|| panic!("{folder} is in no layer"));
        for path in paths(text) {
            let used = target(module, &path, &modules);
            let ["experiments", other, ..] = names(&used)[..] else { continue };
            let which = format!("{} uses {}", module.join("::"), used.join("::"));
            assert!(other == folder || may.contains(&other), "{which}, and may use {may:?}");
            if let (true, Some(its), Some(own)) = (other == folder, stage(&used), stage(module)) {
                assert!(its <= own, "{which}, a later stage");
            }
        }
        seen.insert(folder);
    }
    assert_eq!(seen.len(), EXPERIMENTS.len(), "{seen:?}");
}

fn names(module: &Module) -> Vec<&str> {
    module.iter().map(String::as_str).collect()
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

/// A module by its path in the crate: `run`, `http`, `client`.
type Module = Vec<String>;

/// The words of paths in a text that begin with `crate`, `self` or `super`, groups in braces taken
/// apart.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let end = text[at..].find(';').map_or(text.len(), |end| at + end);
            take_apart(&text[at..end], &mut Vec::new(), &mut found);
        }
    }
    found
}

/// `a::b` and `a::{b, c::d}`, as far as it is a path; gives what is behind it.
fn take_apart<'t>(
    text: &'t str,
    before: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) -> &'t str {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let rest = &text[word.len()..];
    let depth = before.len();
    if !word.is_empty() {
        before.push(word);
    }
    let rest = match rest.strip_prefix("::") {
        Some(group) if group.starts_with('{') => {
            let mut inside = group[1..].trim_start();
            while !inside.is_empty() && !inside.starts_with('}') {
                let behind = take_apart(inside, before, found);
                let behind = behind.strip_prefix(',').unwrap_or(behind).trim_start();
                // What is no path, such as `as` or `*`, ends the group.
                inside = if behind.len() < inside.len() { behind } else { "" };
            }
            inside.strip_prefix('}').unwrap_or(inside)
        }
        Some(path) => take_apart(path, before, found),
        None => {
            found.push(before.clone());
            rest
        }
    };
    before.truncate(depth);
    rest
}

/// The modules of a crate, by their files, each with its text: no comments, and no tests.
fn modules(root: &Path) -> BTreeMap<Module, String> {
    let mut files = Vec::new();
    sources(root, &mut files);
    let mut modules = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap().with_extension("");
        let mut module: Module =
            path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if module.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
            module.pop();
        }
        if module.last().is_some_and(|name| name == "tests" || name.ends_with("_tests")) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        modules.insert(module, lines.collect::<Vec<&str>>().join("\n"));
    }
    modules
}

/// The module that a path leads to from another one: the longest beginning of it that is one. A
/// name that a module only passes on (`pub use child::Name`) leads to the child.
fn target(from: &Module, path: &[String], modules: &BTreeMap<Module, String>) -> Module {
    let mut at = from.clone();
    let mut words = path.iter().peekable();
    match words.next().map(String::as_str) {
        Some("crate") => at.clear(),
        Some("super") => {
            at.pop();
        }
        _ => {}
    }
    while words.next_if(|word| *word == "super").is_some() {
        at.pop();
    }
    for word in words {
        let mut next = at.clone();
        next.push(word.clone());
        if modules.contains_key(&next) {
            at = next;
            continue;
        }
        let text = modules.get(&at).map(String::as_str).unwrap_or_default();
        let passed_on = text.lines().filter_map(|line| {
            let line = line.trim_start().strip_prefix("pub")?;
            let (_, of) = line.split_once("use ")?;
            let child = of.trim_start_matches("self::").split("::").next()?;
            let names = of.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            names.skip(1).any(|name| name == word).then(|| child.to_owned())
        });
        for child in passed_on {
            let mut next = at.clone();
            next.push(child);
            if modules.contains_key(&next) {
                return next;
            }
        }
        break;
    }
    at
}

/// The circles of a crate: for each folder, the modules in it that need each other.
fn circles(root: &Path) -> Vec<(String, Vec<String>)> {
    let modules = modules(root);
    let mut needs: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, text) in &modules {
        for path in paths(text) {
            let used = target(module, &path, &modules);
            let common = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            // What is above a module, or below it, is of the same kin and in no circle.
            if let (Some(from), Some(to)) = (module.get(common), used.get(common)) {
                let folder = needs.entry(module[..common].to_vec()).or_default();
                folder.entry(from.clone()).or_default().insert(to.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (folder, needs) in &needs {
        let reached = |from: &String| {
            let (mut reached, mut next) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = next.pop() {
                for to in needs.get(&module).into_iter().flatten() {
                    if reached.insert(to.clone()) {
                        next.push(to.clone());
                    }
                }
            }
            reached
        };
        let reached: BTreeMap<&String, BTreeSet<String>> =
            needs.keys().map(|module| (module, reached(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, all) in reached.iter().filter(|(module, all)| all.contains(**module)) {
            let also =
                |other: &&String| reached.get(other).is_some_and(|all| all.contains(*module));
            circles.insert(all.iter().filter(also).cloned().collect::<Vec<String>>());
        }
        found.extend(circles.into_iter().map(|circle| (folder.join("::"), circle)));
    }
    found
}

#[test]
fn modules_are_in_no_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, _) in CRATES {
        let circles = circles(&crates.join(name).join("src"));
        assert!(
            circles.is_empty(),
            "{name}: folders, and modules in them that need each other: \
                 {circles:?}"
        );
    }
}

#[test]
fn groups_are_taken_apart_and_a_circle_is_found() {
    let words =
        |text: &str| -> Vec<String> { paths(text).iter().map(|path| path.join("::")).collect() };
    assert_eq!(words("use crate::plan::Plan; my_crate::run"), ["crate::plan::Plan"]);
    assert_eq!(words("use super::{a::B, c};"), ["super::a::B", "super::c"]);
    assert_eq!(
        words("use crate::x::{self, y::{Z, w}};"),
        ["crate::x::self", "crate::x::y::Z", "crate::x::y::w"]
    );
    let folder = std::env::temp_dir().join(format!("ntcopy-layers-{}", std::process::id()));
    fs::create_dir_all(folder.join("room")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    write("lib.rs", "mod room;\n");
    write("room.rs", "mod a;\nmod b;\npub use a::Thing;\n");
    write("room/a.rs", "use super::b;\npub struct Thing;\n");
    write("room/b.rs", "use super::Thing;\n");
    let found = circles(&folder);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found, [("room".to_owned(), vec!["a".to_owned(), "b".to_owned()])]);
}
