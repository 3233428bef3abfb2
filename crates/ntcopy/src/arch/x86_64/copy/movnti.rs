//! MOVNTI, 8 bytes: a line is eight stores, back to back. Every x86-64 CPU has it, and it needs no
//! vector register; it is what the kernel copies with.

use core::arch::asm;

use super::lines::Lines;

pub(super) struct Movnti;

impl Lines for Movnti {
    #[inline(always)]
    unsafe fn four<const A: usize, const B: usize>(to: *mut u8, from: *const u8) {
        // Thirty-two registers for all four don't exist; line by line, then.
        for at in [0, A, B, A + B] {
            // SAFETY: the caller guarantees the lines.
            unsafe { Movnti::one(to.add(at), from.add(at)) }
        }
    }

    #[inline(always)]
    unsafe fn one(to: *mut u8, from: *const u8) {
        // SAFETY: MOVNTI is part of SSE2, which x86-64 includes; the caller guarantees the line.
        unsafe {
            asm!(
                "mov {a}, [{from}]",
                "mov {b}, [{from} + 8]",
                "mov {c}, [{from} + 16]",
                "mov {d}, [{from} + 24]",
                "movnti [{to}], {a}",
                "movnti [{to} + 8], {b}",
                "movnti [{to} + 16], {c}",
                "movnti [{to} + 24], {d}",
                "mov {a}, [{from} + 32]",
                "mov {b}, [{from} + 40]",
                "mov {c}, [{from} + 48]",
                "mov {d}, [{from} + 56]",
                "movnti [{to} + 32], {a}",
                "movnti [{to} + 40], {b}",
                "movnti [{to} + 48], {c}",
                "movnti [{to} + 56], {d}",
                to = in(reg) to,
                from = in(reg) from,
                a = out(reg) _,
                b = out(reg) _,
                c = out(reg) _,
                d = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
    }
}
