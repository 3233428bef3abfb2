//! Lines in one random cycle, walked to prime a cache and probed one by one with the clock.

use std::arch::asm;
use std::arch::x86_64::{__rdtscp, _mm_lfence, _mm_sfence, _rdtsc};
use std::ops::Range;
use std::ptr;

use memmap2::{Advice, MmapMut, MmapOptions};

use super::LINE_BYTES;
use crate::run::Failure;
use ntcopy_judge::random::SplitMix64;
use ntcopy_record::units::Bytes;

/// Large pages, so that a set of lines lies evenly over the sets of a cache.
const LARGE_PAGE: usize = 2 << 20;
pub const PAGE: usize = 4096;
/// A line that a probe takes longer for than this was met by an interrupt, or by the host.
const LONGEST_CYCLES: u64 = 1 << 12;

/// Memory that begins at a large page.
pub struct Memory {
    map: MmapMut,
    from: usize,
    bytes: usize,
}

impl Memory {
    pub fn new(bytes: usize) -> Result<Memory, Failure> {
        let doing = format!("cannot map {}", Bytes(bytes as u64));
        // The last large page as a whole, too: a part of one would be small pages.
        let whole = bytes.next_multiple_of(LARGE_PAGE) + LARGE_PAGE;
        let map = MmapOptions::new().len(whole).map_anon();
        let mut map = map.map_err(Failure::io(doing))?;
        let from = map.as_ptr().align_offset(LARGE_PAGE).min(LARGE_PAGE);
        // A kernel without them has small pages, and the smaller set that fits is found later.
        let _ = map.advise(Advice::HugePage);
        map[from..from + bytes].fill(1);
        Ok(Memory { map, from, bytes })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.map[self.from..self.from + self.bytes]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.from..self.from + self.bytes]
    }

    /// Writes one byte of each page again, and flushes its line.
    pub fn map_pages(&mut self, range: Range<usize>) {
        for byte in self.bytes_mut()[range].iter_mut().step_by(PAGE) {
            // SAFETY: the pointer is to a byte of a slice, which may be written.
            unsafe { ptr::write_volatile(byte, *byte) };
            flush(byte);
        }
        // SAFETY: SSE is there on every x86-64 CPU.
        unsafe { _mm_sfence() };
    }
}

/// Brings each line of some bytes near, in order.
pub fn read(bytes: &[u8]) {
    for line in bytes.chunks(LINE_BYTES) {
        // SAFETY: the pointer is to the first byte of a piece of a slice, which is not empty.
        unsafe { ptr::read_volatile(line.as_ptr()) };
    }
}

pub fn write_past_caches(bytes: &mut [u8]) {
    let words = bytes.len() / 8;
    let start = bytes.as_mut_ptr().cast::<u64>();
    for word in 0..words {
        // SAFETY: `words` words fit into the slice; MOVNTI takes any address.
        unsafe {
            asm!("movnti [{}], {}", in(reg) start.add(word), in(reg) 7_u64, options(nostack))
        };
    }
    // SAFETY: SSE is there on every x86-64 CPU.
    unsafe { _mm_sfence() };
}

/// A line of the cycle. The way back is walked by the probe: what was used last comes first, so
/// that bringing back what is missing displaces nothing that is still to be probed.
#[repr(C, align(64))]
struct Line {
    next: *const Line,
    before: *const Line,
}

pub struct Cycle {
    memory: Memory,
    first: *const Line,
    count: usize,
    order: Vec<u32>,
}

impl Cycle {
    /// Lays out `count` lines in one random cycle: of each two neighbours one, by lot. Both would
    /// be brought by the prefetcher where one is missed, and a probe would find half of what is
    /// missing.
    pub fn new(count: usize, seed: u64) -> Result<Cycle, Failure> {
        let mut memory = Memory::new(2 * count * LINE_BYTES)?;
        let mut random = SplitMix64(seed);
        let pairs = 0..u32::try_from(count).unwrap_or(u32::MAX / 2);
        let mut order: Vec<u32> =
            pairs.map(|pair| 2 * pair + u32::from(random.below(2) == 1)).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        let lines = memory.bytes_mut().as_mut_ptr().cast::<Line>();
        for (place, line) in order.iter().enumerate() {
            let near = |step: usize| order[(place + step) % order.len()] as usize;
            // SAFETY: all numbers are below twice `count`, and that many lines fit into the memory,
            // which is aligned to a page.
            unsafe {
                let (next, before) = (lines.add(near(1)), lines.add(near(order.len() - 1)));
                lines.add(*line as usize).write(Line { next, before });
            }
        }
        // SAFETY: as above.
        let first = unsafe { lines.add(order[0] as usize) };
        Ok(Cycle { memory, first, count, order })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn prime(&self, times: u32) {
        let mut at = self.first;
        for _ in 0..self.count * times as usize {
            // SAFETY: every line of the cycle points to another one.
            at = unsafe { ptr::read_volatile(&raw const (*at).next) };
        }
    }

    /// Loads each line, the last one first, and counts those that took more cycles.
    pub fn probe(&self, threshold: u64) -> u64 {
        let mut displaced = 0;
        self.timed(|cycles| displaced += u64::from(cycles > threshold));
        displaced
    }

    /// The time that a part of the lines did not exceed, in cycles.
    pub fn quantile(&self, part: f64) -> u64 {
        let mut counts = vec![0_u32; LONGEST_CYCLES as usize];
        self.timed(|cycles| counts[cycles.min(LONGEST_CYCLES - 1) as usize] += 1);
        let (mut seen, wanted) = (0, (self.count as f64 * part) as u32);
        let place = counts.iter().position(|count| {
            seen += count;
            seen > wanted
        });
        place.unwrap_or(0) as u64
    }

    #[inline]
    fn timed(&self, mut took: impl FnMut(u64)) {
        // SAFETY: the first line is one of the cycle.
        let mut at = unsafe { (*self.first).before };
        for _ in 0..self.count {
            let mut core = 0;
            // SAFETY: every line of the cycle points to another one; the instructions are there on
            // every CPU that this program runs on.
            unsafe {
                _mm_lfence();
                let began = _rdtsc();
                _mm_lfence();
                at = ptr::read_volatile(&raw const (*at).before);
                let ended = __rdtscp(&mut core);
                _mm_lfence();
                took(ended.wrapping_sub(began));
            }
        }
    }

    pub fn flush(&self, many: usize) {
        let lines = self.memory.bytes().as_ptr();
        for line in &self.order[..many.min(self.count)] {
            flush(lines.wrapping_add(*line as usize * LINE_BYTES));
        }
        // SAFETY: SSE is there on every x86-64 CPU.
        unsafe { _mm_sfence() };
    }
}

/// Flushes the line of an address out of all caches, some time before the next fence.
fn flush(line: *const u8) {
    // SAFETY: addresses are of memory that is mapped here; CLFLUSHOPT was asked for.
    unsafe { asm!("clflushopt [{}]", in(reg) line, options(nostack)) };
}

/// Whether this CPU has CLFLUSHOPT (CPUID leaf 7, EBX bit 23).
pub fn has_clflushopt() -> bool {
    let most = std::arch::x86_64::__cpuid(0).eax;
    most >= 7 && std::arch::x86_64::__cpuid_count(7, 0).ebx & 1 << 23 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_comes_back_after_all_of_its_lines_both_ways() {
        let cycle = Cycle::new(1000, 7).unwrap();
        for back in [false, true] {
            let (mut at, mut seen) = (cycle.first, std::collections::BTreeSet::new());
            while seen.insert(at) {
                // SAFETY: every line of the cycle points to another one.
                at = unsafe { if back { (*at).before } else { (*at).next } };
            }
            assert_eq!((seen.len(), at), (1000, cycle.first));
        }
        assert_eq!(cycle.len(), 1000);
    }

    #[test]
    fn every_line_takes_some_time_and_none_takes_for_ever() {
        let cycle = Cycle::new(64, 1).unwrap();
        cycle.prime(2);
        assert_eq!(cycle.probe(0), 64);
        assert_eq!(cycle.probe(u64::MAX), 0);
        assert!(cycle.quantile(0.5) > 0);
    }

    #[test]
    fn memory_is_written_past_the_caches_to_its_last_word() {
        let mut memory = Memory::new(4096).unwrap();
        write_past_caches(memory.bytes_mut());
        let words = memory.bytes().chunks(8).filter(|word| **word == 7_u64.to_le_bytes());
        assert_eq!(words.count(), 512);
    }
}
