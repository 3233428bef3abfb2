//! CPUID, through a reader that tests can replace.

use raw_cpuid::{CpuId, CpuIdReader};

use super::{Cache, CacheKind, Cpu, LegacyL3};
use crate::arch::x86_64::cpuid;

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
        caches: caches(&reader),
        sysfs_caches: Vec::new(),
        legacy_l3: legacy_l3(&cpuid),
        features: Vec::new(),
    }
}

/// The caches of the modern leaf, innermost first.
fn caches<R: CpuIdReader>(reader: &R) -> Vec<Cache> {
    let mut caches: Vec<Cache> = cpuid::caches(reader)
        .filter_map(|found| {
            let kind = match found.kind {
                1 => CacheKind::Data,
                cpuid::CODE => CacheKind::Instruction,
                3 => CacheKind::Unified,
                _ => return None,
            };
            Some(Cache {
                level: u8::try_from(found.level).ok()?,
                kind,
                size_bytes: found.bytes(),
                ways: found.ways,
                line_bytes: found.line_bytes,
                sets: found.sets,
                shared_by_cpus: Some(found.shared_by_cpus),
                inclusive: Some(found.is_inclusive),
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
    let size_bytes = descriptors.filter_map(l3_bytes_of_descriptor).max()?;
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

/// Level-3 bytes by descriptor of leaf 2, in which CPUs before leaf 4 describe caches by one byte
/// each (Intel's manual, volume 2, table "Encoding of CPUID Leaf 2 Descriptors"). `0x49` means
/// level 3 only on one Xeon of family 15, and is left out. A CPU that answers `0xff` says "see
/// leaf 4", and so has no entry here.
const L3_KIB: &[(u8, u64)] = &[
    (0x22, 512),
    (0x23, 1024),
    (0x25, 2048),
    (0x29, 4096),
    (0x46, 4096),
    (0x47, 8192),
    (0x4a, 6144),
    (0x4b, 8192),
    (0x4c, 12288),
    (0x4d, 16384),
    (0xd0, 512),
    (0xd1, 1024),
    (0xd2, 2048),
    (0xd6, 1024),
    (0xd7, 2048),
    (0xd8, 4096),
    (0xdc, 1536),
    (0xdd, 3072),
    (0xde, 6144),
    (0xe2, 2048),
    (0xe3, 4096),
    (0xe4, 8192),
    (0xea, 12288),
    (0xeb, 18432),
    (0xec, 24576),
];

/// The level-3 cache that a descriptor of leaf 2 stands for, in bytes.
fn l3_bytes_of_descriptor(descriptor: u8) -> Option<u64> {
    L3_KIB.iter().find(|(number, _)| *number == descriptor).map(|(_, kib)| kib << 10)
}

#[cfg(test)]
#[path = "x86_tests.rs"]
mod tests;
