//! CPUID, through a reader that tests can replace.

use raw_cpuid::{CacheType, CpuId, CpuIdReader};

use super::{Cache, CacheKind, Cpu, LegacyL3, legacy};

/// Everything but the vector features and sysfs, which are not CPUID's to tell.
pub(super) fn read<R: CpuIdReader>(reader: R) -> Cpu {
    let cpuid = CpuId::with_cpuid_reader(reader.clone());
    let vendor = cpuid.get_vendor_info().map_or_else(String::new, |v| v.as_str().to_owned());
    let model_name = cpuid
        .get_processor_brand_string()
        .map(|brand| brand.as_str().trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unnamed".to_owned());
    let id = cpuid.get_feature_info();
    let is_guest = id.as_ref().is_some_and(|id| id.has_hypervisor());
    Cpu {
        vendor,
        model_name,
        family: id.as_ref().map_or(0, |id| id.family_id().into()),
        model: id.as_ref().map_or(0, |id| id.model_id().into()),
        stepping: id.as_ref().map_or(0, |id| id.stepping_id().into()),
        hypervisor: is_guest.then(|| hypervisor(&reader)),
        caches: caches(&cpuid),
        sysfs_caches: Vec::new(),
        legacy_l3: legacy_l3(&cpuid),
        features: Vec::new(),
    }
}

/// The modern leaf: Intel 4, AMD `0x8000_001D`; both have the same layout.
fn caches<R: CpuIdReader>(cpuid: &CpuId<R>) -> Vec<Cache> {
    let mut caches: Vec<Cache> = cpuid
        .get_cache_parameters()
        .into_iter()
        .flatten()
        .filter_map(|found| {
            let kind = match found.cache_type() {
                CacheType::Data => CacheKind::Data,
                CacheType::Instruction => CacheKind::Instruction,
                CacheType::Unified => CacheKind::Unified,
                CacheType::Null | CacheType::Reserved => return None,
            };
            let size = found.associativity() as u64
                * found.physical_line_partitions() as u64
                * found.coherency_line_size() as u64
                * found.sets() as u64;
            Some(Cache {
                level: found.level(),
                kind,
                size_bytes: size,
                ways: found.associativity() as u32,
                line_bytes: found.coherency_line_size() as u32,
                sets: found.sets() as u32,
                shared_by_cpus: Some(found.max_cores_for_cache() as u32),
                inclusive: Some(found.is_inclusive()),
            })
        })
        .collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind));
    caches
}

/// What a C library finds that does not know the modern leaf.
fn legacy_l3<R: CpuIdReader>(cpuid: &CpuId<R>) -> Option<LegacyL3> {
    if let Some(info) = cpuid.get_l2_l3_cache_and_tlb_info() {
        // Units of 512 KiB (AMD's manual, volume 3, Fn8000_0006_EDX). Intel leaves it zero.
        let size_bytes = u64::from(info.l3cache_size()) * (512 << 10);
        if size_bytes > 0 {
            return Some(LegacyL3 { size_bytes, leaf: 0x8000_0006 });
        }
    }
    let descriptors = cpuid.get_cache_info()?.map(|info| info.num);
    let size_bytes = descriptors.filter_map(legacy::l3_bytes_of_descriptor).max()?;
    Some(LegacyL3 { size_bytes, leaf: 2 })
}

/// The twelve bytes of leaf `0x4000_0000`, without the zeros that pad them.
fn hypervisor<R: CpuIdReader>(reader: &R) -> String {
    let leaf = reader.cpuid1(0x4000_0000);
    let bytes: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|part| part.to_le_bytes()).collect();
    let text: String = bytes
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { *byte as char } else { '?' })
        .collect();
    let text = text.trim();
    if text.is_empty() { "unnamed".to_owned() } else { text.to_owned() }
}

/// Where CPUID announces a feature that needs nothing from the operating system.
struct Bit {
    name: &'static str,
    leaf: u32,
    register: fn(raw_cpuid::CpuIdResult) -> u32,
    bit: u32,
}

// Intel's manual, volume 2, CPUID; AMD's manual, volume 3, appendix E.
const BITS: &[Bit] = &[
    Bit { name: "erms", leaf: 7, register: |r| r.ebx, bit: 9 },
    Bit { name: "clflushopt", leaf: 7, register: |r| r.ebx, bit: 23 },
    Bit { name: "clwb", leaf: 7, register: |r| r.ebx, bit: 24 },
    Bit { name: "cldemote", leaf: 7, register: |r| r.ecx, bit: 25 },
    Bit { name: "movdiri", leaf: 7, register: |r| r.ecx, bit: 27 },
    Bit { name: "movdir64b", leaf: 7, register: |r| r.ecx, bit: 28 },
    Bit { name: "fsrm", leaf: 7, register: |r| r.edx, bit: 4 },
    Bit { name: "prefetchw", leaf: 0x8000_0001, register: |r| r.ecx, bit: 8 },
    Bit { name: "clzero", leaf: 0x8000_0008, register: |r| r.ebx, bit: 0 },
];

/// The features of [`BITS`] that are announced.
pub(super) fn bit_features<R: CpuIdReader>(reader: &R) -> Vec<&'static str> {
    let last_basic = reader.cpuid1(0).eax;
    let last_extended = reader.cpuid1(0x8000_0000).eax;
    BITS.iter()
        .filter(|bit| {
            // Beyond the last leaf an Intel CPU answers with the data of another one.
            let last = if bit.leaf < 0x8000_0000 { last_basic } else { last_extended };
            bit.leaf <= last && (bit.register)(reader.cpuid2(bit.leaf, 0)) >> bit.bit & 1 == 1
        })
        .map(|bit| bit.name)
        .collect()
}

#[cfg(test)]
#[path = "x86_tests.rs"]
mod tests;
