//! The routines for one page.

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, _MM_HINT_NTA, _MM_HINT_T0, _mm_load_si128, _mm_prefetch, _mm_setzero_si128,
    _mm_stream_si128,
};

use ntcopy::Method;
use ntcopy::arch;

use super::page_nt::{self, PAGE_BYTES, Page, PageNt};
use crate::experiments::bulk::task::PageWay;

/// How far ahead of a copy the source is prefetched: as far as the kernel series does.
const AHEAD_BYTES: usize = 1024;
const VECTOR_BYTES: usize = size_of::<__m128i>();
const LINE_BYTES: usize = 64;

pub fn unavailable(way: PageWay) -> Option<String> {
    let is_here = match way {
        PageWay::Movdir64b | PageWay::Movnti => kind(way).is_some(),
        _ => true,
    };
    (!is_here).then(|| "this CPU does not have it".to_owned())
}

/// The project's assembly of that name, if this CPU has the instruction.
fn kind(way: PageWay) -> Option<&'static PageNt> {
    page_nt::available().iter().copied().find(|kind| kind.name() == way.as_str())
}

/// Clears every page of `to`, or copies those of `from`, if there are any, to it; one after the
/// other. What the CPU lacks does nothing, and that does not verify.
///
/// # Panics
///
/// If a side is not whole pages.
pub fn each_page(to: &mut [u8], from: &[u8], way: PageWay) {
    // SAFETY: any bytes make a page, and pages are bytes.
    let (to, from) = unsafe { (to.align_to_mut::<Page>(), from.align_to::<Page>()) };
    let is_whole = to.0.is_empty() && to.2.is_empty() && from.0.is_empty() && from.2.is_empty();
    assert!(is_whole, "memory of whole pages");
    let (to, from) = (to.1, from.1);
    if from.is_empty() { clear(to, way) } else { copy(to, from, way) }
}

fn clear(pages: &mut [Page], way: PageWay) {
    let pages = pages.iter_mut();
    match way {
        PageWay::RepB => pages.for_each(stosb),
        PageWay::RepQ => pages.for_each(stosq),
        PageWay::SseT0 | PageWay::SseNta => pages.for_each(sse_clear::<false>),
        PageWay::SseNtT0 | PageWay::SseNtNta => pages.for_each(sse_clear::<true>),
        PageWay::Movnti => {
            let Some(kind) = kind(way) else { return };
            pages.for_each(|page| {
                // It can clear; one that did not would not verify.
                let _ = kind.clear(std::slice::from_mut(page));
            });
        }
        PageWay::Movdir64b => {
            // The kernel series does not clear with it; the library's fill does, and fences.
            let Some(row) = arch::fill_backend(Method::Movdir64b) else { return };
            pages.for_each(|page| {
                let _ = row.fill(&mut page.0, 0);
            });
        }
    }
}

fn copy(to: &mut [Page], from: &[Page], way: PageWay) {
    let pages = to.iter_mut().zip(from);
    match way {
        PageWay::RepB => pages.for_each(|(to, from)| movsb(to, from)),
        PageWay::RepQ => pages.for_each(|(to, from)| movsq(to, from)),
        PageWay::SseT0 => pages.for_each(|(to, from)| sse_copy::<false, _MM_HINT_T0>(to, from)),
        PageWay::SseNta => pages.for_each(|(to, from)| sse_copy::<false, _MM_HINT_NTA>(to, from)),
        PageWay::SseNtT0 => pages.for_each(|(to, from)| sse_copy::<true, _MM_HINT_T0>(to, from)),
        PageWay::SseNtNta => pages.for_each(|(to, from)| sse_copy::<true, _MM_HINT_NTA>(to, from)),
        PageWay::Movnti | PageWay::Movdir64b => {
            let Some(kind) = kind(way) else { return };
            pages.for_each(|(to, from)| {
                // Both can copy; one that did not would not verify.
                let _ = kind.copy(std::slice::from_mut(to), std::slice::from_ref(from));
            });
        }
    }
}

fn stosb(to: &mut Page) {
    // SAFETY: the page is writable memory of as many bytes; the ABI keeps the direction flag clear.
    unsafe {
        asm!("rep stosb", inout("rcx") PAGE_BYTES => _, inout("rdi") &raw mut *to => _,
             in("al") 0_u8, options(nostack, preserves_flags));
    }
}

fn stosq(to: &mut Page) {
    // SAFETY: as for `stosb`, in words of 8 bytes.
    unsafe {
        asm!("rep stosq", inout("rcx") PAGE_BYTES / 8 => _, inout("rdi") &raw mut *to => _,
             in("rax") 0_u64, options(nostack, preserves_flags));
    }
}

fn movsb(to: &mut Page, from: &Page) {
    // SAFETY: both are pages, and apart, since one is borrowed for writing; the ABI keeps the
    // direction flag clear.
    unsafe {
        asm!("rep movsb", inout("rcx") PAGE_BYTES => _, inout("rdi") &raw mut *to => _,
             inout("rsi") &raw const *from => _, options(nostack, preserves_flags));
    }
}

fn movsq(to: &mut Page, from: &Page) {
    // SAFETY: as for `movsb`, in words of 8 bytes.
    unsafe {
        asm!("rep movsq", inout("rcx") PAGE_BYTES / 8 => _, inout("rdi") &raw mut *to => _,
             inout("rsi") &raw const *from => _, options(nostack, preserves_flags));
    }
}

fn sse_clear<const NONTEMPORAL: bool>(to: &mut Page) {
    let to = (&raw mut *to).cast::<__m128i>();
    for index in 0..PAGE_BYTES / VECTOR_BYTES {
        // SAFETY: the page is aligned for vectors and has that many; SSE2 is part of x86-64.
        unsafe { store::<NONTEMPORAL>(to.add(index), _mm_setzero_si128()) }
    }
    if NONTEMPORAL {
        page_nt::fence();
    }
}

fn sse_copy<const NONTEMPORAL: bool, const HINT: i32>(to: &mut Page, from: &Page) {
    let (to, from) = ((&raw mut *to).cast::<__m128i>(), (&raw const *from).cast::<__m128i>());
    const VECTORS: usize = LINE_BYTES / VECTOR_BYTES;
    for line in 0..PAGE_BYTES / LINE_BYTES {
        let first = line * VECTORS;
        // SAFETY: both pages are aligned for vectors and have that many, and are apart. A prefetch
        // reads nothing that a program could see, and no address makes it fault.
        unsafe {
            let ahead = from.add(first).wrapping_byte_add(AHEAD_BYTES);
            _mm_prefetch::<HINT>(ahead.cast());
            let vectors: [__m128i; VECTORS] =
                std::array::from_fn(|index| _mm_load_si128(from.add(first + index)));
            for (index, vector) in vectors.into_iter().enumerate() {
                store::<NONTEMPORAL>(to.add(first + index), vector);
            }
        }
    }
    if NONTEMPORAL {
        page_nt::fence();
    }
}

/// # Safety
///
/// - `to` is valid for a write of a vector, and aligned for one.
/// - After a non-temporal one, the caller fences before any other access to it.
#[inline(always)]
unsafe fn store<const NONTEMPORAL: bool>(to: *mut __m128i, vector: __m128i) {
    // SAFETY: the caller guarantees the memory, and the fence. Volatile, or the compiler makes a
    // call of memset() of such a loop.
    unsafe { if NONTEMPORAL { _mm_stream_si128(to, vector) } else { to.write_volatile(vector) } }
}
