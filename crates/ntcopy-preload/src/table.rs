//! What is known of each descriptor.
//!
//! A word each, of three parts: what it is, how often that was believed, and how often the number
//! was given away. A finding is stored only if the word is still what it was before the kernel was
//! asked, so that no answer about a closed descriptor sticks to the next one of that number.
//!
//! What opens and closes descriptors without the functions that this library stands in for
//! (`fclose`, a bare system call, a `vfork` child) leaves a finding behind that may be wrong, so
//! none is believed for ever.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// What a descriptor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing that this library has to do with: no socket, or not of a kind that was asked for.
    Other,
    /// A socket whose sends are hinted.
    Hinted,
    /// The same, of records: a `write` ends one (`MSG_EOR`).
    HintedRecords,
}

/// Descriptors with numbers below it are remembered; of the others the kernel is asked each time.
const REMEMBERED: usize = 1 << 16;
/// Neighbours in number lie a line of the cache apart, so that threads with a connection each don't
/// take it from each other at every send.
const WORDS_PER_LINE: usize = 16;
/// How often a finding is believed before the kernel is asked again. One question costs a few
/// hundred nanoseconds, and only large sends count.
const BELIEVED: u32 = 128;

const KIND: u32 = 0b11;
const USES_SHIFT: u32 = 2;
const USES: u32 = (BELIEVED - 1) << USES_SHIFT;
const GENERATION: u32 = 1 << (USES_SHIFT + BELIEVED.trailing_zeros());

impl Kind {
    const fn bits(self) -> u32 {
        match self {
            Kind::Other => 1,
            Kind::Hinted => 2,
            Kind::HintedRecords => 3,
        }
    }

    const fn from_bits(word: u32) -> Option<Self> {
        match word & KIND {
            1 => Some(Kind::Other),
            2 => Some(Kind::Hinted),
            3 => Some(Kind::HintedRecords),
            _ => None,
        }
    }
}

/// Findings, by the number of the descriptor.
pub struct Table<const SIZE: usize = REMEMBERED> {
    words: [AtomicU32; SIZE],
    /// One more than the highest number of which anything may be known, or just be on its way: what
    /// closes all the numbers that there could be need not come by here for each.
    end: AtomicI32,
}

impl<const SIZE: usize> Table<SIZE> {
    /// Nothing is known.
    pub const fn new() -> Self {
        Table { words: [const { AtomicU32::new(0) }; SIZE], end: AtomicI32::new(0) }
    }

    fn word(&self, fd: c_int) -> Option<&AtomicU32> {
        let fd = usize::try_from(fd).ok().filter(|fd| *fd < SIZE)?;
        let lines = const { SIZE / WORDS_PER_LINE };
        self.words.get(fd % lines * WORDS_PER_LINE + fd / lines)
    }

    /// Notes what is known without a question; the number has just been given this meaning.
    pub fn note(&self, fd: c_int, kind: Kind) {
        if let Some(word) = self.word(fd) {
            self.end.fetch_max(fd.saturating_add(1), Ordering::SeqCst);
            let before = word.load(Ordering::SeqCst);
            let noted = before & !(KIND | USES) | kind.bits();
            // Where it fails, another thread has just found it out, or closed it.
            let _ = word.compare_exchange(before, noted, Ordering::SeqCst, Ordering::Relaxed);
        }
    }

    /// What a descriptor is, from memory or by asking.
    ///
    /// The one who asks says also whether what was found may be kept.
    #[inline]
    pub fn look_up(&self, fd: c_int, ask: impl FnOnce() -> (Kind, bool)) -> Kind {
        let Some(word) = self.word(fd) else {
            return ask().0;
        };
        let seen = word.load(Ordering::Relaxed);
        if let Some(kind) = Kind::from_bits(seen)
            && seen & USES != USES
        {
            // Where it fails, the number was given away just now, or another thread counted.
            let counted = seen + (1 << USES_SHIFT);
            let _ = word.compare_exchange(seen, counted, Ordering::Relaxed, Ordering::Relaxed);
            return kind;
        }
        self.find_out(fd, word, ask)
    }

    /// What is known without asking.
    #[cfg(test)]
    fn known(&self, fd: c_int) -> Option<Kind> {
        Kind::from_bits(self.word(fd)?.load(Ordering::Relaxed))
    }

    #[cold]
    fn find_out(&self, fd: c_int, word: &AtomicU32, ask: impl FnOnce() -> (Kind, bool)) -> Kind {
        // Before the question: a close after it must find that there is something to forget.
        self.end.fetch_max(fd.saturating_add(1), Ordering::SeqCst);
        let before = word.load(Ordering::SeqCst);
        let (kind, may_keep) = ask();
        if may_keep {
            let found = before & !(KIND | USES) | kind.bits();
            let _ = word.compare_exchange(before, found, Ordering::SeqCst, Ordering::Relaxed);
        }
        kind
    }

    /// The number has been given away: nothing is known of it any more.
    #[inline(always)]
    pub fn forget(&self, fd: c_int) {
        if fd < self.end.load(Ordering::SeqCst)
            && let Some(word) = self.word(fd)
        {
            forget_word(word);
        }
    }

    /// All of these numbers have been given away.
    pub fn forget_all(&self, first: u32, last: u32) {
        let end = self.end.load(Ordering::SeqCst).min(SIZE as c_int);
        let Ok(first) = c_int::try_from(first) else { return };
        let end = end.min(c_int::try_from(last).map_or(c_int::MAX, |last| last.saturating_add(1)));
        for fd in first..end {
            if let Some(word) = self.word(fd) {
                forget_word(word);
            }
        }
    }
}

#[cold]
fn forget_word(word: &AtomicU32) {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let next = (seen & !(KIND | USES)).wrapping_add(GENERATION);
        match word.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Asks with a count.
    fn ask(count: &Cell<u32>, kind: Kind) -> impl FnOnce() -> (Kind, bool) {
        move || {
            count.set(count.get() + 1);
            (kind, true)
        }
    }

    #[test]
    fn a_finding_is_kept_until_the_number_is_given_away() {
        let table = Table::<64>::new();
        let asked = Cell::new(0);
        for kind in [Kind::Other, Kind::Hinted, Kind::HintedRecords] {
            asked.set(0);
            for _ in 0..3 {
                assert_eq!(table.look_up(5, ask(&asked, kind)), kind);
            }
            assert_eq!((asked.get(), table.known(5)), (1, Some(kind)));
            table.forget(5);
            assert_eq!(table.known(5), None);
        }
    }

    #[test]
    fn a_finding_is_not_believed_for_ever() {
        let table = Table::<64>::new();
        let asked = Cell::new(0);
        for _ in 0..3 * BELIEVED {
            table.look_up(0, ask(&asked, Kind::Other));
        }
        assert_eq!(asked.get(), 3);
        assert_eq!(table.look_up(0, ask(&asked, Kind::Hinted)), Kind::Hinted);
        assert_eq!(table.known(0), Some(Kind::Hinted));
    }

    #[test]
    fn an_answer_about_a_closed_descriptor_is_not_kept() {
        let table = Table::<64>::new();
        let kind = table.look_up(3, || {
            // Another thread closes it while the kernel answers.
            table.forget(3);
            (Kind::Hinted, true)
        });
        assert_eq!((kind, table.known(3)), (Kind::Hinted, None));
        // And where it was closed and found out again.
        table.look_up(3, || {
            table.forget(3);
            table.look_up(3, || (Kind::Other, true));
            (Kind::Hinted, true)
        });
        assert_eq!(table.known(3), Some(Kind::Other));
    }

    #[test]
    fn what_may_not_be_kept_is_asked_again() {
        let table = Table::<64>::new();
        for _ in 0..3 {
            assert_eq!(table.look_up(2, || (Kind::Hinted, false)), Kind::Hinted);
            assert_eq!(table.known(2), None);
        }
    }

    #[test]
    fn numbers_outside_are_asked_each_time_and_forgotten_in_peace() {
        let table = Table::<64>::new();
        let asked = Cell::new(0);
        for fd in [64, 65, c_int::MAX, -1, c_int::MIN] {
            asked.set(0);
            for _ in 0..2 {
                assert_eq!(table.look_up(fd, ask(&asked, Kind::Hinted)), Kind::Hinted);
            }
            assert_eq!(asked.get(), 2, "{fd}");
            table.forget(fd);
        }
    }

    #[test]
    fn a_range_is_forgotten_from_its_first_to_its_last() {
        for (first, last) in [(2, 4), (0, u32::MAX), (4, 4), (3, 2), (7, 7), (9, 20), (6, 9)] {
            let table = Table::<64>::new();
            for fd in 0..7 {
                table.look_up(fd, || (Kind::Other, true));
            }
            table.forget_all(first, last);
            for fd in 0..7 {
                let is_gone = (first..=last).contains(&(fd as u32));
                assert_eq!(table.known(fd).is_none(), is_gone, "{fd} in {first}..={last}");
            }
        }
        Table::<64>::new().forget_all(0, u32::MAX);
    }
}
