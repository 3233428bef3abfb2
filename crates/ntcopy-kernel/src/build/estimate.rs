//! How far a compilation is, and how long it will take.
//!
//! The lines that make prints do not come evenly: a scheduler or a network stack takes seconds,
//! a stub a moment. A build therefore leaves behind how many lines it had printed after each
//! twentieth of its time, and the next one reads its progress off that.

use std::time::{Duration, Instant};

use crate::cache::Meta;
use crate::kind::{Flavour, Kind, Machine};

/// Parts of the time of a build.
const PARTS: usize = 20;

/// A first build, before there is one to learn from: seconds on two CPUs with nothing beside it,
/// and the lines after each part of them.
type First = (u64, [u64; PARTS]);

/// Linux 7.3.4 as it is built for user mode.
const FIRST_UM: First = (
    145,
    [
        196, 272, 319, 348, 383, 425, 487, 507, 544, 606, 633, 749, 833, 1083, 1104, 1129, 1159,
        1181, 1204, 1259,
    ],
);
/// For x86, with nothing that looks for faults. The seconds are what it took beside other work
/// (537), by what that work made of a user-mode build (213 became 363).
const FIRST_PLAIN: First = (
    315,
    [
        209, 282, 360, 414, 507, 556, 653, 727, 836, 994, 1202, 1372, 1538, 1627, 1868, 1929, 1971,
        2063, 2105, 2224,
    ],
);
/// With KASAN, whose 959 s were beside the same work.
const FIRST_CHECKED: First = (
    563,
    [
        342, 545, 613, 680, 796, 956, 1205, 1229, 1229, 1350, 1541, 1671, 1966, 2022, 2022, 2022,
        2022, 2022, 2136, 2292,
    ],
);

/// What is expected of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) seconds: u64,
    profile: Vec<u64>,
}

impl Estimate {
    /// What the last build of this kind took; else of one that is compiled like it; else what a
    /// first one takes.
    pub(super) fn from_last<'a>(kind: Kind, built: impl Iterator<Item = (Kind, &'a Meta)>) -> Self {
        let usable = built.filter(|(other, meta)| {
            Effort::of(*other) == Effort::of(kind)
                && meta.profile.len() == PARTS
                && meta.seconds > 0
        });
        match usable.max_by_key(|(other, meta)| (*other == kind, meta.built_unix_s)) {
            Some((_, meta)) => Self { seconds: meta.seconds, profile: meta.profile.clone() },
            None => {
                let (seconds, profile) = Effort::of(kind).first();
                Self { seconds, profile: profile.to_vec() }
            }
        }
    }

    /// Share of the time that is over after each number of lines, in thousandths.
    pub(super) fn per_mille(&self, steps: u64) -> u64 {
        let part = 1000 / PARTS as u64;
        let mut before = 0;
        for (index, &after) in self.profile.iter().enumerate() {
            if steps < after {
                let within = part * (steps - before) / (after - before);
                return index as u64 * part + within;
            }
            before = after;
        }
        1000
    }
}

/// What the time of a build depends on, whatever its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    Um,
    Plain,
    /// Every access is followed by a check, in code that the compiler adds.
    Checked,
}

impl Effort {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::X86(_, Flavour::Plain) => Self::Plain,
            Kind::X86(..) => Self::Checked,
            _ if kind.machine() == Machine::Um => Self::Um,
            // Fetched, and never compiled here.
            _ => Self::Plain,
        }
    }

    fn first(self) -> First {
        match self {
            Self::Um => FIRST_UM,
            Self::Plain => FIRST_PLAIN,
            Self::Checked => FIRST_CHECKED,
        }
    }
}

/// Notes when lines come.
pub(super) struct Recorder {
    begun: Instant,
    /// When each line came.
    seen: Vec<Duration>,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), seen: Vec::new() }
    }

    /// A line came; gives their number.
    pub(super) fn step(&mut self) -> u64 {
        self.seen.push(self.begun.elapsed());
        self.seen.len() as u64
    }

    /// Seconds that all took, and the lines after each part of them.
    pub(super) fn finish(self) -> (u64, Vec<u64>) {
        let all = self.begun.elapsed();
        (all.as_secs(), profile(&self.seen, all))
    }
}

/// How many lines had come after each part of the time.
fn profile(seen: &[Duration], all: Duration) -> Vec<u64> {
    let after = |part: usize| {
        let until = all.mul_f64(part as f64 / PARTS as f64);
        seen.partition_point(|at| *at <= until) as u64
    };
    (1..=PARTS).map(after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::SourceId;

    #[test]
    fn progress_follows_the_time_and_not_the_lines() {
        // Half of the lines come in the first twentieth.
        let mut profile: Vec<u64> = (0..PARTS as u64).map(|part| 100 + part * 5).collect();
        profile[PARTS - 1] = 200;
        let estimate = Estimate { seconds: 60, profile };
        assert_eq!(estimate.per_mille(0), 0);
        assert_eq!(estimate.per_mille(50), 25);
        assert_eq!(estimate.per_mille(100), 50);
        assert_eq!(estimate.per_mille(200), 1000);
        assert_eq!(estimate.per_mille(900), 1000);
    }

    fn meta(kind: Kind, seconds: u64, built_unix_s: u64) -> (Kind, Meta) {
        let meta = Meta {
            recipe: 1,
            kind: kind.name().to_owned(),
            version: "7.3.4".to_owned(),
            release: "7.3.4".to_owned(),
            source: SourceId::Tree { path: String::new(), digest: String::new() },
            series: String::new(),
            patches: Vec::new(),
            config: String::new(),
            compiler: String::new(),
            seconds,
            profile: vec![seconds; PARTS],
            built_unix_s,
        };
        (kind, meta)
    }

    #[test]
    fn a_build_is_expected_to_take_what_the_last_one_like_it_took() {
        let kind = |name| Kind::parse(name).unwrap();
        let built = [
            meta(kind("x86:6.12"), 700, 1),
            meta(kind("x86"), 800, 2),
            meta(kind("x86+module"), 900, 3),
            meta(kind("x86+plain"), 300, 4),
        ];
        let expected = |name| {
            let built = built.iter().map(|(kind, meta)| (*kind, meta));
            Estimate::from_last(kind(name), built).seconds
        };
        assert_eq!(expected("x86:6.12"), 700, "its own, though others are newer");
        assert_eq!(expected("x86:6.12+kcsan"), 900, "the newest that has checks");
        assert_eq!(expected("x86:6.12+plain"), 300);
        assert_eq!(expected("um:6.12"), FIRST_UM.0, "nothing in QEMU is like it");
    }

    #[test]
    fn parts_without_a_line_do_no_harm() {
        let estimate = Estimate { seconds: 60, profile: vec![7; PARTS] };
        assert_eq!(estimate.per_mille(6), 42);
        assert_eq!(estimate.per_mille(7), 1000);
    }

    #[test]
    fn a_record_is_cut_into_equal_times() {
        let at = Duration::from_millis;
        let seen: Vec<_> = (1..=40).map(|n| at(n * 100)).collect();
        let profile = profile(&seen, at(4000));
        assert_eq!(profile.len(), PARTS);
        assert_eq!(profile[0], 2);
        assert_eq!(profile[9], 20);
        assert_eq!(profile[PARTS - 1], 40);
    }
}
