//! A policy out of CPUID alone.

use super::{Facts, NEVER, Policy, Vendor};
use crate::path::{Method, Prefetch, Turns};

const MIB: u64 = 1 << 20;

/// Most of a call of at least this is whole groups of pages. On an Emerald Rapids four pages in
/// turn copied 13.7 GB/s between memory, one after the other 11.7; within the caches there was no
/// difference.
const TURNS_FROM_BYTES: u64 = 64 << 10;

/// Where normal stores of 64 bytes with PREFETCHT0 take the place of the C library's `rep movsb`,
/// up to and with half of level 2. On a Xeon with MOVDIR64B they copied 64 KiB to 1 MiB into a
/// buffer in use 1.14 to 1.29 times as fast from a source that is in no cache, and 0.93 to 1.05 times
/// from one that is; 16 KiB from such a one 0.85 times.
const TEMPORAL_FROM_BYTES: u64 = 64 << 10;

/// Where a CPU doesn't say what caches it has.
const UNKNOWN_CACHE_BYTES: u64 = 32 * MIB;

/// C libraries go non-temporal from some fraction of the cache on, or from where a tunable says;
/// none that we know of does so below this.
const LIBC_TEMPORAL_BELOW_BYTES: u64 = MIB / 2;

impl Facts {
    /// The bytes of whole copies, and of whole fills, from which they outgrow what this CPU can
    /// count on to keep.
    ///
    /// - AMD's leaf describes the cache of one complex, and is right in guests too. A thread alone
    ///   may fill it; three quarters leave room for what else the program holds. A copy touches
    ///   twice its length, a fill once. On a Zen 4 with 32 MiB, copies of 8 MiB within the same
    ///   buffers made 31 GB/s by `rep movsb` and 24 past the caches, of 12 MiB 18 and 26.
    /// - Intel's describes the cache of the socket, which all its cores share: a quarter.
    /// - To an Intel guest it describes the same, but counts only the guest's own CPUs, and says
    ///   nothing of the neighbours. What such a CPU has to itself is level 2. On an Emerald Rapids
    ///   guest, copies from 2 MiB on and the fills of fresh memory of any size were fastest so;
    ///   fills of the same 4 to 64 MiB over and over, which the neighbours left room for, were a
    ///   quarter slower.
    fn outgrown_from_bytes(&self) -> (u64, u64) {
        let (copy, fill) = match self.vendor {
            Vendor::Intel if self.is_guest => (self.l2_bytes, 2 * self.l2_bytes),
            Vendor::Intel => (self.l3_bytes / 4, self.l3_bytes / 4),
            Vendor::Amd | Vendor::Other => (self.l3_bytes / 8 * 3, self.l3_bytes / 4 * 3),
        };
        match copy.max(self.l2_bytes) {
            0 => (UNKNOWN_CACHE_BYTES, UNKNOWN_CACHE_BYTES),
            copy => (copy, fill.max(self.l2_bytes)),
        }
    }
}

impl Policy {
    /// A policy out of what CPUID says.
    pub fn for_facts(facts: &Facts) -> Policy {
        if !cfg!(target_arch = "x86_64") {
            return Policy::LIBC;
        }
        let (copy_from_bytes, fill_from_bytes) = facts.outgrown_from_bytes();
        let wide = match facts {
            _ if facts.has_avx512 => Method::Avx512Nt,
            _ if facts.has_avx2 => Method::Avx2Nt,
            _ => Method::Sse2Nt,
        };
        // Between memory a Zen 5 copied 1.1 times as fast by stores of 32 bytes as by those of 64.
        let copies = match (facts.vendor, wide) {
            (Vendor::Amd, Method::Avx512Nt) => Method::Avx2Nt,
            _ => wide,
        };
        // The one kind that was measured: earlier ones with AVX-512 slow down by it.
        let is_recent_intel =
            facts.vendor == Vendor::Intel && facts.has_avx512 && facts.has_movdir64b;
        let (temporal_method, temporal_from_bytes, temporal_below_bytes) = if is_recent_intel {
            (Method::Avx512, TEMPORAL_FROM_BYTES, facts.l2_bytes / 2 + 1)
        } else {
            (Method::Libc, NEVER, NEVER)
        };
        // AMD's C library leaves `rep movsb` at the size of level 2, long before it pays to.
        let leaves_rep_early = facts.vendor == Vendor::Amd && facts.has_erms && facts.has_fsrm;
        Policy {
            copy_nontemporal_from_bytes: copy_from_bytes,
            fill_nontemporal_from_bytes: fill_from_bytes,
            copy_method: copies,
            copy_prefetch: prefetch(facts.vendor),
            nontemporal_source_prefetch: source_prefetch(facts.vendor),
            flush_source_from_bytes: flush_source_from_bytes(facts),
            turns: turns(facts.vendor, copies),
            turns_from_bytes: TURNS_FROM_BYTES,
            fill_method: wide,
            // CLZERO, too, was slower on the Zen 4: 78 GB/s, 512 MiB, and 82 by stores of 64 bytes.
            zero_method: wide,
            nontemporal_source_method: if facts.has_avx2 { Method::Avx2 } else { Method::Sse2 },
            rep_movsb_from_bytes: if leaves_rep_early { facts.l2_bytes } else { NEVER },
            rep_movsb_below_bytes: NEVER,
            temporal_method,
            temporal_from_bytes,
            temporal_below_bytes,
            rep_stosb_from_bytes: NEVER,
            rep_stosb_below_bytes: NEVER,
            libc_temporal_below_bytes: LIBC_TEMPORAL_BELOW_BYTES,
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
