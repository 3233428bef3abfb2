//! The configuration: a fragment on top of `allnoconfig`.

use crate::series::UM_CONFIG;

/// The fragment of `um` kernels, `kernel/config/um.config`.
pub fn um_fragment() -> &'static str {
    UM_CONFIG
}

/// One setting that a fragment asks for.
#[derive(Debug, PartialEq, Eq)]
struct Setting<'a> {
    symbol: &'a str,
    /// `None` for "is not set".
    value: Option<&'a str>,
}

/// Reads a line of a `.config` or a fragment; comments and blank lines give nothing.
fn setting(line: &str) -> Option<Setting<'_>> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("# ") {
        let symbol = rest.strip_suffix(" is not set")?;
        return symbol.starts_with("CONFIG_").then_some(Setting { symbol, value: None });
    }
    let (symbol, value) = line.split_once('=')?;
    if !symbol.starts_with("CONFIG_") {
        return None;
    }
    // A bool that is off is spelt in two ways, and is missing where its dependencies are off.
    Some(Setting { symbol, value: Some(value).filter(|value| *value != "n") })
}

/// The settings of `fragment` that `config` does not have, each as "asked X, got Y".
pub fn lost(fragment: &str, config: &str) -> Vec<String> {
    let got = |symbol: &str| {
        config.lines().filter_map(setting).find(|got| got.symbol == symbol).and_then(|s| s.value)
    };
    let mut lost = Vec::new();
    for asked in fragment.lines().filter_map(setting) {
        let got = got(asked.symbol);
        if got != asked.value {
            let show = |value: Option<&str>| value.unwrap_or("not set").to_owned();
            lost.push(format!("{}: asked {}, got {}", asked.symbol, show(asked.value), show(got)));
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_survived_is_not_lost() {
        let fragment = "# why\nCONFIG_NET=y\nCONFIG_NR_CPUS=2\n# CONFIG_MODULES is not set\n";
        assert!(lost(fragment, "CONFIG_NET=y\nCONFIG_NR_CPUS=2\n").is_empty());
        assert!(
            lost(fragment, "CONFIG_NET=y\nCONFIG_NR_CPUS=2\n# CONFIG_MODULES is not set\n")
                .is_empty()
        );
    }

    #[test]
    fn settings_that_vanished_changed_or_came_uninvited_are_named() {
        let fragment = "CONFIG_TLS=y\nCONFIG_NR_CPUS=2\n# CONFIG_MODULES is not set\n";
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
    fn the_fragment_names_no_symbol_twice() {
        let mut symbols: Vec<&str> =
            um_fragment().lines().filter_map(setting).map(|setting| setting.symbol).collect();
        let count = symbols.len();
        assert!(count > 40, "the fragment has {count} settings");
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols.len(), count);
    }
}
