//! CPUID, through a reader that tests can replace.

use raw_cpuid::{CpuId, CpuIdReader};

use super::{Cache, CacheKind, Cpu};
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
        legacy_l3_bytes: legacy_l3_bytes(&cpuid),
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

/// What a C library finds on AMD that does not know the modern leaf.
fn legacy_l3_bytes<R: CpuIdReader>(cpuid: &CpuId<R>) -> Option<u64> {
    let info = cpuid.get_l2_l3_cache_and_tlb_info()?;
    // Units of 512 KiB (AMD's manual, volume 3, Fn8000_0006_EDX). Intel leaves it zero.
    Some(u64::from(info.l3cache_size()) * (512 << 10)).filter(|bytes| *bytes > 0)
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

#[cfg(test)]
#[path = "x86_tests.rs"]
mod tests;
