//! The fence after non-temporal stores.

/// Orders all earlier non-temporal stores of this thread, and of no other, before everything that it
/// does next.
///
/// Non-temporal stores are ordered with nothing. Another thread that learns of the bytes by an
/// ordinary release store may see that store first; and in Rust even the thread that streamed must
/// not touch the bytes before the fence. [`copy`](crate::copy()), [`fill`](crate::fill()) and the
/// safe calls of [`Stream`](crate::Stream) end with it; the `_unfenced` ones leave it to the
/// caller, who may so pay for it once for many pieces.
///
/// On x86-64 this is SFENCE; where nothing is non-temporal, it is nothing.
#[inline]
pub fn fence() {
    #[cfg(test)]
    tests::COUNT.with(|count| count.set(count.get() + 1));
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SFENCE is part of SSE, which x86-64 includes, and has no operands. Inline assembly
    // that may touch memory is a barrier to the compiler as well.
    unsafe {
        core::arch::asm!("sfence", options(nostack, preserves_flags));
    }
}

/// Hardware hides a missing fence far too well for a test of the bytes to find it, so fences are
/// counted.
#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::{
        Hint, Hints, Stream, Unfenced, arch, copy, copy_unfenced, copy_vectored, fence, fill,
        fill_unfenced,
    };

    thread_local! {
        pub(super) static COUNT: Cell<usize> = const { Cell::new(0) };
    }

    /// The fences that `work` executes.
    fn fences(work: impl FnOnce()) -> usize {
        let before = COUNT.get();
        work();
        COUNT.get() - before
    }

    const NT: Hints = Hints::NONTEMPORAL;
    /// What streams executes one, where anything streams.
    const ONE: usize = cfg!(target_arch = "x86_64") as usize;

    #[test]
    fn every_safe_call_that_streams_ends_with_one() {
        let (mut to, from) = (vec![0; 8192], vec![1; 8192]);
        assert_eq!(fences(fence), 1);
        assert_eq!(fences(|| _ = copy(&mut to, &from, NT)), ONE);
        assert_eq!(fences(|| _ = fill(&mut to, 0, Hint::Nontemporal)), ONE);
        assert_eq!(fences(|| _ = fill(&mut to, 9, Hint::Nontemporal)), ONE);
        let (mut tos, froms) = ([&mut to[..]], [&from[..4000], &from[..4192]]);
        assert_eq!(fences(|| _ = copy_vectored(&mut tos, &froms, NT)), ONE);
        let mut stream = Stream::growing(NT);
        assert_eq!(fences(|| _ = stream.copy(&mut to, &from)), ONE);
        assert_eq!(fences(|| _ = stream.fill(&mut to, 0)), ONE);
        assert_eq!(fences(|| _ = stream.finish()), 0, "nothing is left to be fenced");
        for backend in arch::COPY_BACKENDS.iter().filter(|backend| backend.is_available()) {
            for path in backend.paths() {
                let expected = usize::from(path.is_nontemporal());
                assert_eq!(fences(|| assert!(backend.copy(&mut to, &from, path))), expected);
            }
        }
        for backend in arch::FILL_BACKENDS.iter().filter(|backend| backend.is_available()) {
            let expected = usize::from(backend.method.is_nontemporal());
            assert_eq!(fences(|| assert!(backend.fill(&mut to, 0))), expected);
        }
    }

    #[test]
    fn what_does_not_stream_does_not_fence() {
        let (mut to, from) = (vec![0; 8192], vec![1; 8192]);
        assert_eq!(fences(|| _ = copy(&mut to, &from, Hints::TEMPORAL)), 0);
        assert_eq!(fences(|| _ = copy(&mut to[..255], &from[..255], NT)), 0);
        assert_eq!(fences(|| _ = fill(&mut to, 0, Hint::Temporal)), 0);
    }

    #[test]
    fn unfenced_pieces_share_the_one_of_the_thread_that_stored_them() {
        let (mut to, from) = (vec![0; 8192], vec![1; 8192]);
        let mut stream = Stream::growing(NT);
        let mut unfenced = stream.unfenced();
        let mut pieces = |unfenced: &mut Unfenced<'_>| {
            for at in [0, 4096] {
                // SAFETY: both pieces are within the slices, and the caller of this fences.
                unsafe { unfenced.copy(to[at..].as_mut_ptr(), from[at..].as_ptr(), 4096) };
            }
            // SAFETY: as above.
            unsafe { unfenced.fill(to.as_mut_ptr(), 0, 4096) };
        };
        assert_eq!(fences(|| pieces(&mut unfenced)), 0);
        assert_eq!(fences(|| unfenced.fence()), ONE);
        assert_eq!(fences(|| unfenced.fence()), 0, "nothing is left to be fenced");
        pieces(&mut unfenced);
        assert_eq!(fences(move || drop(unfenced)), ONE);
        let elsewhere = std::thread::spawn(move || fences(|| _ = stream.finish()));
        assert_eq!(elsewhere.join().unwrap(), 0, "its stores are ordered where they were made");
    }

    #[test]
    fn a_single_unfenced_piece_is_the_callers_to_fence() {
        let (mut to, from) = (vec![0; 8192], vec![1; 8192]);
        let (start, source) = (to.as_mut_ptr(), from.as_ptr());
        // SAFETY: both sides have the length; the fence follows.
        let unfenced = || unsafe {
            copy_unfenced(start, source, 8192, NT);
            fill_unfenced(start, 0, 8192, Hint::Nontemporal);
        };
        assert_eq!(fences(unfenced), 0);
        fence();
    }
}
