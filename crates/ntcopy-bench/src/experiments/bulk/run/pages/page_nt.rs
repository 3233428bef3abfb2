//! The kernel's non-temporal page routines, in a program.
//!
//! The assembly is `kernel/asm/page_nt_64.S`: the same file, byte for byte, that the kernel patch
//! adds as `arch/x86/lib/page_nt_64.S`, so what is timed here is what runs there. The kernel
//! patches its calls at boot to suit the CPU; the bench picks a [`PageNt`] out of [`available`].

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use ntcopy::cpu::Cpu;

/// Bytes of a page, on every x86-64.
pub const PAGE_BYTES: usize = 4096;

/// Memory of one page, aligned as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(4096))]
pub struct Page(pub [u8; PAGE_BYTES]);

#[cfg(test)]
impl Page {
    /// A page of zeros.
    pub const ZERO: Page = Page([0; PAGE_BYTES]);
}

/// `page_nt_64.S`: `start` is page-aligned, `len_bytes` a multiple of the page and not 0.
type ClearPages = unsafe extern "C" fn(start: *mut Page, len_bytes: usize);
/// `page_nt_64.S`: `to` and `from` are page-aligned, `len_bytes` a multiple of the page and not 0.
/// Returns the bytes not copied, always 0 in a program.
type CopyPages = unsafe extern "C" fn(to: *mut Page, from: *const Page, len_bytes: usize) -> usize;

unsafe extern "C" {
    fn ntcopy_clear_pages_movnti(start: *mut Page, len_bytes: usize);
    fn ntcopy_copy_pages_movnti(to: *mut Page, from: *const Page, len_bytes: usize) -> usize;
    fn ntcopy_copy_pages_movdir64b(to: *mut Page, from: *const Page, len_bytes: usize) -> usize;
}

/// One kind of store, and what it can do to pages. To have one is to run on a CPU that has it.
#[derive(Debug)]
pub struct PageNt {
    name: &'static str,
    feature: &'static str,
    clear: Option<ClearPages>,
    copy: Option<CopyPages>,
}

/// Every kind in the assembly; of those that the CPU has, the kernel takes the last that can do
/// what is asked for.
static ALL: [PageNt; 2] = [
    PageNt {
        name: "movnti",
        feature: "sse2",
        clear: Some(ntcopy_clear_pages_movnti),
        copy: Some(ntcopy_copy_pages_movnti),
    },
    PageNt {
        name: "movdir64b",
        feature: "movdir64b",
        clear: None,
        copy: Some(ntcopy_copy_pages_movdir64b),
    },
];

static AVAILABLE: LazyLock<Vec<&'static PageNt>> = LazyLock::new(|| {
    let cpu = Cpu::detect();
    ALL.iter().filter(|kind| cpu.has(kind.feature)).collect()
});

/// The kinds that this CPU has; of those that can do what is asked for the kernel takes the last.
pub fn available() -> &'static [&'static PageNt] {
    &AVAILABLE
}

/// Orders all earlier non-temporal stores of this thread before its later stores.
pub fn fence() {
    // SAFETY: SFENCE is part of SSE, which x86-64 includes, and has no operands.
    unsafe { std::arch::x86_64::_mm_sfence() }
}

impl PageNt {
    /// The instruction, in lower case: `movnti` or `movdir64b`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Fills pages with zeros, and fences. `false`, and nothing done, where this kind can't clear.
    #[must_use = "a kind that can't clear has done nothing"]
    pub fn clear(&self, pages: &mut [Page]) -> bool {
        let Some(clear) = self.clear else { return false };
        if !pages.is_empty() {
            // SAFETY: the slice is page-aligned memory that this call alone may use, and not empty;
            // the CPU has the instruction because only `available` hands out values of this type;
            // the fence follows.
            unsafe { clear(pages.as_mut_ptr(), size_of_val(pages)) }
            fence();
        }
        true
    }

    /// Copies pages, and fences. `false`, and nothing done, where this kind can't copy.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[must_use = "a kind that can't copy has done nothing"]
    pub fn copy(&self, to: &mut [Page], from: &[Page]) -> bool {
        assert_eq!(to.len(), from.len(), "pages to copy to and from");
        let Some(copy) = self.copy else { return false };
        if !to.is_empty() {
            // SAFETY: both slices are page-aligned, of one length that is not 0, and don't overlap,
            // since one is borrowed for writing; the CPU has the instruction because only
            // `available` hands out values of this type; the fence follows.
            let left_bytes = unsafe { copy(to.as_mut_ptr(), from.as_ptr(), size_of_val(from)) };
            fence();
            debug_assert_eq!(left_bytes, 0, "only the kernel survives lost memory");
        }
        true
    }
}
