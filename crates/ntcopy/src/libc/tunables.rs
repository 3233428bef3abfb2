//! The two texts that speak of glibc's tunables.

/// The value of a tunable in the output of the loader's `--list-tunables`, whose lines read
/// `glibc.cpu.x86_non_temporal_threshold: 0x7200000 (min: 0x4040, max: 0xfffffffffffffff)`.
/// Sizes are in bytes.
pub(super) fn value(printed: &str, name: &str) -> Option<u64> {
    let line = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    number(line.split_whitespace().next()?)
}

/// Whether the text of `GLIBC_TUNABLES` (`name=value:name=value`) sets a tunable.
pub(super) fn sets(environment: &str, name: &str) -> bool {
    environment.split(':').any(|part| part.split_once('=').is_some_and(|(key, _)| key == name))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
