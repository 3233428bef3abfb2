//! The core events of each CPU family, as Linux's `tools/perf/pmu-events` (7.3) has them.

/// `PERF_TYPE_HARDWARE`: events that the kernel knows by a name of its own.
const HARDWARE: u32 = 0;
/// `PERF_TYPE_HW_CACHE`.
const HW_CACHE: u32 = 3;
/// `PERF_TYPE_RAW`: the CPU's own number, unit mask in bits 8 to 15, event in bits 0 to 7.
const RAW: u32 = 4;

const CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;
const CACHE_MISSES: u64 = 3;
/// `PERF_COUNT_HW_CACHE_LL`, read, access.
const LL_READ_ACCESS: u64 = 2;

/// The names of all core events, in the order of columns.
pub const NAMES: [&str; 7] = [
    "cycles",
    "instructions",
    "l1d-replacements",
    "llc-loads",
    "llc-misses",
    "l2-load-misses",
    "l3-load-misses",
];

/// What a name stands for on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// One of [`NAMES`].
    pub name: &'static str,
    /// The CPU's own name for it.
    pub source: &'static str,
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
}

/// The events of a CPU, by its signature (`GenuineIntel-6-143-8`). Names that have none there are
/// left out.
pub fn known(signature: &str) -> Vec<Event> {
    let event = |name, source, kind, config| Event { name, source, kind, config };
    let mut events = vec![
        event("cycles", "CPU cycles", HARDWARE, CYCLES),
        event("instructions", "retired instructions", HARDWARE, INSTRUCTIONS),
    ];
    let Some((vendor, family, model)) = parts(signature) else { return events };
    match (vendor, family) {
        ("GenuineIntel", 6) => {
            events.push(event("llc-loads", "LLC-loads (the kernel's)", HW_CACHE, LL_READ_ACCESS));
            events.push(event("llc-misses", "LONGEST_LAT_CACHE.MISS", HARDWARE, CACHE_MISSES));
            events.extend(intel(model));
        }
        ("AuthenticAMD" | "HygonGenuine", _) => events.extend(amd(family, model)),
        _ => {}
    }
    events
}

fn parts(signature: &str) -> Option<(&str, u32, u32)> {
    let mut parts = signature.split('-');
    let vendor = parts.next()?;
    Some((vendor, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Haswell-EP to Granite Rapids: the numbers have not changed, the names have.
fn intel(model: u32) -> Vec<Event> {
    let retired = match model {
        0x3f | 0x4f => ["MEM_LOAD_UOPS_RETIRED.L2_MISS", "MEM_LOAD_UOPS_RETIRED.L3_MISS"],
        0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 | 0x55 | 0x6a | 0x6c | 0x8f | 0xcf | 0xad
        | 0xae => ["MEM_LOAD_RETIRED.L2_MISS", "MEM_LOAD_RETIRED.L3_MISS"],
        _ => return Vec::new(),
    };
    let raw = |name, source, config| Event { name, source, kind: RAW, config };
    vec![
        raw("l1d-replacements", "L1D.REPLACEMENT", 0x0151),
        raw("l2-load-misses", retired[0], 0x10d1),
        raw("l3-load-misses", retired[1], 0x20d1),
    ]
}

/// Zen 2 and later. Their last-level cache's own counters belong to no process; where a fill of
/// the L1 came from is counted by the core.
fn amd(family: u32, model: u32) -> Vec<Event> {
    let raw = |name, source, config| Event { name, source, kind: RAW, config };
    match family {
        // Zen 2.
        0x17 if model >= 0x30 => vec![
            raw("l2-load-misses", "ls_refills_from_sys, all but local L2", 0x5a43),
            raw("l3-load-misses", "ls_refills_from_sys, DRAM and other die", 0x5843),
        ],
        // Zen 3; the rest of the family is Zen 4.
        0x19 if matches!(model >> 4, 0 | 2 | 4 | 5) => vec![
            raw("l1d-replacements", "ls_any_fills_from_sys, all", 0x5f44),
            raw("l2-load-misses", "ls_dmnd_fills_from_sys, all but local L2", 0x5e43),
            raw("l3-load-misses", "ls_dmnd_fills_from_sys, from outside the CCX", 0x5c43),
        ],
        0x19 | 0x1a => vec![
            raw("l1d-replacements", "ls_any_fills_from_sys.all", 0xff44),
            raw("l2-load-misses", "ls_dmnd_fills_from_sys, all but local L2", 0xde43),
            raw("l3-load-misses", "ls_dmnd_fills_from_sys, from outside the CCX", 0xdc43),
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(signature: &str, name: &str) -> Option<u64> {
        known(signature).iter().find(|event| event.name == name).map(|event| event.config)
    }

    #[test]
    fn servers_have_their_published_numbers() {
        for intel in ["GenuineIntel-6-85-7", "GenuineIntel-6-106-6", "GenuineIntel-6-207-2"] {
            assert_eq!(config(intel, "l1d-replacements"), Some(0x0151), "{intel}");
            assert_eq!(config(intel, "l2-load-misses"), Some(0x10d1), "{intel}");
            assert_eq!(config(intel, "l3-load-misses"), Some(0x20d1), "{intel}");
        }
        assert_eq!(config("AuthenticAMD-23-49-0", "l3-load-misses"), Some(0x5843));
        assert_eq!(config("AuthenticAMD-25-1-1", "l1d-replacements"), Some(0x5f44));
        assert_eq!(config("AuthenticAMD-25-17-1", "l1d-replacements"), Some(0xff44));
        assert_eq!(config("AuthenticAMD-26-2-1", "l2-load-misses"), Some(0xde43));
    }

    #[test]
    fn what_a_family_lacks_is_left_out() {
        assert_eq!(config("AuthenticAMD-26-2-1", "llc-misses"), None);
        // Sierra Forest's cores are of another kind.
        assert_eq!(config("GenuineIntel-6-175-3", "l1d-replacements"), None);
        assert_eq!(config("GenuineIntel-6-175-3", "llc-misses"), Some(CACHE_MISSES));
        for other in ["Arm-0-0-0", "", "None-x-0-0"] {
            assert_eq!(known(other).len(), 2, "{other}");
        }
    }

    #[test]
    fn every_event_has_a_column() {
        for signature in ["GenuineIntel-6-85-7", "AuthenticAMD-26-2-1", "AuthenticAMD-25-1-1"] {
            assert!(known(signature).iter().all(|event| NAMES.contains(&event.name)));
        }
    }
}
