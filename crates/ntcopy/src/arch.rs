//! What is particular to an architecture, behind one table of ways to copy and one of ways to fill.
//!
//! [`COPY_BACKENDS`] and [`FILL_BACKENDS`] are all that the rest of the library knows of an
//! architecture, so that tests and benchmarks go through every way that there is. Another
//! architecture enters here: its own folder, its own two tables. Without one, both tables hold the
//! C library alone.

mod generic;
mod tables;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

use crate::path::Method;

pub(crate) use self::tables::Piece;
pub use self::tables::{CopyBackend, FillBackend};
#[cfg(not(target_arch = "x86_64"))]
use generic as here;
#[cfg(target_arch = "x86_64")]
use x86_64 as here;

/// Bytes of a cache line, on every CPU that the library has non-temporal stores for.
pub const LINE_BYTES: usize = 64;

/// Every way to copy that the architecture knows, whether or not this CPU has it.
pub static COPY_BACKENDS: &[CopyBackend] = here::COPY_BACKENDS;

/// Every way to fill that the architecture knows, whether or not this CPU has it.
pub static FILL_BACKENDS: &[FillBackend] = here::FILL_BACKENDS;

/// The way to copy that is a method, if the architecture knows it.
pub fn copy_backend(method: Method) -> Option<&'static CopyBackend> {
    COPY_BACKENDS.iter().find(|backend| backend.method == method)
}

/// The way to fill that is a method, if the architecture knows it.
pub fn fill_backend(method: Method) -> Option<&'static FillBackend> {
    FILL_BACKENDS.iter().find(|backend| backend.method == method)
}

/// Who made the CPU, as far as that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Vendor {
    /// Intel.
    Intel,
    /// AMD, and Hygon.
    Amd,
    /// Another, or unknown.
    Other,
}

/// What CPUID says that a policy can be made of. Sizes are in bytes, and 0 where it doesn't say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Who made the CPU.
    pub vendor: Vendor,
    /// Its family, extended family added; 0 if it doesn't say.
    pub family: u32,
    /// Whether a hypervisor says that it is there.
    pub is_guest: bool,
    /// Fast REP MOVSB and STOSB.
    pub has_erms: bool,
    /// Fast short REP MOVSB.
    pub has_fsrm: bool,
    /// AVX2, and the system saves its registers.
    pub has_avx2: bool,
    /// AVX-512F, and the system saves its registers.
    pub has_avx512: bool,
    /// AVX-512 VBMI2, which came with Ice Lake and Zen 4: earlier CPUs slow down all else by
    /// registers of 64 bytes.
    pub has_avx512_vbmi2: bool,
    /// MOVDIR64B.
    pub has_movdir64b: bool,
    /// CLZERO.
    pub has_clzero: bool,
    /// CLFLUSHOPT.
    pub has_clflushopt: bool,
    /// The level-1 data cache.
    pub l1d_bytes: u64,
    /// The level-2 cache; [`ASSUMED_L2_BYTES`] where it doesn't say.
    pub l2_bytes: u64,
    /// Logical CPUs that share the level-2 cache, at most.
    pub l2_shared_by_cpus: u32,
    /// The level-3 cache that one CPU sees.
    pub l3_bytes: u64,
    /// Logical CPUs that share the level-3 cache, at most; a hypervisor may say its guest's.
    pub l3_shared_by_cpus: u32,
}

/// A level-2 cache of which CPUID says nothing, as some hypervisors have it.
pub const ASSUMED_L2_BYTES: u64 = 1 << 20;

impl Facts {
    /// Asks the CPU that the calling thread runs on.
    pub fn detect() -> Facts {
        here::facts()
    }

    /// Whether the level-3 cache can't be what these CPUs have: a hypervisor shows a guest that of the
    /// whole socket, which others fill too. No Intel CPU has 8 MiB for each of its logical CPUs, and
    /// no AMD complex more than 96 MiB.
    pub fn is_l3_doubtful(&self) -> bool {
        let most_bytes = match self.vendor {
            Vendor::Amd => 96 << 20,
            Vendor::Intel | Vendor::Other => u64::from(self.l3_shared_by_cpus) * (8 << 20),
        };
        self.is_guest && self.l3_bytes > most_bytes
    }

    /// A CPU that says nothing.
    pub const UNKNOWN: Facts = Facts {
        vendor: Vendor::Other,
        family: 0,
        is_guest: false,
        has_erms: false,
        has_fsrm: false,
        has_avx2: false,
        has_avx512: false,
        has_avx512_vbmi2: false,
        has_movdir64b: false,
        has_clzero: false,
        has_clflushopt: false,
        l1d_bytes: 0,
        l2_bytes: ASSUMED_L2_BYTES,
        l2_shared_by_cpus: 1,
        l3_bytes: 0,
        l3_shared_by_cpus: 1,
    };
}
