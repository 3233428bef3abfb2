//! The configuration: fragments of `kernel/config/` on top of `allnoconfig`.

use std::collections::HashMap;

use crate::kind::{Flavour, Kind, Release, RunsAs};
use crate::series::{
    CONFIG_6_12, CONFIG_KASAN, CONFIG_KCSAN, CONFIG_MODULE, CONFIG_UM, CONFIG_UM_6_12, CONFIG_X86,
};

/// What a kernel is made of. Nothing for a stock kernel, which brings its own.
pub(crate) fn fragment(kind: Kind) -> String {
    let mut parts = match kind {
        Kind::Um => vec![CONFIG_UM],
        Kind::Um612 => vec![CONFIG_UM, CONFIG_UM_6_12],
        Kind::UmModule => vec![CONFIG_UM, CONFIG_MODULE],
        Kind::X86(_, Flavour::Plain) | Kind::Kvm => vec![CONFIG_X86],
        Kind::X86(_, Flavour::Kasan) => vec![CONFIG_X86, CONFIG_KASAN],
        Kind::X86(_, Flavour::Kcsan) => vec![CONFIG_X86, CONFIG_KCSAN],
        Kind::X86(_, Flavour::Module) => vec![CONFIG_X86, CONFIG_KASAN, CONFIG_MODULE],
        Kind::Stock(_) => return String::new(),
    };
    if kind.release() == Release::V6_12 {
        parts.push(CONFIG_6_12);
    }
    let own = release_setting(kind);
    if kind.is_for_module() {
        parts.push(&own);
    }
    parts.concat()
}

/// A release of its own, so that the module of one kernel is not taken for that of another.
fn release_setting(kind: Kind) -> String {
    let machine = match kind.runs_as() {
        RunsAs::Um => "um",
        RunsAs::Qemu => "x86",
    };
    format!("CONFIG_LOCALVERSION=\"-ntcopy-{machine}-module\"\n")
}

/// Reads a line of a `.config` or a fragment: a symbol and its value, which is `None` for "is not
/// set". Comments and blank lines give nothing.
fn setting(line: &str) -> Option<(&str, Option<&str>)> {
    let line = line.trim();
    let (symbol, value) = match line.strip_prefix("# ") {
        Some(rest) => (rest.strip_suffix(" is not set")?, None),
        None => line.split_once('=').map(|(symbol, value)| (symbol, Some(value)))?,
    };
    // A bool that is off is spelt in two ways, and is missing where its dependencies are off.
    symbol.starts_with("CONFIG_").then(|| (symbol, value.filter(|value| *value != "n")))
}

fn settings(text: &str) -> HashMap<&str, Option<&str>> {
    text.lines().filter_map(setting).collect()
}

/// The settings of `fragment` that `config` does not have, each as "asked X, got Y".
pub(crate) fn lost(fragment: &str, config: &str) -> Vec<String> {
    let (last, got) = (settings(fragment), settings(config));
    let show = |value: Option<&str>| value.unwrap_or("not set").to_owned();
    let mut lost = Vec::new();
    for (symbol, asked) in fragment.lines().filter_map(setting) {
        let got = got.get(symbol).copied().flatten();
        if got != asked && asked == last[symbol] {
            lost.push(format!("{symbol}: asked {}, got {}", show(asked), show(got)));
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_vanished_changed_or_came_uninvited_are_named() {
        let fragment = "CONFIG_TLS=y\nCONFIG_NR_CPUS=2\n# CONFIG_MODULES is not set\n";
        assert!(lost(fragment, "CONFIG_TLS=y\nCONFIG_NR_CPUS=2\n").is_empty());
        assert!(lost(fragment, fragment).is_empty());
        let later = "CONFIG_NR_CPUS=8\n";
        let both = [fragment, later].concat();
        assert!(lost(&both, &both).is_empty(), "a later fragment has the last word");
        assert_eq!(lost(&both, fragment), ["CONFIG_NR_CPUS: asked 8, got 2"]);
        let config = "CONFIG_NR_CPUS=1\nCONFIG_MODULES=y\nCONFIG_TLS_DEVICE=y\n";
        assert_eq!(
            lost(fragment, config),
            [
                "CONFIG_TLS: asked y, got not set",
                "CONFIG_NR_CPUS: asked 2, got 1",
                "CONFIG_MODULES: asked not set, got y"
            ]
        );
    }

    #[test]
    fn modules_are_taken_where_they_are_the_point_and_releases_tell_these_kernels_apart() {
        let mut releases = Vec::new();
        for kind in Kind::all().filter(|kind| !kind.is_stock()) {
            let fragment = fragment(kind);
            let takes = fragment.lines().any(|line| line == "CONFIG_MODULES=y");
            assert_eq!(takes, kind.is_for_module(), "{kind}");
            let own = fragment.lines().rfind(|line| line.starts_with("CONFIG_LOCALVERSION="));
            releases.extend(kind.is_for_module().then(|| (kind.release(), own.map(str::to_owned))));
        }
        assert_eq!(releases.len(), 3);
        assert!(releases[0] != releases[1] && releases[1] != releases[2], "{releases:?}");
    }
}
