//! The ways to clear and to copy that are compared.

use std::arch::asm;
use std::arch::x86_64::_mm_stream_si64;

use ntcopy::arch::x86_64::page_nt::{self, PAGE_BYTES, Page, PageNt};

/// What a way does. The temporal ones are what Linux 7.3 executes on a CPU with ERMS.
enum Kind {
    /// `clear_page()`, page by page.
    StosbPages,
    /// `clear_pages()` of the whole extent.
    StosbExtent,
    /// `copy_page()`, page by page.
    MovsqPages,
    /// `copy_mc_to_kernel()`, page by page: what a huge page's copy-on-write calls.
    MovsbPages,
    /// Not in the kernel: the whole extent.
    MovsbExtent,
    /// `clear_pages_nt()` of the whole extent.
    ClearNt(&'static PageNt),
    /// `copy_pages_nt()` of the whole extent.
    CopyNt(&'static PageNt),
    /// Not in the kernel: MOVDIR64B of a line of zeros.
    ClearMovdir64b,
    /// Not in the kernel: MOVNTI on a line each of four pages in turn.
    Interleaved,
}

/// A way and its name in the tables.
pub struct Way {
    pub name: String,
    kind: Kind,
}

/// The ways to clear, today's first.
pub fn clearing() -> Vec<Way> {
    let mut ways = vec![
        Way { name: "rep stosb, extent".into(), kind: Kind::StosbExtent },
        Way { name: "rep stosb, page".into(), kind: Kind::StosbPages },
    ];
    ways.extend(
        page_nt::available()
            .iter()
            .filter(|nt| nt.can_clear())
            .map(|nt| Way { name: nt.name().into(), kind: Kind::ClearNt(nt) }),
    );
    if page_nt::available().iter().any(|nt| nt.name() == "movdir64b") {
        ways.push(Way { name: "movdir64b of zeros".into(), kind: Kind::ClearMovdir64b });
    }
    ways
}

/// The ways to copy, today's first.
pub fn copying() -> Vec<Way> {
    let mut ways = vec![
        Way { name: "rep movsb, page".into(), kind: Kind::MovsbPages },
        Way { name: "rep movsq, page".into(), kind: Kind::MovsqPages },
        Way { name: "rep movsb, extent".into(), kind: Kind::MovsbExtent },
    ];
    ways.extend(
        page_nt::available()
            .iter()
            .filter(|nt| nt.can_copy())
            .map(|nt| Way { name: nt.name().into(), kind: Kind::CopyNt(nt) }),
    );
    ways.push(Way { name: "movnti, 4 pages in turn".into(), kind: Kind::Interleaved });
    ways
}

impl Way {
    /// Clears or copies `pages` pages, and fences what it streamed.
    ///
    /// # Safety
    ///
    /// - `to` is valid for writes of `pages` pages.
    /// - For a way to copy, `from` is valid for reads of as many, and they don't overlap.
    pub unsafe fn run(&self, to: *mut Page, from: *const Page, pages: usize) {
        let each = |one: unsafe fn(*mut Page, *const Page)| {
            for page in 0..pages {
                // SAFETY: the caller guarantees `pages` pages on the side or sides in use; the
                // clearing functions leave `from` alone, and adding to it wraps.
                unsafe { one(to.add(page), from.wrapping_add(page)) }
            }
        };
        // SAFETY: the caller guarantees the memory, and `fence` follows what streams.
        unsafe {
            match self.kind {
                Kind::StosbPages => each(|to, _| stosb(to, PAGE_BYTES)),
                Kind::StosbExtent => stosb(to, pages * PAGE_BYTES),
                Kind::MovsqPages => each(|to, from| movsq_page(to, from)),
                Kind::MovsbPages => each(|to, from| movsb(to, from, PAGE_BYTES)),
                Kind::MovsbExtent => movsb(to, from, pages * PAGE_BYTES),
                Kind::ClearNt(nt) => assert!(nt.clear_unfenced(to, pages)),
                Kind::CopyNt(nt) => assert!(nt.copy_unfenced(to, from, pages)),
                Kind::ClearMovdir64b => clear_movdir64b(to, pages * PAGE_BYTES),
                Kind::Interleaved => interleaved(to, from, pages),
            }
        }
        if self.streams() {
            page_nt::fence();
        }
    }
}

impl Way {
    fn streams(&self) -> bool {
        match self.kind {
            Kind::StosbPages | Kind::StosbExtent => false,
            Kind::MovsqPages | Kind::MovsbPages | Kind::MovsbExtent => false,
            Kind::ClearNt(_) | Kind::ClearMovdir64b | Kind::CopyNt(_) | Kind::Interleaved => true,
        }
    }
}

/// # Safety
///
/// `to` is valid for writes of `len_bytes`.
unsafe fn stosb(to: *mut Page, len_bytes: usize) {
    // SAFETY: the caller guarantees the memory; the ABI, that the direction flag is clear.
    unsafe {
        asm!("rep stosb", inout("rcx") len_bytes => _, inout("rdi") to => _, in("al") 0_u8,
             options(nostack, preserves_flags));
    }
}

/// # Safety
///
/// `to` is valid for writes and `from` for reads of `len_bytes`; they don't overlap.
unsafe fn movsb(to: *mut Page, from: *const Page, len_bytes: usize) {
    // SAFETY: the caller guarantees the memory; the ABI, that the direction flag is clear.
    unsafe {
        asm!("rep movsb", inout("rcx") len_bytes => _, inout("rdi") to => _,
             inout("rsi") from => _, options(nostack, preserves_flags));
    }
}

/// # Safety
///
/// `to` is valid for writes and `from` for reads; they don't overlap.
unsafe fn movsq_page(to: *mut Page, from: *const Page) {
    // SAFETY: the caller guarantees the memory; the ABI, that the direction flag is clear.
    unsafe {
        asm!("rep movsq", inout("rcx") PAGE_BYTES / 8 => _, inout("rdi") to => _,
             inout("rsi") from => _, options(nostack, preserves_flags));
    }
}

/// # Safety
///
/// `to` is valid for writes of `len_bytes`, which is a multiple of 64, and the CPU has MOVDIR64B.
unsafe fn clear_movdir64b(to: *mut Page, len_bytes: usize) {
    static ZEROS: Page = Page::ZERO;
    for offset in (0..len_bytes).step_by(64) {
        // SAFETY: `offset` + 64 is within `len_bytes`; a page of zeros has 64 bytes to load.
        unsafe {
            asm!("movdir64b {to}, [{zeros}]", to = in(reg) to.byte_add(offset),
                 zeros = in(reg) &raw const ZEROS, options(nostack, preserves_flags));
        }
    }
}

/// # Safety
///
/// `to` is valid for writes and `from` for reads of `pages` pages; they don't overlap.
unsafe fn interleaved(to: *mut Page, from: *const Page, pages: usize) {
    const LINE_WORDS: usize = 8;
    const PAGE_WORDS: usize = PAGE_BYTES / 8;
    for first in (0..pages).step_by(4) {
        for line in (0..PAGE_WORDS).step_by(LINE_WORDS) {
            for page in first..pages.min(first + 4) {
                for word in line..line + LINE_WORDS {
                    // SAFETY: `page` < `pages` and `word` < a page's words.
                    unsafe {
                        let value = from.add(page).cast::<i64>().add(word).read();
                        _mm_stream_si64(to.add(page).cast::<i64>().add(word), value);
                    }
                }
            }
        }
    }
}
