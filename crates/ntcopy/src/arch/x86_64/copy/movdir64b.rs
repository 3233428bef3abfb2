//! MOVDIR64B: a line from memory to memory in one instruction, never torn.

use core::arch::asm;

use super::lines::Lines;

pub(super) struct Movdir64b;

impl Lines for Movdir64b {
    #[inline(always)]
    unsafe fn four<const A: usize, const B: usize>(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instruction and the lines; the destination is a
        // register's content, so that the addresses are computed first.
        unsafe {
            asm!(
                "movdir64b {to0}, [{from}]",
                "movdir64b {to1}, [{from} + {a}]",
                "movdir64b {to2}, [{from} + {b}]",
                "movdir64b {to3}, [{from} + {a} + {b}]",
                to0 = in(reg) to,
                to1 = in(reg) to.add(A),
                to2 = in(reg) to.add(B),
                to3 = in(reg) to.add(A + B),
                from = in(reg) from,
                a = const A,
                b = const B,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn one(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the instruction and the line.
        unsafe {
            asm!("movdir64b {to}, [{from}]", to = in(reg) to, from = in(reg) from,
                 options(nostack, preserves_flags));
        }
    }
}

/// The machine code on a CPU without the instruction: what it traps to does what Intel's manual says
/// of the bytes that are there.
#[cfg(all(test, feature = "std", target_os = "linux"))]
mod tests {
    use std::ffi::{c_int, c_void};
    use std::sync::Once;

    use super::*;
    use crate::arch::Piece;
    use crate::arch::x86_64::copy::lines;
    use crate::arch::x86_64::cpuid;
    use crate::{Method, Path, Prefetch, Turns};

    /// The general registers in the order of their numbers, as a signal's context has them.
    const REGISTERS: [c_int; 16] = {
        use ::libc::*;
        [
            REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, REG_R8, REG_R9,
            REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
        ]
    };

    /// Does `66 [REX] 0F 38 F8 /r` with a base register and a displacement; anything else ends the
    /// process, as without a handler.
    extern "C" fn execute(_: c_int, _: *mut ::libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel passes a context that it restores; the instruction's bytes are mapped,
        // since they were fetched; its operands are what the copy's caller guarantees.
        unsafe {
            let registers = &mut (*context.cast::<::libc::ucontext_t>()).uc_mcontext.gregs;
            let start = registers[::libc::REG_RIP as usize] as *const u8;
            let byte = |at: usize| start.add(at).read();
            let rex = if byte(1) & 0xf0 == 0x40 { byte(1) } else { 0 };
            let at = 1 + usize::from(rex != 0);
            let modrm = byte(at + 3);
            let (mode, base) = (modrm >> 6, modrm & 7);
            let is_it =
                byte(0) == 0x66 && (byte(at), byte(at + 1), byte(at + 2)) == (0x0f, 0x38, 0xf8);
            if !is_it || mode == 3 || base == 5 && mode == 0 {
                ::libc::abort();
            }
            // A base of 4 is a byte of its own, which says the same register and no index.
            let past_base = at + 4 + usize::from(base == 4);
            if base == 4 && byte(at + 4) & 0x3f != 0x24 {
                ::libc::abort();
            }
            let (displacement, len) = match mode {
                0 => (0, past_base),
                1 => (i64::from(byte(past_base) as i8), past_base + 1),
                _ => {
                    (i64::from(start.add(past_base).cast::<i32>().read_unaligned()), past_base + 4)
                }
            };
            let value = |number: u8| registers[REGISTERS[usize::from(number)] as usize];
            let from = value(base | (rex & 1) << 3) + displacement;
            let to = value((modrm >> 3 & 7) | (rex & 4) << 1);
            assert!(to % 64 == 0, "an unaligned destination faults");
            std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, 64);
            registers[::libc::REG_RIP as usize] += len as i64;
        }
    }

    /// A hypervisor may hide the instruction and the CPU execute it all the same; then nothing traps.
    fn trap_where_it_is_not() {
        static INSTALLED: Once = Once::new();
        if cpuid::movdir64b() {
            return;
        }
        INSTALLED.call_once(|| {
            // SAFETY: the action is whole, and its handler calls nothing that a signal may not.
            unsafe {
                let mut action: ::libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = execute as *const () as usize;
                action.sa_flags = ::libc::SA_SIGINFO;
                assert_eq!(::libc::sigaction(::libc::SIGILL, &action, std::ptr::null_mut()), 0);
            }
        });
    }

    fn path(prefetch: Prefetch, turns: Turns) -> Path {
        Path { method: Method::Movdir64b, prefetch, turns }
    }

    #[test]
    fn the_code_copies_on_any_cpu() {
        trap_where_it_is_not();
        let source: Vec<u8> = (0..80_000_usize).map(|at| (at * 7 + at / 64 * 31) as u8).collect();
        for turns in Turns::ALL {
            for (to_at, from_at, len_bytes) in [
                (128, 0, 70_000),
                (129, 3, 65_536),
                (190, 63, 33_000),
                (140, 8, 100),
                (128, 1, 4096),
            ] {
                let mut to = vec![0xa5; 128 + 80_000];
                // SAFETY: both sides have the length; the fence follows.
                unsafe {
                    let (to, from) = (to.as_mut_ptr().add(to_at), source.as_ptr().add(from_at));
                    lines::copy::<Movdir64b>(to, from, len_bytes, path(Prefetch::None, turns));
                }
                crate::fence();
                let what = format!("{} {len_bytes} from {from_at} to {to_at}", turns.name());
                assert!(to[to_at..][..len_bytes] == source[from_at..][..len_bytes], "{what}");
                assert!(
                    to[..to_at].iter().chain(&to[to_at + len_bytes..]).all(|byte| *byte == 0xa5)
                );
            }
        }
    }

    #[test]
    fn so_do_pieces_in_turn() {
        trap_where_it_is_not();
        let source: Vec<u8> = (0..20_000_usize).map(|at| (at * 13 + at / 64 * 5) as u8).collect();
        let mut to = vec![0xa5; 20_000];
        let cuts = [(0, 4096), (4096, 4000), (8096, 1500), (9596, 5001)];
        let start = to.as_mut_ptr();
        let pieces = cuts.map(|(at, len_bytes)| Piece {
            // SAFETY: all of it is within the buffers.
            to: unsafe { start.add(at + 1) },
            from: source[at..].as_ptr(),
            len_bytes,
        });
        // SAFETY: the pieces are within the buffers, and none overlaps another; the fence follows.
        unsafe { lines::copy_pieces::<Movdir64b>(&pieces, path(Prefetch::T0, Turns::of(4, 64))) }
        crate::fence();
        assert!(to[1..14_598] == source[..14_597]);
        assert!(to[0] == 0xa5 && to[14_598..].iter().all(|byte| *byte == 0xa5));
    }
}
