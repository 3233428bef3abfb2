//! The instructions that decide what a non-temporal copy can be made of.

/// What an instruction is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Stores that bypass the caches.
    NtStore,
    /// Loads that leave the caches alone, from write-combining memory.
    NtLoad,
    /// Control of single cache lines.
    Line,
    /// Temporal string copies, the competitor.
    Rep,
}

/// A CPU feature and what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feature {
    /// The name, as in `/proc/cpuinfo` where that is in use.
    pub name: &'static str,
    /// The instructions that it gives, for stores and loads with their width in bytes.
    pub instructions: &'static str,
    /// What they are used for.
    pub used_for: Use,
}

const fn feature(name: &'static str, instructions: &'static str, used_for: Use) -> Feature {
    Feature { name, instructions, used_for }
}

/// Every feature that is looked for, in the order of reports.
pub const FEATURES: &[Feature] = &[
    feature("sse2", "MOVNTI (8 bytes), MOVNTDQ (16)", Use::NtStore),
    feature("avx", "VMOVNTDQ (32)", Use::NtStore),
    feature("avx512f", "VMOVNTDQ (64)", Use::NtStore),
    feature("movdiri", "MOVDIRI (8)", Use::NtStore),
    feature("movdir64b", "MOVDIR64B (64)", Use::NtStore),
    feature("clzero", "CLZERO (64 of zeros)", Use::NtStore),
    feature("sse4.1", "MOVNTDQA (16)", Use::NtLoad),
    feature("clflushopt", "CLFLUSHOPT", Use::Line),
    feature("clwb", "CLWB", Use::Line),
    feature("cldemote", "CLDEMOTE", Use::Line),
    feature("prefetchw", "PREFETCHW", Use::Line),
    feature("erms", "fast REP MOVSB and STOSB", Use::Rep),
    feature("fsrm", "fast short REP MOVSB", Use::Rep),
];

/// Names of the features that the CPU has and the operating system lets programs use.
#[cfg(target_arch = "x86_64")]
pub(super) fn detect() -> Vec<&'static str> {
    let found = crate::arch::x86_64::cpuid::Features::detect();
    FEATURES.iter().map(|feature| feature.name).filter(|name| found.has(name)).collect()
}

/// Nothing is known about the instructions of other architectures.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn detect() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// The kernel's list, where there is one: it may hide a feature, but adds none.
    #[test]
    fn cpuinfo_agrees() {
        let Ok(info) = std::fs::read_to_string("/proc/cpuinfo") else { return };
        let Some(flags) = info.lines().find_map(|line| line.strip_prefix("flags")) else { return };
        let flags: Vec<&str> = flags.split([' ', ':', '\t']).collect();
        let here = detect();
        for (ours, theirs) in FEATURES.iter().map(|feature| {
            let theirs = match feature.name {
                "sse4.1" => "sse4_1",
                "prefetchw" => "3dnowprefetch",
                other => other,
            };
            (feature.name, theirs)
        }) {
            if flags.contains(&theirs) {
                assert!(here.contains(&ours), "{theirs} is in /proc/cpuinfo; found {here:?}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = FEATURES.iter().map(|feature| feature.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FEATURES.len());
    }
}
