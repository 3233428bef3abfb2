//! What the CPU is: its CPUID signature, its caches, its non-temporal instructions.
//!
//! Caches come from two sources that can disagree, in guests above all: CPUID's modern leaf
//! ([`Cpu::caches`]) and the kernel's sysfs ([`Cpu::sysfs_caches`]). AMD's legacy leaf, which old
//! C libraries read, is kept beside them ([`Cpu::legacy_l3_bytes`]).

mod features;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use features::{FEATURES, Feature, Use};

use crate::arch::{Facts, Vendor};

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

impl CacheKind {
    /// The name used in records: `data`, `instruction`, `unified`.
    pub fn name(self) -> &'static str {
        match self {
            CacheKind::Data => "data",
            CacheKind::Instruction => "instruction",
            CacheKind::Unified => "unified",
        }
    }
}

/// One cache that a CPU sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1, 2, 3 or 4.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Ways of associativity; 0 if unknown.
    pub ways: u32,
    /// Bytes of a line; 0 if unknown.
    pub line_bytes: u32,
    /// Sets; 0 if unknown.
    pub sets: u32,
    /// Logical CPUs that share it. CPUID gives an upper bound (it counts the identifiers that
    /// the topology reserves), sysfs the CPUs that are online.
    pub shared_by_cpus: Option<u32>,
    /// Whether it includes the levels below it, where the source says so (CPUID does).
    pub inclusive: Option<bool>,
}

/// The CPU that this program runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cpu {
    /// CPUID's vendor string (`GenuineIntel`, `AuthenticAMD`); the architecture's name elsewhere.
    pub vendor: String,
    /// The CPU's own name for itself.
    pub model_name: String,
    /// Family, extended family added.
    pub family: u32,
    /// Model, extended model added.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// The hypervisor's CPUID signature (`KVMKVMKVM`), if CPUID says that this is a guest.
    pub hypervisor: Option<String>,
    /// Caches as CPUID's modern leaf says (Intel 4, AMD `0x8000_001D`), innermost first. Empty
    /// where the CPU has no such leaf.
    pub caches: Vec<Cache>,
    /// Caches of CPU 0 as the kernel says in sysfs, innermost first, where whoever asks reads that:
    /// the library does not.
    pub sysfs_caches: Vec<Cache>,
    /// Bytes of the level-3 cache by AMD's leaf `0x8000_0006`, where it says any: those of the whole
    /// socket, not of the share that a CPU sees.
    pub legacy_l3_bytes: Option<u64>,
    /// Names, out of [`FEATURES`], of what the CPU has and the operating system has enabled.
    pub features: Vec<&'static str>,
}

impl Cpu {
    /// Looks at the CPU that the calling thread runs on.
    pub fn detect() -> Cpu {
        let mut cpu = Cpu::by_cpuid();
        cpu.features = features::detect();
        cpu
    }

    /// What CPUID says.
    pub(crate) fn by_cpuid() -> Cpu {
        #[cfg(target_arch = "x86_64")]
        return x86::read(raw_cpuid::CpuIdReaderNative);
        #[cfg(not(target_arch = "x86_64"))]
        return Cpu::without_cpuid();
    }

    /// Vendor, family, model and stepping in one word: `GenuineIntel-6-207-2`.
    pub fn signature(&self) -> String {
        format!("{}-{}-{}-{}", self.vendor, self.family, self.model, self.stepping)
    }

    /// The last-level cache that one CPU sees: by CPUID's modern leaf, else by sysfs.
    pub fn llc(&self) -> Option<&Cache> {
        last_level(&self.caches).or_else(|| last_level(&self.sysfs_caches))
    }

    /// Bytes of the last-level cache that one CPU sees; 0 if that is not known.
    pub fn llc_bytes(&self) -> u64 {
        self.llc().map_or(0, |cache| cache.size_bytes)
    }

    /// Bytes of the level-3 cache that one CPU sees, if it has one.
    pub fn l3_bytes(&self) -> Option<u64> {
        self.llc().filter(|cache| cache.level == 3).map(|cache| cache.size_bytes)
    }

    /// Whether the CPU has a feature, by its name in [`FEATURES`].
    pub fn has(&self, feature: &str) -> bool {
        self.features.contains(&feature)
    }

    /// Why the size of the level-3 cache is not to be believed, in a sentence, if it isn't.
    pub fn doubt(&self) -> Option<String> {
        let l3 = self.caches.iter().find(|cache| cache.level == 3)?;
        let cpus = l3.shared_by_cpus.unwrap_or(1);
        let facts = Facts {
            vendor: match self.vendor.as_str() {
                "AuthenticAMD" | "HygonGenuine" => Vendor::Amd,
                _ => Vendor::Other,
            },
            is_guest: self.hypervisor.is_some(),
            l3_bytes: l3.size_bytes,
            l3_shared_by_cpus: cpus,
            ..Facts::UNKNOWN
        };
        facts.is_l3_doubtful().then(|| {
            format!(
                "CPUID says {} MiB of level-3 cache for {cpus} CPUs, which no such CPU has: the \
                 hypervisor shows the whole socket's, and other guests fill it too",
                l3.size_bytes >> 20
            )
        })
    }

    /// In which caches CPUID and sysfs disagree, a sentence each. Empty if either is silent.
    pub fn disagreements(&self) -> Vec<String> {
        if self.caches.is_empty() || self.sysfs_caches.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for cache in &self.caches {
            let name = format!("level {} {}", cache.level, cache.kind.name());
            let same = |other: &&Cache| (other.level, other.kind) == (cache.level, cache.kind);
            match self.sysfs_caches.iter().find(same) {
                None => found.push(format!("{name}: in CPUID, not in sysfs")),
                Some(other) if other.size_bytes != cache.size_bytes => found.push(format!(
                    "{name}: {} bytes by CPUID, {} by sysfs",
                    cache.size_bytes, other.size_bytes
                )),
                Some(_) => {}
            }
        }
        for other in &self.sysfs_caches {
            if !self.caches.iter().any(|c| (c.level, c.kind) == (other.level, other.kind)) {
                let kind = other.kind.name();
                found.push(format!("level {} {kind}: in sysfs, not in CPUID", other.level));
            }
        }
        found
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn without_cpuid() -> Cpu {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model_name = info
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| matches!(key.trim(), "model name" | "CPU part" | "cpu" | "uarch"))
            .map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned());
        Cpu {
            vendor: std::env::consts::ARCH.to_owned(),
            model_name,
            family: 0,
            model: 0,
            stepping: 0,
            hypervisor: None,
            caches: Vec::new(),
            sysfs_caches: Vec::new(),
            legacy_l3_bytes: None,
            features: Vec::new(),
        }
    }
}

fn last_level(caches: &[Cache]) -> Option<&Cache> {
    caches.iter().filter(|cache| cache.kind != CacheKind::Instruction).max_by_key(|c| c.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u8, kind: CacheKind, size_bytes: u64) -> Cache {
        Cache {
            level,
            kind,
            size_bytes,
            ways: 8,
            line_bytes: 64,
            sets: 64,
            shared_by_cpus: None,
            inclusive: None,
        }
    }

    fn some_cpu() -> Cpu {
        let caches = vec![
            cache(1, CacheKind::Data, 32 << 10),
            cache(1, CacheKind::Instruction, 32 << 10),
            cache(2, CacheKind::Unified, 1 << 20),
            cache(3, CacheKind::Unified, 32 << 20),
        ];
        Cpu {
            vendor: "AuthenticAMD".into(),
            model_name: "a test".into(),
            family: 26,
            model: 2,
            stepping: 1,
            hypervisor: None,
            sysfs_caches: caches.clone(),
            caches,
            legacy_l3_bytes: None,
            features: vec!["sse2"],
        }
    }

    #[test]
    fn this_cpu_has_a_name_and_caches() {
        let cpu = Cpu::detect();
        assert!(!cpu.vendor.is_empty() && !cpu.model_name.is_empty(), "{cpu:?}");
        assert!(cpu.caches.windows(2).all(|pair| pair[0].level <= pair[1].level), "{cpu:?}");
        if cfg!(target_arch = "x86_64") {
            assert!(cpu.has("sse2"), "every x86-64 CPU has it: {cpu:?}");
            assert_eq!(cpu.signature().split('-').count(), 4);
        }
    }

    #[test]
    fn the_last_level_is_never_an_instruction_cache_and_falls_back_on_sysfs() {
        let mut cpu = some_cpu();
        assert_eq!(cpu.llc_bytes(), 32 << 20);
        cpu.caches = vec![cache(4, CacheKind::Instruction, 1 << 30)];
        assert_eq!(cpu.llc_bytes(), 32 << 20);
        cpu.sysfs_caches.clear();
        assert_eq!((cpu.llc_bytes(), cpu.l3_bytes()), (0, None));
    }

    #[test]
    fn disagreements_name_the_cache_and_both_sizes() {
        let mut cpu = some_cpu();
        assert_eq!(cpu.disagreements(), Vec::<String>::new());
        cpu.sysfs_caches.remove(0);
        cpu.sysfs_caches[2].size_bytes = 384 << 20;
        cpu.sysfs_caches.push(cache(4, CacheKind::Unified, 1 << 30));
        assert_eq!(
            cpu.disagreements(),
            [
                "level 1 data: in CPUID, not in sysfs",
                "level 3 unified: 33554432 bytes by CPUID, 402653184 by sysfs",
                "level 4 unified: in sysfs, not in CPUID",
            ]
        );
    }

    #[test]
    fn a_cache_that_a_hypervisor_exaggerates_is_doubted() {
        let mut cpu = some_cpu();
        (cpu.vendor, cpu.hypervisor) = ("GenuineIntel".into(), Some("KVMKVMKVM".into()));
        cpu.caches[3] =
            Cache { shared_by_cpus: Some(2), ..cache(3, CacheKind::Unified, 480 << 20) };
        let doubt = cpu.doubt().unwrap();
        assert!(doubt.starts_with("CPUID says 480 MiB of level-3 cache for 2 CPUs"), "{doubt}");
        cpu.hypervisor = None;
        assert_eq!(cpu.doubt(), None, "CPUID is the CPU's own there");
        assert_eq!(some_cpu().doubt(), None);
    }

    #[test]
    fn the_signature_is_one_word() {
        assert_eq!(some_cpu().signature(), "AuthenticAMD-26-2-1");
    }
}
