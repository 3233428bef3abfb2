//! The thresholds of a C library that can be set from outside, and their names.

const MEMCPY_TUNABLE: &str = "glibc.cpu.x86_non_temporal_threshold";
const MEMSET_TUNABLE: &str = "glibc.cpu.x86_memset_non_temporal_threshold";

/// The first release that has memcpy's tunable by this name (NEWS of 2.29).
const WITH_MEMCPY: (u32, u32) = (2, 29);
/// The first release whose memset has non-temporal stores, and a tunable for them (2.40).
const WITH_MEMSET: (u32, u32) = (2, 40);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunable {
    /// Its name in `GLIBC_TUNABLES`.
    pub name: &'static str,
    /// Bytes that it holds now, `GLIBC_TUNABLES` included; none where it is not known.
    pub current_bytes: Option<u64>,
    /// The least and the most bytes that are taken; none where it is not known.
    pub range_bytes: Option<(u64, u64)>,
}

/// The two thresholds of a C library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunables {
    /// memcpy's, if it has a tunable.
    pub memcpy: Option<Tunable>,
    /// memset's, if it has one.
    pub memset: Option<Tunable>,
}

impl Tunables {
    /// Those of a release by its label (`glibc 2.36`), as a record has it; what they
    /// hold is not known.
    ///
    /// The source is glibc's NEWS and its manual, chapter "Hardware Capability Tunables". A
    /// distribution may have brought memset's into an older release: ask the loader if it is there.
    #[must_use]
    pub fn of_release(label: &str) -> Tunables {
        let release = label.strip_prefix("glibc ").and_then(release);
        let since = |first, name| {
            let is_there = release.is_some_and(|release| release >= first);
            is_there.then_some(Tunable { name, current_bytes: None, range_bytes: None })
        };
        Tunables {
            memcpy: since(WITH_MEMCPY, MEMCPY_TUNABLE),
            memset: since(WITH_MEMSET, MEMSET_TUNABLE),
        }
    }

    /// Those in the output of the dynamic loader's `--list-tunables`, whose lines read
    /// `glibc.cpu.x86_non_temporal_threshold: 0x7200000 (min: 0x4040, max: 0xfffffffffffffff)`.
    #[must_use]
    pub fn printed(printed: &str) -> Tunables {
        Tunables {
            memcpy: Tunable::printed(printed, MEMCPY_TUNABLE),
            memset: Tunable::printed(printed, MEMSET_TUNABLE),
        }
    }
}

impl Tunable {
    fn printed(printed: &str, name: &'static str) -> Option<Tunable> {
        let line = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(Tunable {
            name,
            current_bytes: Some(number(line.split_whitespace().next()?)?),
            range_bytes: range(line),
        })
    }
}

/// `(min: 0x4040, max: 0xfffffffffffffff)` at the end of a line.
fn range(line: &str) -> Option<(u64, u64)> {
    let (least, most) = line.split_once("(min: ")?.1.strip_suffix(')')?.split_once(", max: ")?;
    Some((number(least)?, number(most)?))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `2.36` as numbers; `2.36.9000` and `2.36-9+deb12u1` are of that release too.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(label: &str) -> (Option<&'static str>, Option<&'static str>) {
        let found = Tunables::of_release(label);
        (found.memcpy.map(|one| one.name), found.memset.map(|one| one.name))
    }

    #[test]
    fn each_release_has_its_names() {
        for (label, memcpy, memset) in [
            ("glibc 2.28", None, None),
            ("glibc 2.29", Some(MEMCPY_TUNABLE), None),
            ("glibc 2.36", Some(MEMCPY_TUNABLE), None),
            ("glibc 2.39.9000", Some(MEMCPY_TUNABLE), None),
            ("glibc 2.40", Some(MEMCPY_TUNABLE), Some(MEMSET_TUNABLE)),
            ("glibc 2.41-6", Some(MEMCPY_TUNABLE), Some(MEMSET_TUNABLE)),
            ("glibc 3.0", Some(MEMCPY_TUNABLE), Some(MEMSET_TUNABLE)),
            ("musl unknown", None, None),
            ("glibc unknown", None, None),
            ("", None, None),
        ] {
            assert_eq!(names(label), (memcpy, memset), "{label}");
        }
    }

    #[test]
    fn what_the_loader_prints_goes_before_the_release() {
        let printed = "\
glibc.cpu.x86_memset_non_temporal_threshold: 0x4040 (min: 0x4040, max: 0xfffffffffffffff)
glibc.cpu.x86_non_temporal_threshold: 0x7200000 (min: 0x4040, max: 0xfffffffffffffff)
";
        let found = Tunables::printed(printed);
        let memcpy = found.memcpy.unwrap();
        assert_eq!(memcpy.current_bytes, Some(114 << 20));
        assert_eq!(memcpy.range_bytes, Some((0x4040, 0xfff_ffff_ffff_ffff)));
        assert_eq!(found.memset.unwrap().name, MEMSET_TUNABLE);
        let without = Tunables::printed("glibc.malloc.check: 0 (min: 0, max: 3)\n");
        assert_eq!((without.memcpy, without.memset), (None, None));
    }
}
