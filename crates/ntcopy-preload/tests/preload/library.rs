//! The file itself: what it brings into other people's programs, and what it must not.

use std::fs;
use std::process::Command;

use crate::built::{crate_dir, library, run};

/// The functions that the map names.
fn map() -> Vec<String> {
    let text = fs::read_to_string(crate_dir().join("libntcopy-preload.map")).expect("the map");
    let names = text.lines().skip_while(|line| *line != "global:").skip(1);
    names
        .take_while(|line| *line != "local:")
        .map(|line| line.trim().trim_end_matches(';').to_owned())
        .collect()
}

fn symbols(arguments: &[&str]) -> Vec<String> {
    let listed = run(Command::new("nm").args(arguments).arg(library()));
    listed.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[test]
fn it_stands_in_for_the_functions_of_the_map_and_no_others() {
    let mut names = map();
    names.sort();
    let mut found = symbols(&["-D", "--defined-only"]);
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn every_other_name_that_the_c_library_has_for_these_functions_is_taken_too() {
    // Names at the address of one that is stood in for, which programs may bind to.
    let c_library = run(Command::new("cc").arg("-print-file-name=libc.so.6"));
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(c_library.trim()));
    let symbols: Vec<(&str, &str, &str)> = listed
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (address, _, name) = (words.next()?, words.next()?, words.next()?);
            let (name, version) = name.split_once('@')?;
            Some((address, name, version.trim_start_matches('@')))
        })
        .collect();
    let names = map();
    for (address, name, _) in &symbols {
        if !names.iter().any(|taken| taken == name) {
            continue;
        }
        for (_, other, version) in symbols.iter().filter(|(there, ..)| there == address) {
            let is_taken = names.iter().any(|taken| taken == other);
            assert!(is_taken || *version == "GLIBC_PRIVATE", "{other} is another name of {name}");
        }
    }
    assert!(symbols.iter().any(|(_, name, _)| *name == "__send"), "nothing was compared");
}

#[test]
fn it_needs_the_c_library_and_of_that_no_memory_and_no_locks() {
    let dynamic = run(Command::new("readelf").arg("-d").arg(library()));
    let needed: Vec<&str> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(needed.len() == 1 && needed[0].contains("[libc.so.6]"), "{dynamic}");
    assert!(dynamic.contains("BIND_NOW") && dynamic.contains("NODELETE"), "{dynamic}");
    let program_headers = run(Command::new("readelf").arg("-lW").arg(library()));
    assert!(!program_headers.contains(" TLS "), "{program_headers}");

    let wanted = symbols(&["-D", "--undefined-only"]);
    for name in &wanted {
        let bare = name.split('@').next().unwrap_or_default();
        let known = [
            // Asked by the constructor alone.
            "dlsym",
            "getauxval",
            "environ",
            "__environ",
            "strlen",
            "__errno_location",
            // What gcc links into every shared library, and copies of structures.
            "__cxa_finalize",
            "__gmon_start__",
            "_ITM_deregisterTMCloneTable",
            "_ITM_registerTMCloneTable",
            "memcpy",
            "memset",
        ];
        assert!(known.contains(&bare), "{name} is new: may it be called in a signal handler?");
    }
    let all = symbols(&["--defined-only"]);
    assert!(!all.iter().any(|name| name.contains("panic")), "{all:?}");
}
