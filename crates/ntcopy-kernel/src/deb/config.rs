//! The configuration of a kernel for a real machine: where it comes from, what has to change in
//! it, and what of it the source does not know.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use serde::Serialize;

use super::error::DebError;
use crate::config::setting;
use crate::error::{Context, Result};
use crate::interrupt::Interrupts;
use crate::process;

/// Where a configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigFrom {
    /// The kernel that runs now: /proc/config.gz, else the file that came with it.
    Running,
    /// A file: a whole `.config`.
    File(PathBuf),
}

impl FromStr for ConfigFrom {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "running" { Self::Running } else { Self::File(text.into()) })
    }
}

/// A setting that had to be another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The setting, with `CONFIG_`.
    pub symbol: String,
    /// What it was; `n` when it was off or not there.
    pub was: String,
    /// What it is now.
    pub now: String,
    /// Why.
    pub why: &'static str,
}

/// A whole `.config`.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) text: String,
    values: HashMap<String, String>,
}

impl Config {
    pub(super) fn new(text: String) -> Self {
        let settings = text.lines().filter_map(setting);
        let on = settings.filter_map(|s| Some((s.symbol.to_owned(), s.value?.to_owned())));
        Self { values: on.collect(), text }
    }

    /// What a setting is; nothing when it is off.
    pub(super) fn value(&self, symbol: &str) -> Option<&str> {
        self.values.get(symbol).map(String::as_str)
    }

    /// Whether a setting is on, built in or as a module.
    pub(super) fn has(&self, symbol: &str) -> bool {
        matches!(self.value(symbol), Some("y" | "m"))
    }

    /// The settings that are on.
    fn on(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.values.iter().map(|(symbol, value)| (symbol.as_str(), value.as_str()));
        all.filter(|(_, value)| matches!(*value, "y" | "m"))
    }

    /// How many settings are `y`, and how many `m`.
    pub(super) fn counts(&self) -> (usize, usize) {
        let modules = self.on().filter(|(_, value)| *value == "m").count();
        (self.on().count() - modules, modules)
    }

    /// The settings that are on and that the source does not know, sorted.
    pub(super) fn unknown(&self, known: &HashSet<String>) -> Vec<String> {
        let is_unknown = |symbol: &&str| {
            symbol.strip_prefix("CONFIG_").is_some_and(|name| !known.contains(name))
        };
        let mut unknown: Vec<String> =
            self.on().map(|(symbol, _)| symbol).filter(is_unknown).map(str::to_owned).collect();
        unknown.sort_unstable();
        unknown
    }

    /// Gives a setting another value, and says so; `n` switches it off.
    fn change(&mut self, symbol: &str, now: &str, why: &'static str) -> Option<Change> {
        let was = self.value(symbol).unwrap_or("n").to_owned();
        if was == now {
            return None;
        }
        let own = |line: &&str| setting(line).is_some_and(|s| s.symbol == symbol);
        let mut text: String =
            self.text.lines().filter(|line| !own(line)).map(|line| format!("{line}\n")).collect();
        text.push_str(&match now {
            "n" => format!("# {symbol} is not set\n"),
            now => format!("{symbol}={now}\n"),
        });
        *self = Self::new(text);
        Some(Change { symbol: symbol.into(), was, now: now.into(), why })
    }
}

/// Reads the configuration, and says where it was. `root` is where /proc and /boot are.
pub(super) fn read(
    from: &ConfigFrom,
    root: &Path,
    interrupts: &Interrupts,
) -> Result<(Config, PathBuf)> {
    let (text, path) = match from {
        ConfigFrom::File(path) => (text_of(path, interrupts)?, path.clone()),
        ConfigFrom::Running => running(root, interrupts)?,
    };
    let config = Config::new(text);
    let reason = if config.values.is_empty() {
        "no line of it reads CONFIG_…=…"
    } else if !config.has("CONFIG_X86_64") {
        "it is not of an x86-64 kernel (CONFIG_X86_64 is not set)"
    } else if !config.has("CONFIG_NET") {
        "it has no network (CONFIG_NET is not set), and the series is about sends"
    } else {
        return Ok((config, path));
    };
    Err(DebError::NotAConfig { path, reason }.into())
}

fn text_of(path: &Path, interrupts: &Interrupts) -> Result<String> {
    if path.extension().is_some_and(|end| end == "gz") {
        let mut gzip = Command::new("gzip");
        return process::output(gzip.args(["-dc"]).arg(path), interrupts);
    }
    fs::read_to_string(path).doing("reading the configuration", path)
}

/// The configuration of the kernel that runs, wherever it left one.
fn running(root: &Path, interrupts: &Interrupts) -> Result<(String, PathBuf)> {
    let release = root.join("proc/sys/kernel/osrelease");
    let release = fs::read_to_string(&release).doing("reading", &release)?;
    let release = release.trim();
    let places = [
        "proc/config.gz".to_owned(),
        format!("boot/config-{release}"),
        format!("usr/lib/modules/{release}/config"),
        format!("lib/modules/{release}/config"),
    ];
    let Some(found) = places.iter().map(|place| root.join(place)).find(|path| path.is_file())
    else {
        let looked_for = places.map(|place| format!("/{place}")).join(", ");
        return Err(DebError::NoConfig { release: release.into(), looked_for }.into());
    };
    Ok((text_of(&found, interrupts)?, found))
}

/// Settings that name a file with certificates: Debian's and Ubuntu's are of their own builds.
const KEY_FILES: [&str; 2] = ["CONFIG_SYSTEM_TRUSTED_KEYS", "CONFIG_SYSTEM_REVOCATION_KEYS"];
/// The key that modules are signed with, and what it is by default.
const SIGNING_KEY: (&str, &str) = ("CONFIG_MODULE_SIG_KEY", "\"certs/signing_key.pem\"");
/// What goes with the compiler's information for debuggers.
const DEBUG_INFO: [&str; 8] = [
    "CONFIG_DEBUG_INFO",
    "CONFIG_DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT",
    "CONFIG_DEBUG_INFO_DWARF4",
    "CONFIG_DEBUG_INFO_DWARF5",
    "CONFIG_DEBUG_INFO_BTF",
    "CONFIG_DEBUG_INFO_BTF_MODULES",
    "CONFIG_GDB_SCRIPTS",
    "CONFIG_GENDWARFKSYMS",
];

/// Changes what would keep the kernel from being built here, and what was asked for.
pub(super) fn adapt(config: &mut Config, local_version: &str, debug_info: bool) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut change = |config: &mut Config, symbol: &str, now: &str, why| {
        changes.extend(config.change(symbol, now, why));
    };
    let own = format!("\"{local_version}\"");
    change(config, "CONFIG_LOCALVERSION", &own, "the kernel's own name, --localversion");
    let auto = "CONFIG_LOCALVERSION_AUTO";
    change(config, auto, "n", "the source is no repository that could be asked for a name");
    for symbol in KEY_FILES {
        if config.value(symbol).is_some_and(is_missing_file) {
            let why = "names certificates of the distribution's own build, which are not in the \
                       source: modules that only they vouch for are strangers to this kernel";
            change(config, symbol, "\"\"", why);
        }
    }
    let (key, default) = SIGNING_KEY;
    if config.value(key).is_some_and(|value| value != default && is_missing_file(value)) {
        change(config, key, default, "that key is not here; the build makes one of its own");
    }
    if !debug_info && config.has("CONFIG_DEBUG_INFO") {
        for symbol in DEBUG_INFO {
            change(config, symbol, "n", "--no-debug-info");
        }
        change(config, "CONFIG_DEBUG_INFO_NONE", "y", "--no-debug-info");
    }
    changes
}

/// Whether a value names files, and not by paths from the root that are there.
fn is_missing_file(value: &str) -> bool {
    let path = value.trim_matches('"');
    let is_here = path.starts_with('/') && Path::new(path).is_file();
    !(path.is_empty() || is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "# Automatically generated\nCONFIG_X86_64=y\nCONFIG_NET=y\n\
        CONFIG_LOCALVERSION=\"\"\n# CONFIG_LOCALVERSION_AUTO is not set\nCONFIG_TLS=m\n\
        CONFIG_SYSTEM_TRUSTED_KEYS=\"debian/certs/debian-uefi-certs.pem\"\n\
        CONFIG_MODULE_SIG_KEY=\"debian/certs/key.pem\"\nCONFIG_DEBUG_INFO=y\n\
        CONFIG_DEBUG_INFO_BTF=y\n# CONFIG_DEBUG_INFO_NONE is not set\nCONFIG_HZ=250\n";

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file
    }

    fn read_file(text: &str) -> Result<(Config, PathBuf)> {
        let file = file(text);
        let from = ConfigFrom::File(file.path().to_path_buf());
        read(&from, Path::new("/"), &Interrupts::arm().unwrap())
    }

    #[test]
    fn the_distribution_s_keys_are_left_out_and_every_change_is_told() {
        let mut config = Config::new(DEBIAN.into());
        let changes = adapt(&mut config, "-ntcopy", true);
        let symbols: Vec<&str> = changes.iter().map(|change| change.symbol.as_str()).collect();
        assert_eq!(
            symbols,
            ["CONFIG_LOCALVERSION", "CONFIG_SYSTEM_TRUSTED_KEYS", "CONFIG_MODULE_SIG_KEY"]
        );
        assert_eq!(config.value("CONFIG_SYSTEM_TRUSTED_KEYS"), Some("\"\""));
        assert_eq!(config.value("CONFIG_LOCALVERSION"), Some("\"-ntcopy\""));
        assert!(changes[1].was.contains("debian-uefi-certs") && changes[1].now == "\"\"");
        assert!(adapt(&mut config, "-ntcopy", true).is_empty(), "once is enough");
        assert_eq!(config.text.matches("CONFIG_LOCALVERSION=").count(), 1);
    }

    #[test]
    fn a_key_of_the_user_s_own_is_kept() {
        let key = file("key");
        let setting = format!("CONFIG_MODULE_SIG_KEY=\"{}\"\n", key.path().display());
        let mut config = Config::new(setting);
        adapt(&mut config, "-x", true);
        assert_eq!(config.value("CONFIG_MODULE_SIG_KEY").unwrap().trim_matches('"'), key.path());
    }

    #[test]
    fn debug_information_goes_as_a_whole_when_it_is_not_wanted() {
        let mut config = Config::new(DEBIAN.into());
        let changes = adapt(&mut config, "-ntcopy", false);
        assert!(!config.has("CONFIG_DEBUG_INFO") && !config.has("CONFIG_DEBUG_INFO_BTF"));
        assert!(config.has("CONFIG_DEBUG_INFO_NONE"));
        assert_eq!(changes.iter().filter(|change| change.why == "--no-debug-info").count(), 3);
    }

    #[test]
    fn what_a_source_does_not_know_is_named_and_what_is_off_is_not() {
        let config = Config::new("CONFIG_OLD=y\nCONFIG_TLS=m\nCONFIG_HZ=250\n".into());
        let known = HashSet::from(["TLS".to_owned()]);
        assert_eq!(config.unknown(&known), ["CONFIG_OLD"]);
        assert_eq!(config.counts(), (1, 1));
    }

    #[test]
    fn a_file_that_is_no_configuration_of_ours_says_why() {
        for (text, part) in [
            ("hello\n", "CONFIG_…=…"),
            ("CONFIG_ARM64=y\nCONFIG_NET=y\n", "x86-64"),
            ("CONFIG_X86_64=y\n", "no network"),
        ] {
            let error = read_file(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(read_file(DEBIAN).is_ok());
    }

    #[test]
    fn the_running_kernel_s_configuration_is_looked_for_where_kernels_leave_it() {
        let root = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let interrupts = Interrupts::arm().unwrap();
        let running = || read(&ConfigFrom::Running, root.path(), &interrupts);
        put("proc/sys/kernel/osrelease", "6.12.1-amd64\n");
        let error = running().unwrap_err().to_string();
        assert!(error.contains("/boot/config-6.12.1-amd64"), "{error}");
        put("lib/modules/6.12.1-amd64/config", DEBIAN);
        assert!(running().unwrap().1.ends_with("lib/modules/6.12.1-amd64/config"));
        put("boot/config-6.12.1-amd64", DEBIAN);
        assert!(running().unwrap().1.ends_with("boot/config-6.12.1-amd64"));
    }
}
