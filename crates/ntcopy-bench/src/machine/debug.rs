//! Kernels and machines whose times mean nothing.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use ntcopy::cpu::Cpu;

/// Options that make every access or lock slow, as `.config` names them.
const CONFIG: [(&str, &str); 6] = [
    ("CONFIG_KASAN=y", "KASAN"),
    ("CONFIG_KCSAN=y", "KCSAN"),
    ("CONFIG_KMSAN=y", "KMSAN"),
    ("CONFIG_LOCKDEP=y", "lockdep"),
    ("CONFIG_DEBUG_KMEMLEAK=y", "kmemleak"),
    ("CONFIG_DEBUG_PAGEALLOC_ENABLE_DEFAULT=y", "page-allocation debugging"),
];

/// Symbols that such a kernel has, where its configuration cannot be read.
const SYMBOLS: [(&str, &str); 4] = [
    ("kasan_report", "KASAN"),
    ("kcsan_setup_watchpoint", "KCSAN"),
    ("kmsan_report", "KMSAN"),
    ("lockdep_init_map_type", "lockdep"),
];

/// The signature of QEMU's software emulation.
const TCG: &str = "TCGTCGTCGTCG";

/// Why times measured here are none: a debug kernel or an emulator. None if
/// nothing of the kind is visible.
pub fn not_a_timing() -> Option<String> {
    let mut found = Vec::new();
    if Cpu::detect().hypervisor.as_deref() == Some(TCG) {
        found.push("an emulated CPU");
    }
    found.extend(config().map(|text| in_config(&text)).unwrap_or_default());
    found.extend(symbols().map(|text| in_symbols(&text)).unwrap_or_default());
    if Path::new("/proc/lockdep").exists() {
        found.push("lockdep");
    }
    if Path::new("/sys/kernel/debug/kmemleak").exists() {
        found.push("kmemleak");
    }
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then(|| found.join(", "))
}

/// The running kernel's configuration, if it or its package tells.
fn config() -> Option<String> {
    if let Ok(packed) = fs::File::open("/proc/config.gz") {
        let mut text = String::new();
        return GzDecoder::new(packed).read_to_string(&mut text).ok().map(|_| text);
    }
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    fs::read_to_string(format!("/boot/config-{release}")).ok()
}

fn in_config(text: &str) -> Vec<&'static str> {
    let on = |option: &str| text.lines().any(|line| line.trim_end() == option);
    CONFIG.iter().filter(|(option, _)| on(option)).map(|(_, name)| *name).collect()
}

/// The kernel's symbols; their names can be read without privilege.
fn symbols() -> Option<String> {
    fs::read_to_string("/proc/kallsyms").ok()
}

fn in_symbols(text: &str) -> Vec<&'static str> {
    let has =
        |symbol: &str| text.lines().any(|line| line.split_whitespace().nth(2) == Some(symbol));
    SYMBOLS.iter().filter(|(symbol, _)| has(symbol)).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_tells() {
        let text = "CONFIG_SMP=y\n# CONFIG_KCSAN is not set\nCONFIG_KASAN=y\nCONFIG_LOCKDEP=y\n";
        assert_eq!(in_config(text), ["KASAN", "lockdep"]);
        assert_eq!(in_config("CONFIG_KASAN_SHADOW_OFFSET=y\n"), Vec::<&str>::new());
    }

    #[test]
    fn symbols_tell() {
        let text = "0000000000000000 T kasan_report\n0000000000000000 t kasan_report_x [m]\n";
        assert_eq!(in_symbols(text), ["KASAN"]);
        assert_eq!(in_symbols("0000000000000000 T printk\n"), Vec::<&str>::new());
    }
}
