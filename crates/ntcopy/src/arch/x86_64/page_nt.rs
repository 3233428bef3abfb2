//! The kernel's non-temporal page routines, in a program.
//!
//! The assembly is `kernel/asm/page_nt_64.S`: the same file, byte for byte, that the kernel patch
//! adds as `arch/x86/lib/page_nt_64.S`, so what is timed here is what runs there. The kernel
//! patches its calls at boot to suit the CPU; a program picks a [`PageNt`] out of [`available`].

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use super::cpuid::Features;

/// Bytes of a page, on every x86-64.
pub const PAGE_BYTES: usize = 4096;

/// Memory of one page, aligned as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(4096))]
pub struct Page(pub [u8; PAGE_BYTES]);

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
    let cpu = Features::detect();
    ALL.iter().filter(|kind| cpu.has(kind.feature)).collect()
});

/// Names of every kind, whether or not this CPU has it.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|kind| kind.name)
}

/// The kinds that this CPU has. [`PageNt::can_clear`] and [`PageNt::can_copy`] say what each is
/// good for; the kernel takes the last that is.
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

    /// Whether it can clear pages.
    pub fn can_clear(&self) -> bool {
        self.clear.is_some()
    }

    /// Whether it can copy pages.
    pub fn can_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// Fills pages with zeros, and fences. `false`, and nothing done, where this kind can't clear.
    #[must_use = "a kind that can't clear has done nothing"]
    pub fn clear(&self, pages: &mut [Page]) -> bool {
        // SAFETY: the slice is page-aligned memory that this call alone may use, and the fence
        // follows before it returns.
        let cleared = unsafe { self.clear_unfenced(pages.as_mut_ptr(), pages.len()) };
        fence();
        cleared
    }

    /// Copies pages, and fences. `false`, and nothing done, where this kind can't copy.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[must_use = "a kind that can't copy has done nothing"]
    pub fn copy(&self, to: &mut [Page], from: &[Page]) -> bool {
        assert_eq!(to.len(), from.len(), "pages to copy to and from");
        // SAFETY: both slices are page-aligned, of one length, and don't overlap, since one is
        // borrowed for writing; the fence follows before this returns.
        let copied = unsafe { self.copy_unfenced(to.as_mut_ptr(), from.as_ptr(), to.len()) };
        fence();
        copied
    }

    /// Fills `count` pages with zeros, unfenced. `false`, and nothing done, where this kind can't
    /// clear.
    ///
    /// # Safety
    ///
    /// - `start` is valid for writes of `count` pages and page-aligned.
    /// - The calling thread executes [`fence`] before any other access to the pages, its own included.
    #[must_use = "a kind that can't clear has done nothing"]
    pub unsafe fn clear_unfenced(&self, start: *mut Page, count: usize) -> bool {
        let Some(clear) = self.clear else { return false };
        if count > 0 {
            // SAFETY: the caller guarantees the memory and the fence; the length is not 0, and
            // the CPU has the instruction because only `available` hands out values of this type.
            unsafe { clear(start, count * PAGE_BYTES) }
        }
        true
    }

    /// Copies `count` pages, unfenced. `false`, and nothing done, where this kind can't copy.
    ///
    /// # Safety
    ///
    /// - `to` is valid for writes and `from` for reads of `count` pages, both page-aligned, and
    ///   they don't overlap.
    /// - The calling thread executes [`fence`] before any other access to the pages copied to, its own
    ///   included.
    #[must_use = "a kind that can't copy has done nothing"]
    pub unsafe fn copy_unfenced(&self, to: *mut Page, from: *const Page, count: usize) -> bool {
        let Some(copy) = self.copy else { return false };
        if count > 0 {
            // SAFETY: the caller guarantees both sides and the fence; the length is not 0, and
            // the CPU has the instruction because only `available` hands out values of this type.
            let left_bytes = unsafe { copy(to, from, count * PAGE_BYTES) };
            debug_assert_eq!(left_bytes, 0, "only the kernel survives lost memory");
        }
        true
    }
}
