//! What was released stays: `packaging/abi/` has a folder for each release, and docs/design/versioning.md
//! the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compilers::GCC;
use crate::installed::{crate_dir, prefix, run};

/// Major and minor number of this version.
const THIS: (u32, u32) =
    (number(env!("CARGO_PKG_VERSION_MAJOR")), number(env!("CARGO_PKG_VERSION_MINOR")));

const fn number(text: &str) -> u32 {
    match u32::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("cargo's versions are numbers"),
    }
}

/// The folders of all releases, oldest first, with major and minor number.
fn releases() -> Vec<((u32, u32), PathBuf)> {
    let folder = crate_dir().join("../../packaging/abi");
    let mut releases: Vec<_> = fs::read_dir(folder)
        .expect("packaging/abi")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let numbers: Vec<u32> = name.split('.').map(number).collect();
            ((numbers[0], numbers[1]), path)
        })
        .collect();
    releases.sort();
    assert!(!releases.is_empty(), "a release to compare with");
    releases
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The symbols of the library as it is, `name@@VERSION`.
fn symbols_now() -> BTreeSet<String> {
    let listed = run(Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions"])
        .arg(prefix().join("lib/libntcopy.so")));
    let symbols = listed.lines().filter(|line| !line.contains(" A "));
    symbols.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

/// What a program that was linked with a release would miss now, and what has been slipped into a
/// version of symbols that was complete with that release.
fn symbol_mistakes(then: &BTreeSet<String>, now: &BTreeSet<String>, is_past: bool) -> Vec<String> {
    let version = |symbol: &String| symbol.rsplit('@').next().unwrap_or_default().to_owned();
    let versions: BTreeSet<_> = then.iter().map(version).collect();
    let gone = then.difference(now).map(|symbol| format!("{symbol} is gone"));
    let late = now
        .difference(then)
        .filter(|symbol| is_past && versions.contains(&version(symbol)))
        .map(|symbol| format!("{symbol} is new, and wants a version of its own"));
    gone.chain(late).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn programs_of_every_release_with_this_soname_find_their_symbols() {
    let now = symbols_now();
    for (release, folder) in releases().into_iter().filter(|(release, _)| release.0 == THIS.0) {
        let text = read(&folder.join("libntcopy.symbols"));
        let then: BTreeSet<_> = text.lines().map(str::to_owned).collect();
        assert!(then.len() > 20, "{}", folder.display());
        let mistakes = symbol_mistakes(&then, &now, release < THIS);
        assert_eq!(mistakes, [""; 0], "{}: docs/design/versioning.md", folder.display());
    }
}

#[test]
fn a_symbol_that_goes_or_comes_late_is_noticed() {
    let then = set(&["ntcopy_a@@NTCOPY_0.1", "ntcopy_b@@NTCOPY_0.1"]);
    let same = symbol_mistakes(&then, &then, true);
    assert_eq!(same, [""; 0]);
    let gone = symbol_mistakes(&then, &set(&["ntcopy_a@@NTCOPY_0.1"]), true);
    assert_eq!(gone, ["ntcopy_b@@NTCOPY_0.1 is gone"]);
    let moved = set(&["ntcopy_a@@NTCOPY_0.1", "ntcopy_b@@NTCOPY_0.2"]);
    assert_eq!(symbol_mistakes(&then, &moved, true), ["ntcopy_b@@NTCOPY_0.1 is gone"]);
    let mut late = then.clone();
    late.insert("ntcopy_c@@NTCOPY_0.2".into());
    assert_eq!(symbol_mistakes(&then, &late, true), [""; 0]);
    late.insert("ntcopy_d@@NTCOPY_0.1".into());
    assert_eq!(
        symbol_mistakes(&then, &late, true),
        ["ntcopy_d@@NTCOPY_0.1 is new, and wants a version of its own"]
    );
    assert_eq!(symbol_mistakes(&then, &late, false), [""; 0], "until that release is out");
}

/// Compiles what the header of a release declared, beside today's.
fn compiles_beside_today(source: &Path) -> Result<(), String> {
    let mut command = GCC.command("-std=c11");
    let output = command.args(["-fsyntax-only", "-xc"]).arg(source).output().expect("gcc");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn declarations_of_every_release_with_this_soname_hold() {
    for (_, folder) in releases().into_iter().filter(|(release, _)| release.0 == THIS.0) {
        let source = folder.join("libntcopy.c");
        compiles_beside_today(&source).unwrap_or_else(|words| panic!("{words}"));
    }
}

#[test]
fn a_declaration_that_was_changed_is_noticed() {
    let (_, folder) = releases().remove(0);
    let text = read(&folder.join("libntcopy.c"));
    for (then, now) in [
        ("int ntcopy_copy(void *dst", "long ntcopy_copy(void *dst"),
        ("NTCOPY_DST_TEMPORAL == 4", "NTCOPY_DST_TEMPORAL == 3"),
        ("sizeof(struct ntcopy_moved) == 16", "sizeof(struct ntcopy_moved) == 24"),
    ] {
        let changed = text.replacen(then, now, 1);
        assert_ne!(changed, text, "there is a '{then}'");
        let source = crate::installed::scratch("released").join("changed.c");
        fs::write(&source, changed).unwrap();
        compiles_beside_today(&source).expect_err("the compiler complains");
    }
}

/// What a header of the kernel's interface defines: numbers by name, structures by `struct name`.
fn interface(header: &str) -> BTreeMap<String, String> {
    let mut text = String::new();
    let mut rest = header;
    while let Some((code, comment)) = rest.split_once("/*") {
        text.push_str(code);
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    text.push_str(rest);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((name, value)) =
            line.strip_prefix("#define ").and_then(|rest| rest.split_once(char::is_whitespace))
        else {
            continue;
        };
        found.insert(name.to_owned(), words(value));
    }
    for part in text.split("\nstruct ").skip(1) {
        let (name, body) = part.split_once('{').expect("a structure has a body");
        let (body, _) = body.split_once("};").expect("a structure ends");
        found.insert(format!("struct {}", name.trim()), words(body));
    }
    found
}

/// What 0.2 withdrew of 0.1's interface, which no kernel but the project's own had:
/// docs/design/versioning.md.
const WITHDRAWN_IN_0_2: [&str; 14] = [
    "NTCOPY_SOCK_NONE",
    "NTCOPY_SOCK_FLAGGED",
    "NTCOPY_SOCK_EVERY",
    "NTCOPY_SOCK_OBEY",
    "NTCOPY_SYSCTL_RULE",
    "NTCOPY_SYSCTL_OBEY",
    "NTCOPY_SYSCTL_ALL",
    "NTCOPY_STAT_PATH",
    "NTCOPY_STAT_NONTEMPORAL",
    "NTCOPY_STAT_FITS_CACHE",
    "NTCOPY_STAT_TOO_SMALL",
    "NTCOPY_STAT_READ_BY_KERNEL",
    "NTCOPY_STAT_NOT_SUPPORTED",
    "struct ntcopy_socket",
];

/// What of an interface is gone or has become something else.
fn interface_mistakes(
    then: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<String> {
    let differs = |(name, value): (&String, &String)| match now.get(name) {
        None => Some(format!("{name} is gone")),
        Some(other) if other != value => Some(format!("{name} was `{value}`, and is `{other}`")),
        Some(_) => None,
    };
    then.iter().filter_map(differs).collect()
}

#[test]
fn the_kernels_interface_keeps_every_number_of_every_release() {
    let now = interface(&read(&crate_dir().join("../../uapi/ntcopy/uapi.h")));
    for (_, folder) in releases() {
        let mut then = interface(&read(&folder.join("uapi-ntcopy.h")));
        for name in ["MSG_NTCOPY", "SO_NTCOPY", "NTCOPY_IOC_INFO", "struct ntcopy_socket"] {
            assert!(then.contains_key(name), "{name} of {}", folder.display());
        }
        if folder.ends_with("0.1.0") {
            for name in WITHDRAWN_IN_0_2 {
                let before = then.remove(name).expect("0.1 had it");
                assert_ne!(now.get(name), Some(&before), "{name} was not withdrawn");
            }
        }
        let mistakes = interface_mistakes(&then, &now);
        assert_eq!(mistakes, [""; 0], "{}: docs/design/versioning.md", folder.display());
    }
}

#[test]
fn a_number_that_goes_or_changes_is_noticed() {
    let (_, folder) = releases().remove(0);
    let header = read(&folder.join("uapi-ntcopy.h"));
    let then = interface(&header);
    for (from, to, mistake) in [
        ("0x1000000", "0x2000000", "MSG_NTCOPY was `0x1000000`, and is `0x2000000`"),
        ("#define SO_NTCOPY", "#define SO_OTHER", "SO_NTCOPY is gone"),
        ("__u32 reserved;", "__u64 reserved;", "struct ntcopy_socket was "),
    ] {
        let changed = header.replacen(from, to, 1);
        assert_ne!(changed, header, "there is a '{from}'");
        let mistakes = interface_mistakes(&then, &interface(&changed));
        assert!(mistakes.iter().any(|words| words.starts_with(mistake)), "{mistakes:?}");
    }
}

/// The number that the module gives of its interface, from its source.
fn module_interface() -> u32 {
    let main = read(&crate_dir().join("../../kernel/module/main.c"));
    let (_, rest) = main.split_once(".series = ").expect("main.c tells the interface's number");
    number(rest.split(|part: char| !part.is_ascii_digit()).next().unwrap_or_default())
}

#[test]
fn more_ioctls_are_a_higher_number_of_the_modules_interface() {
    let ioctls = |header: &str| -> BTreeSet<String> {
        interface(header).into_keys().filter(|name| name.starts_with("NTCOPY_IOC_")).collect()
    };
    let now = ioctls(&read(&crate_dir().join("../../uapi/ntcopy/uapi.h")));
    assert!(now.len() >= 4, "{now:?}");
    let (_, folder) = releases().pop().expect("a release");
    let then = ioctls(&read(&folder.join("uapi-ntcopy.h")));
    let number_then = number(read(&folder.join("module-interface")).trim());
    if now == then {
        assert!(module_interface() >= number_then);
    } else {
        assert!(module_interface() > number_then, "{:?}", now.difference(&then));
    }
}
