//! A policy out of CPUID alone.

use super::{Facts, NEVER, Policy, Vendor};
use crate::path::{Method, Prefetch, Turns};

const MIB: u64 = 1 << 20;

/// Most of a call of at least this is whole groups of pages. On an Emerald Rapids four pages in
/// turn copied 13.7 GB/s between memory, one after the other 11.7; within the caches there was no
/// difference.
const TURNS_FROM_BYTES: u64 = 64 << 10;

/// Where normal stores of 64 bytes with PREFETCHT0 take the place of the C library's `rep movsb`,
/// up to and with half of level 2, if the source is cold. On a Xeon with MOVDIR64B they copied
/// 64 KiB to 1 MiB into a buffer in use 1.14 to 1.29 times as fast from a source that is in no cache,
/// and 0.91 to 1.05 times from one that is.
const TEMPORAL_FROM_BYTES: u64 = 64 << 10;

/// Where a level-3 cache is not known, or not what CPUID says, a whole of this many bytes surely
/// outgrows it: a guest that is shown 480 MiB for two CPUs copied 16 MiB within the same buffers
/// 1.06 times as fast by the C library as past the caches, and 64 MiB 0.58 times.
const UNKNOWN_OUTGROWN_BYTES: u64 = 64 * MIB;

/// No copy or fill of fewer bytes is non-temporal by itself, whatever CPUID says.
const LEAST_NONTEMPORAL_BYTES: u64 = MIB;

/// C libraries go non-temporal from some fraction of the cache on, or from where a tunable says;
/// none that we know of does so below this.
const LIBC_TEMPORAL_BELOW_BYTES: u64 = MIB / 2;

impl Facts {
    /// The bytes of a whole from which it surely outgrows the caches.
    ///
    /// Below it a call that goes past them wins where they hold neither side, and loses where they do
    /// or where the bytes are read next; the library can't know which, and so it is the C library's.
    /// On a Zen 4 with 32 MiB, copies past the caches that are then read were 0.52 to 1.12 times as
    /// fast at 4 to 16 MiB, 0.82 to 1.25 at 24 and 32, and 0.99 to 1.31 at 64.
    fn outgrown_from_bytes(&self) -> u64 {
        let bytes = match self.l3_bytes {
            0 => UNKNOWN_OUTGROWN_BYTES,
            l3_bytes if self.is_l3_doubtful() => UNKNOWN_OUTGROWN_BYTES.min(2 * l3_bytes),
            l3_bytes => 2 * l3_bytes,
        };
        bytes.max(self.l2_bytes).max(LEAST_NONTEMPORAL_BYTES)
    }
}

impl Policy {
    /// A policy out of what CPUID says.
    pub fn for_facts(facts: &Facts) -> Policy {
        if !cfg!(target_arch = "x86_64") {
            return Policy::LIBC;
        }
        let outgrown_from_bytes = facts.outgrown_from_bytes();
        let has_fast_avx512 = facts.has_avx512 && facts.has_avx512_vbmi2;
        let wide = match facts {
            _ if has_fast_avx512 => Method::Avx512Nt,
            _ if facts.has_avx2 => Method::Avx2Nt,
            _ => Method::Sse2Nt,
        };
        // Between memory a Zen 5 copied 1.1 times as fast by stores of 32 bytes as by those of 64.
        let copies = match (facts.vendor, wide) {
            (Vendor::Amd, Method::Avx512Nt) => Method::Avx2Nt,
            _ => wide,
        };
        // The one kind that was measured.
        let is_recent_intel =
            facts.vendor == Vendor::Intel && has_fast_avx512 && facts.has_movdir64b;
        let temporal = if facts.has_avx2 { Method::Avx2 } else { Method::Sse2 };
        let (temporal_method, temporal_from_bytes, temporal_below_bytes) = if is_recent_intel {
            (Method::Avx512, TEMPORAL_FROM_BYTES, facts.l2_bytes / 2 + 1)
        } else {
            (Method::Libc, NEVER, NEVER)
        };
        // On a Zen 4 it copied 1 to 4 MiB 0.95 times as fast as the C library.
        let is_rep_fast = facts.has_erms && facts.vendor != Vendor::Amd;
        Policy {
            copy_nontemporal_from_bytes: outgrown_from_bytes,
            fill_nontemporal_from_bytes: outgrown_from_bytes,
            copy_method: copies,
            copy_prefetch: prefetch(facts.vendor),
            nontemporal_source_prefetch: source_prefetch(facts.vendor),
            flush_source_from_bytes: flush_source_from_bytes(facts),
            turns: turns(facts.vendor, copies),
            turns_from_bytes: TURNS_FROM_BYTES,
            fill_method: wide,
            // CLZERO, too, was slower on the Zen 4: 78 GB/s, 512 MiB, and 82 by stores of 64 bytes.
            zero_method: wide,
            nontemporal_source_method: temporal,
            rep_movsb_from_bytes: NEVER,
            rep_movsb_below_bytes: NEVER,
            temporal_method,
            temporal_from_bytes,
            temporal_below_bytes,
            rep_stosb_from_bytes: NEVER,
            rep_stosb_below_bytes: NEVER,
            libc_temporal_below_bytes: LIBC_TEMPORAL_BELOW_BYTES,
            insisted_copy_method: if is_rep_fast { Method::RepMovsb } else { temporal },
            insisted_fill_method: if facts.has_erms { Method::RepStosb } else { Method::RepStosq },
        }
    }
}

/// Which pages the copies of a method take in turn: what `scripts/record.sh turns` found best,
/// machine by machine (`docs/design/copy.md`, "The loop").
pub(crate) fn turns(vendor: Vendor, method: Method) -> Turns {
    match (vendor, method) {
        (Vendor::Amd, _) => Turns::NONE,
        (_, Method::Movdir64b) => Turns::of(4, 128),
        _ => Turns::of(4, 64),
    }
}

/// How a non-temporal copy reads ahead. On a Zen 5 the hardware does it well: copies between memory
/// made 0.88 to 0.90 of their speed with PREFETCHT0 (no record kept).
fn prefetch(vendor: Vendor) -> Prefetch {
    match vendor {
        Vendor::Amd => Prefetch::None,
        Vendor::Intel | Vendor::Other => Prefetch::T0,
    }
}

/// How it reads a source that need not be kept.
fn source_prefetch(vendor: Vendor) -> Prefetch {
    match vendor {
        Vendor::Amd => Prefetch::Nta,
        Vendor::Intel | Vendor::Other => Prefetch::T0,
    }
}

/// The length from which it flushes that source: on a Zen 4, the one kind that was measured, which
/// family and AVX-512 tell. There PREFETCHNTA keeps nothing out of level 2 (a hot set of half of it
/// between copies of 1 MiB: 5.7 ns per line when idle, 11.2 with stores past the caches alone, 11.0
/// with PREFETCHNTA, 5.6 flushed). A source of less than a quarter of level 2 takes little away.
fn flush_source_from_bytes(facts: &Facts) -> u64 {
    let is_zen4 = facts.vendor == Vendor::Amd && facts.family == 0x19 && facts.has_avx512;
    if is_zen4 && facts.has_clflushopt { facts.l2_bytes / 4 } else { NEVER }
}
