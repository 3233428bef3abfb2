//! What the calls promise beyond the bytes: ordering, accounting, and no touch beyond the ends.

mod common;

use std::io::{IoSlice, IoSliceMut};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::{ptr, thread};

use common::{copy_backends, fill_backends, pattern};
use ntcopy::{Hint, Hints, Path, Policy, Stream, copy, copy_vectored, fill};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

const PAGE_BYTES: usize = 4096;

/// Pages between two that may not be touched.
struct Fenced {
    start: *mut u8,
    len_bytes: usize,
}

impl Fenced {
    fn new(len_bytes: usize) -> Fenced {
        assert!(len_bytes.is_multiple_of(PAGE_BYTES));
        let all_bytes = len_bytes + 2 * PAGE_BYTES;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing
        // that exists; the protection changes two pages of that mapping.
        unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            let map =
                mmap_anonymous(ptr::null_mut(), all_bytes, protection, MapFlags::PRIVATE).unwrap();
            mprotect(map, PAGE_BYTES, MprotectFlags::empty()).unwrap();
            let last = map.byte_add(all_bytes - PAGE_BYTES);
            mprotect(last, PAGE_BYTES, MprotectFlags::empty()).unwrap();
            Fenced { start: map.cast::<u8>().add(PAGE_BYTES), len_bytes }
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is readable, writable and initialised by the kernel, and is
        // borrowed for as long as the slice is.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len_bytes) }
    }

    /// `len_bytes` that end where the forbidden page begins.
    fn last(&mut self, len_bytes: usize) -> &mut [u8] {
        let from = self.len_bytes - len_bytes;
        &mut self.bytes()[from..]
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with these bounds, and no slice outlives `self`.
        unsafe {
            munmap(self.start.sub(PAGE_BYTES).cast(), self.len_bytes + 2 * PAGE_BYTES).unwrap();
        }
    }
}

/// Guard bytes see what is written beyond the ends, and forbidden pages what is read there.
#[test]
fn nothing_beyond_either_end_is_touched() {
    const LEN_BYTES: usize = 8 * PAGE_BYTES;
    let (mut to, mut from) = (Fenced::new(LEN_BYTES), Fenced::new(LEN_BYTES));
    from.bytes().copy_from_slice(&pattern(LEN_BYTES, 5));
    let lengths = (0..600).chain([LEN_BYTES - 65, LEN_BYTES - 1, LEN_BYTES]);
    for len_bytes in lengths {
        for backend in copy_backends() {
            for path in backend.paths() {
                assert!(backend.copy(to.last(len_bytes), from.last(len_bytes), path));
                assert!(
                    to.last(len_bytes) == from.last(len_bytes),
                    "{path}, {len_bytes} at the end"
                );
                let (first, source) = (&mut to.bytes()[..len_bytes], &from.bytes()[..len_bytes]);
                assert!(backend.copy(first, source, path));
                assert!(first == source, "{path}, {len_bytes} at the start");
            }
        }
        for backend in fill_backends() {
            assert!(backend.fill(to.last(len_bytes), 0));
            assert!(backend.fill(&mut to.bytes()[..len_bytes], 0));
        }
    }
}

/// A reader that learns of a buffer by an ordinary release store finds it whole.
#[test]
fn what_is_published_after_the_fence_is_there() {
    const SLOTS: usize = 8;
    const ROUNDS: usize = 4_000;
    const LEN_BYTES: usize = 4096 + 17;
    const GIVEN_UP: usize = usize::MAX / 2;
    let sources: Vec<Vec<u8>> = (0..SLOTS).map(|slot| vec![slot as u8 + 1; LEN_BYTES]).collect();
    let mut slots: Vec<Vec<u8>> = vec![vec![0; LEN_BYTES]; SLOTS];
    let pointers: Vec<AtomicPtr<u8>> =
        slots.iter_mut().map(|slot| AtomicPtr::new(slot.as_mut_ptr())).collect();
    let (published, consumed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let streamed = AtomicUsize::new(0);
    let stale = thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                while round >= consumed.load(Ordering::Acquire) + SLOTS {
                    thread::yield_now();
                }
                if consumed.load(Ordering::Acquire) == GIVEN_UP {
                    return;
                }
                let to = pointers[round % SLOTS].load(Ordering::Relaxed);
                // SAFETY: the reader has given this slot back, and takes none that isn't
                // published.
                let to = unsafe { std::slice::from_raw_parts_mut(to, LEN_BYTES) };
                let source = &sources[(round * 5 + round / SLOTS) % SLOTS];
                let path = if round % 3 == 0 {
                    fill(to, source[0], Hint::Nontemporal)
                } else {
                    copy(to, source, Hints::NONTEMPORAL)
                };
                streamed.fetch_add(usize::from(path.is_nontemporal()), Ordering::Relaxed);
                published.store(round + 1, Ordering::Release);
            }
        });
        for round in 0..ROUNDS {
            while published.load(Ordering::Acquire) <= round {
                thread::yield_now();
            }
            let from = pointers[round % SLOTS].load(Ordering::Relaxed);
            // SAFETY: the slot is published, and the writer waits for it to be given back.
            let got = unsafe { std::slice::from_raw_parts(from, LEN_BYTES) };
            let expected = ((round * 5 + round / SLOTS) % SLOTS) as u8 + 1;
            if let Some(at) = got.iter().rposition(|&byte| byte != expected) {
                // A panic here would leave the writer waiting for ever.
                consumed.store(GIVEN_UP, Ordering::Release);
                return Some((round, at));
            }
            consumed.store(round + 1, Ordering::Release);
        }
        None
    });
    assert_eq!(stale, None, "the round and the byte that was still an earlier round's");
    let all = if cfg!(target_arch = "x86_64") { ROUNDS } else { 0 };
    if !is_overridden() {
        assert_eq!(streamed.into_inner(), all, "rounds that streamed");
    }
}

#[test]
fn a_stream_is_judged_by_its_whole() {
    let policy = Policy::for_cpu();
    let from_bytes = policy.copy_nontemporal_from_bytes;
    if !cfg!(target_arch = "x86_64") || is_overridden() {
        println!("not run: the paths are not this CPU's own");
        return;
    }
    let (source, mut destination) = (vec![1; 65_536], vec![0; 65_536]);

    let mut known = Stream::known(from_bytes, Hints::AUTO);
    assert!(known.copy(&mut destination, &source).is_nontemporal(), "from the first piece on");
    let mut below = Stream::known(from_bytes - 1, Hints::AUTO);
    assert!(!below.copy(&mut destination, &source).is_nontemporal());

    let mut growing = Stream::growing(Hints::AUTO);
    let pieces = from_bytes.div_ceil(65_536);
    let paths: Vec<Path> = (0..pieces).map(|_| growing.copy(&mut destination, &source)).collect();
    assert!(paths[..paths.len() - 1].iter().all(|path| !path.is_nontemporal()));
    assert!(paths[paths.len() - 1].is_nontemporal(), "once it has grown");
    let moved = growing.finish();
    assert_eq!((moved.bytes, moved.nontemporal_bytes), (pieces * 65_536, 65_536));
}

/// Whether the paths may be others than this CPU's own.
fn is_overridden() -> bool {
    std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("NTCOPY_"))
}

#[test]
fn io_slices_of_any_cut() {
    let (mut first, mut second) = ([0; 3], [0; 4]);
    let mut to = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    let from = [IoSlice::new(b""), IoSlice::new(b"abcde"), IoSlice::new(b"f")];
    let moved = copy_vectored(&mut to, &from, Hints::NONTEMPORAL);
    assert_eq!((moved.bytes, moved.nontemporal_bytes), (6, 0));
    assert_eq!((&first, &second), (b"abc", b"def\0"));
}

/// Gives another slice to read than to write, as safe code may.
struct Odd<'a> {
    written: &'a mut [u8],
    read: &'a [u8],
}

impl Deref for Odd<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.read
    }
}

impl DerefMut for Odd<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.written
    }
}

#[test]
fn what_differs_from_one_dereference_to_the_next_is_written_within_its_bounds() {
    let (source, mut memory) = (vec![0x41; 4096], vec![7; 4096]);
    for hints in [Hints::AUTO, Hints::NONTEMPORAL] {
        let mut to = [Odd { written: &mut memory[1024..1040], read: &source }];
        let moved = copy_vectored(&mut to, &[&source[..]], hints);
        assert_eq!(moved.bytes, 16);
        assert!(memory[..1024].iter().chain(&memory[1040..]).all(|byte| *byte == 7));
        assert_eq!(memory[1024..1040], source[..16]);
    }
}

#[test]
#[should_panic(expected = "a copy of 2 bytes into 3: the slices must have one length")]
fn slices_of_two_lengths_are_refused() {
    copy(&mut [0; 3], &[0; 2], Hints::AUTO);
}
