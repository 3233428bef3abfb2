//! SSE2, AVX2 and AVX-512: a line is four registers, two or one. Each has a row with normal stores
//! and one with non-temporal ones, which differ by that one instruction.

use core::arch::asm;

use super::lines::{Lines, T0_AHEAD_BYTES, TEMPORAL_AHEAD_BYTES};

/// One asm block: all loads, then all stores. A place is what is added to either address.
macro_rules! moves {
    ($to:ident, $from:ident, $load:literal, $store:literal,
     [$($register:tt $place:literal),+] $(, $name:ident = $stride:ident)*) => {
        asm!(
            $(concat!($load, " ", $register, ", [{from}", $place, "]"),)+
            $(concat!($store, " [{to}", $place, "], ", $register),)+
            to = in(reg) $to,
            from = in(reg) $from,
            $($name = const $stride,)*
            $(out($register) _,)+
            options(nostack, preserves_flags),
        )
    };
}

/// The row of one store.
macro_rules! row {
    ($isa:ident, $ahead:expr, $load:literal, $store:literal, $one:tt, $four:tt,
     $dirties:literal) => {
        pub(super) struct $isa;

        impl Lines for $isa {
            const AHEAD_BYTES: usize = $ahead;

            #[inline(always)]
            unsafe fn four<const A: usize, const B: usize>(to: *mut u8, from: *const u8) {
                // SAFETY: the caller guarantees the instructions and the lines.
                unsafe { moves!(to, from, $load, $store, $four, a = A, b = B) }
            }

            #[inline(always)]
            unsafe fn one(to: *mut u8, from: *const u8) {
                // SAFETY: the caller guarantees the instructions and the line.
                unsafe { moves!(to, from, $load, $store, $one) }
            }

            #[inline(always)]
            unsafe fn end() {
                if $dirties {
                    // SAFETY: the caller guarantees the instructions, and these are AVX's.
                    unsafe { clear_upper_halves() }
                }
            }
        }
    };
}

/// Both rows of a width.
macro_rules! rows {
    ($normal:ident $normal_store:literal, $streaming:ident $streaming_store:literal,
     $load:literal, one $one:tt, four $four:tt, dirties $dirties:literal) => {
        row!($normal, TEMPORAL_AHEAD_BYTES, $load, $normal_store, $one, $four, $dirties);
        row!($streaming, T0_AHEAD_BYTES, $load, $streaming_store, $one, $four, $dirties);
    };
}

rows! {
    Sse2 "movdqa", Sse2Nt "movntdq", "movdqu",
    one ["xmm0" "", "xmm1" " + 16", "xmm2" " + 32", "xmm3" " + 48"],
    four [
        "xmm0" "", "xmm1" " + 16", "xmm2" " + 32", "xmm3" " + 48",
        "xmm4" " + {a}", "xmm5" " + {a} + 16", "xmm6" " + {a} + 32", "xmm7" " + {a} + 48",
        "xmm8" " + {b}", "xmm9" " + {b} + 16", "xmm10" " + {b} + 32", "xmm11" " + {b} + 48",
        "xmm12" " + {a} + {b}", "xmm13" " + {a} + {b} + 16", "xmm14" " + {a} + {b} + 32",
        "xmm15" " + {a} + {b} + 48"
    ],
    dirties false
}

rows! {
    Avx2 "vmovdqa", Avx2Nt "vmovntdq", "vmovdqu",
    one ["ymm0" "", "ymm1" " + 32"],
    four [
        "ymm0" "", "ymm1" " + 32", "ymm2" " + {a}", "ymm3" " + {a} + 32",
        "ymm4" " + {b}", "ymm5" " + {b} + 32",
        "ymm6" " + {a} + {b}", "ymm7" " + {a} + {b} + 32"
    ],
    dirties true
}

// The registers from 16 on have no SSE halves, so that nothing has to be cleaned up afterwards.
rows! {
    Avx512 "vmovdqa64", Avx512Nt "vmovntdq", "vmovdqu64",
    one ["zmm16" ""],
    four ["zmm16" "", "zmm17" " + {a}", "zmm18" " + {b}", "zmm19" " + {a} + {b}"],
    dirties false
}

/// SSE instructions are slow while there is something in the upper halves of the AVX registers.
///
/// # Safety
///
/// The CPU has AVX.
#[inline(always)]
unsafe fn clear_upper_halves() {
    // SAFETY: the caller guarantees AVX; the lower halves keep what they hold, and the compiler
    // keeps nothing in the upper ones across a block that names the registers.
    unsafe {
        asm!(
            "vzeroupper",
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _,
            out("ymm5") _, out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _,
            out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _, out("ymm14") _,
            out("ymm15") _,
            options(nomem, nostack, preserves_flags),
        );
    }
}
