//! Which settings a source knows.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::cache::children;
use crate::error::Result;
use crate::series::Series;

/// Folders whose Kconfig files describe another kernel, or none.
const LEFT_OUT: [&str; 3] = ["Documentation", "scripts/kconfig/tests", "tools"];

/// The names of all settings that a kernel for x86 can have, without `CONFIG_`.
pub(super) fn symbols(source: &Path) -> Result<HashSet<String>> {
    let mut symbols = HashSet::new();
    let mut folders = vec![source.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let below = folder.strip_prefix(source).unwrap_or(&folder);
        let is_foreign = below.parent() == Some(Path::new("arch")) && !below.ends_with("x86");
        if is_foreign || LEFT_OUT.iter().any(|left_out| below == Path::new(left_out)) {
            continue;
        }
        for path in children(&folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if name.starts_with("Kconfig") {
                // What is not UTF-8 is in a help text.
                let text = fs::read(&path).unwrap_or_default();
                symbols.extend(declared(&String::from_utf8_lossy(&text)));
            }
        }
    }
    Ok(symbols)
}

/// The settings that a series brings: a source that is only looked into does not have them yet.
pub(super) fn symbols_of(series: &Series) -> Vec<String> {
    let texts = series.patches.iter().map(|patch| String::from_utf8_lossy(&patch.content));
    texts
        .flat_map(|text| {
            let added: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix('+')).collect();
            declared(&added.join("\n"))
        })
        .collect()
}

/// The settings that a Kconfig file declares.
fn declared(text: &str) -> Vec<String> {
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let declared = words.filter_map(|words| match words[..] {
        ["config" | "menuconfig", name, ..] => Some(name.to_owned()),
        _ => None,
    });
    declared.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_series_brings_is_known_too() {
        let series = Series::embedded(crate::kind::Release::Newest);
        assert!(symbols_of(&series).contains(&"ARCH_HAS_PAGE_NT".to_owned()));
    }

    #[test]
    fn settings_of_this_architecture_are_known_and_those_of_others_are_not() {
        let source = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("Kconfig", "mainmenu \"x\"\nsource \"net/Kconfig\"\n"),
            ("net/Kconfig", "config NET\n\tbool \"x\"\n\thelp\n\t  config it.\n"),
            ("net/tls/Kconfig.tls", "menuconfig TLS\n\ttristate\n"),
            ("arch/Kconfig", "config ARCH_ANY\n"),
            ("arch/x86/Kconfig", "config X86_64\n"),
            ("arch/arm/Kconfig", "config ARM\n"),
            ("scripts/kconfig/tests/a/Kconfig", "config A_TEST\n"),
            ("net/Makefile", "config NOT_THIS\n"),
        ] {
            let path = source.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let symbols = symbols(source.path()).unwrap();
        for name in ["NET", "TLS", "ARCH_ANY", "X86_64"] {
            assert!(symbols.contains(name), "{name} in {symbols:?}");
        }
        for name in ["ARM", "A_TEST", "NOT_THIS"] {
            assert!(!symbols.contains(name), "{name}");
        }
    }
}
