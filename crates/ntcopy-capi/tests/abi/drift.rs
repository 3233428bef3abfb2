//! The header says what the library has: functions, constants, structures, symbols, versions.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use ntcopy_capi::stream::ntcopy_moved;
use ntcopy_capi::{hints, socket, vectored};

use crate::compilers::{CLANG, CLANGXX, Compiler, GCC, GXX};
use crate::installed::{crate_dir, prefix, run, scratch};

/// The declarations of this crate's functions, as cbindgen reads them from the source. Types are
/// left to the header.
fn generated() -> String {
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        no_includes: true,
        usize_is_size_t: true,
        ..cbindgen::Config::default()
    };
    config.export.item_types = vec![cbindgen::ItemType::Functions];
    // The system's structures, which it can't know to be structures.
    for name in ["iovec", "msghdr"] {
        config.export.rename.insert(name.to_owned(), format!("struct {name}"));
    }
    // It follows the modules from there.
    let builder =
        cbindgen::Builder::new().with_config(config).with_src(crate_dir().join("src/lib.rs"));
    let mut text = Vec::new();
    builder.generate().expect("the source can be read").write(&mut text);
    String::from_utf8(text).expect("C is text")
}

/// The names of the functions that a text declares or lists.
fn functions(text: &str, end: char) -> BTreeSet<String> {
    let is_part = |part: char| part.is_ascii_alphanumeric() || part == '_';
    text.match_indices(end)
        .map(|(at, _)| text[..at].rsplit(|part| !is_part(part)).next().unwrap_or_default())
        .filter(|name| name.starts_with("ntcopy_"))
        .map(str::to_owned)
        .collect()
}

/// Compiles a text that includes the header, without making anything; the words if it doesn't.
fn compiles(compiler: &Compiler, name: &str, body: &str) -> Result<(), String> {
    let source = scratch("drift").join(format!("{name}.{}", compiler.extension));
    fs::write(&source, format!("#include <stddef.h>\n#include <ntcopy.h>\n{body}")).unwrap();
    let standard = compiler.standards.last().expect("a standard");
    let mut command = compiler.command(standard);
    let output = command.arg("-fsyntax-only").arg(&source).output().expect("a compiler");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The header with its declarations only, as the compiler sees it.
fn preprocessed() -> String {
    let header = prefix().join("include/ntcopy.h");
    run(GCC.command("-std=c11").args(["-E", "-P"]).arg(header))
}

fn in_c_linkage(body: &str) -> String {
    format!("#ifdef __cplusplus\nextern \"C\" {{\n#endif\n{body}\n#ifdef __cplusplus\n}}\n#endif\n")
}

#[test]
fn the_header_declares_every_function_as_the_source_defines_it() {
    let generated = generated();
    assert_eq!(functions(&generated, '('), functions(&preprocessed(), '('), "source, header");
    for compiler in [GCC, GXX, CLANG, CLANGXX] {
        if compiler.is_here() {
            let body = in_c_linkage(&generated);
            compiles(&compiler, "declarations", &body).unwrap_or_else(|words| panic!("{words}"));
        }
    }
}

#[test]
fn a_declaration_that_differs_is_noticed() {
    let generated = generated();
    for (now, then) in [("size_t len", "int len"), ("const void *src", "void *src")] {
        let changed = generated.replacen(now, then, 1);
        assert_ne!(changed, generated, "there is a '{now}' to change");
        let words = compiles(&GCC, "changed", &changed).expect_err("the compiler complains");
        assert!(words.contains("conflicting types"), "{words}");
    }
}

#[test]
fn the_manual_page_shows_every_function_as_the_header_declares_it() {
    let page = fs::read_to_string(crate_dir().join("../../docs/man/ntcopy.3")).unwrap();
    let synopsis = page.split(".SH ").find_map(|part| part.strip_prefix("SYNOPSIS")).unwrap();
    // Without the macros and the quotes, it is C.
    let lines = synopsis.lines().filter(|line| line.starts_with(".B"));
    let text: String = lines
        .map(|line| match line.strip_prefix(".BI ") {
            // Every second word is the name of a parameter, and joins what is quoted.
            Some(words) => words.split('"').map(str::trim_start).collect::<String>() + "\n",
            None => line.replacen(".B ", "", 1) + "\n",
        })
        .collect();
    assert_eq!(functions(&text, '('), functions(&preprocessed(), '('), "manual page, header");
    compiles(&GCC, "synopsis", &text).unwrap_or_else(|words| panic!("{words}"));
}

/// The symbols that a library defines for others, versions cut off.
fn symbols(library: &Path, options: &[&str]) -> BTreeSet<String> {
    let listed = run(Command::new("nm").args(options).arg("--defined-only").arg(library));
    let listed = listed.lines().filter_map(|line| {
        let mut words = line.split_whitespace().rev();
        let (name, kind) = (words.next()?, words.next()?);
        // The version itself is listed as an absolute symbol.
        (kind.len() == 1 && kind != "A").then(|| name.split('@').next().unwrap_or(name).to_owned())
    });
    listed.collect()
}

#[test]
fn both_libraries_show_the_functions_of_the_header_and_nothing_else() {
    let expected = functions(&preprocessed(), '(');
    let map = fs::read_to_string(crate_dir().join("libntcopy.map")).unwrap();
    assert_eq!(functions(&map, ';'), expected, "libntcopy.map");
    let library = prefix().join("lib");
    assert_eq!(symbols(&library.join("libntcopy.so"), &["-D"]), expected, "shared");
    assert_eq!(symbols(&library.join("libntcopy.a"), &["-g"]), expected, "static");
}

#[test]
fn every_symbol_has_a_version() {
    let library = prefix().join("lib/libntcopy.so");
    let listed = run(Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions"])
        .arg(library));
    for line in listed.lines().filter(|line| line.contains(" T ")) {
        assert!(line.ends_with("@@NTCOPY_0.1"), "{line}");
    }
}

/// The header's constants and what they are in Rust.
fn constants() -> Vec<(&'static str, i64)> {
    let version = |text: &str| text.parse().expect("a number");
    vec![
        ("NTCOPY_VERSION_MAJOR", version(env!("CARGO_PKG_VERSION_MAJOR"))),
        ("NTCOPY_VERSION_MINOR", version(env!("CARGO_PKG_VERSION_MINOR"))),
        ("NTCOPY_VERSION_PATCH", version(env!("CARGO_PKG_VERSION_PATCH"))),
        ("NTCOPY_AUTO", 0),
        ("NTCOPY_SRC_TEMPORAL", hints::NTCOPY_SRC_TEMPORAL.into()),
        ("NTCOPY_SRC_NONTEMPORAL", hints::NTCOPY_SRC_NONTEMPORAL.into()),
        ("NTCOPY_DST_TEMPORAL", hints::NTCOPY_DST_TEMPORAL.into()),
        ("NTCOPY_DST_NONTEMPORAL", hints::NTCOPY_DST_NONTEMPORAL.into()),
        ("NTCOPY_SRC_COLD", hints::NTCOPY_SRC_COLD.into()),
        ("NTCOPY_TEMPORAL", (hints::NTCOPY_SRC_TEMPORAL | hints::NTCOPY_DST_TEMPORAL).into()),
        (
            "NTCOPY_NONTEMPORAL",
            (hints::NTCOPY_SRC_NONTEMPORAL | hints::NTCOPY_DST_NONTEMPORAL).into(),
        ),
        ("NTCOPY_IOV_MAX", vectored::NTCOPY_IOV_MAX as i64),
        ("NTCOPY_SUPPORT_NONE", socket::NTCOPY_SUPPORT_NONE.into()),
        ("NTCOPY_SUPPORT_KERNEL", socket::NTCOPY_SUPPORT_KERNEL.into()),
        ("NTCOPY_SUPPORT_MODULE", socket::NTCOPY_SUPPORT_MODULE.into()),
    ]
}

#[test]
fn the_header_defines_every_constant_as_the_source_does() {
    let header = fs::read_to_string(crate_dir().join("include/ntcopy.h")).unwrap();
    let defined: Vec<_> = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define NTCOPY_"))
        .filter_map(|rest| rest.split_whitespace().next())
        .map(|name| format!("NTCOPY_{name}"))
        .collect();
    let listed: Vec<_> = constants().iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(defined, listed, "header, source");

    let mut body = String::new();
    for (name, value) in constants() {
        writeln!(body, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    compiles(&GCC, "constants", &body).unwrap_or_else(|words| panic!("{words}"));
}

#[test]
fn the_structures_are_laid_out_alike() {
    let body = format!(
        "_Static_assert(sizeof(struct ntcopy_moved) == {}, \"size\");\n\
         _Static_assert(offsetof(struct ntcopy_moved, bytes) == {}, \"bytes\");\n\
         _Static_assert(offsetof(struct ntcopy_moved, nontemporal_bytes) == {}, \"nontemporal\");\n\
         _Static_assert(sizeof(ntcopy_path) == {}, \"path\");\n",
        size_of::<ntcopy_moved>(),
        offset_of!(ntcopy_moved, bytes),
        offset_of!(ntcopy_moved, nontemporal_bytes),
        size_of::<u32>(),
    );
    compiles(&GCC, "structures", &body).unwrap_or_else(|words| panic!("{words}"));
}
