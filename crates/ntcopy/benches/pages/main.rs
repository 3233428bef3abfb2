//! Clearing and copying extents of pages: what the kernel does today, and what the non-temporal
//! routines of `kernel/asm/page_nt_64.S` do.
//!
//! `cargo bench -p ntcopy --bench pages` prints two tables in Markdown. The ways of one cell are
//! interleaved, A B C A B C; a figure is the median of its rounds, a ratio the median over the
//! rounds of this way's speed to the first way's in the same round. After each sample the last
//! extent is compared byte by byte, in full; a wrong byte ends the program.
//!
//! Every extent is fenced once, as the kernel fences a folio once. The memory asks for huge pages,
//! as the kernel's own mapping of it has. The destinations: `same`, one extent again and again, so
//! that it stays in the caches if it fits; `fresh`, the next extent of 2 GiB, so that it was in no
//! cache; and `fresh, then read`, where the program reads each extent once, all of it, right after
//! it was cleared or copied. Copies take their source in the same manner.

#[cfg(target_arch = "x86_64")]
mod ways;

#[cfg(target_arch = "x86_64")]
fn main() {
    run::main();
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("the page routines are x86-64's");
}

#[cfg(target_arch = "x86_64")]
mod run {
    use std::hint::black_box;
    use std::time::Instant;

    use ntcopy::arch::x86_64::page_nt::{PAGE_BYTES, Page};
    use ntcopy::cpu::Cpu;
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use crate::ways::{Way, clearing, copying};

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    const GIB: usize = 1 << 30;

    /// How much to do.
    struct Plan {
        timed: bool,
        extents_bytes: &'static [usize],
        region_bytes: usize,
        sample_bytes: usize,
        rounds: usize,
    }

    const FULL: Plan = Plan {
        timed: true,
        extents_bytes: &[4 * KIB, 64 * KIB, 2 * MIB, 32 * MIB, 256 * MIB, GIB],
        region_bytes: 2 * GIB,
        sample_bytes: 384 * MIB,
        rounds: 5,
    };

    /// What `cargo test --benches` runs: every way once, for its bytes and not for its time.
    const TEST: Plan = Plan {
        timed: false,
        extents_bytes: &[4 * KIB, 64 * KIB, 2 * MIB],
        region_bytes: 8 * MIB,
        sample_bytes: 4 * MIB,
        rounds: 1,
    };

    /// Anonymous memory, in huge pages where the system gives them, every page present.
    struct Region {
        start: *mut Page,
        len_bytes: usize,
    }

    impl Region {
        fn new(len_bytes: usize) -> Region {
            // SAFETY: a new anonymous mapping at an address of the kernel's choice touches
            // nothing that exists.
            let start = unsafe {
                mmap_anonymous(
                    std::ptr::null_mut(),
                    len_bytes,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::PRIVATE,
                )
            }
            .unwrap_or_else(|errno| panic!("{len_bytes} bytes of memory: {errno}"));
            // SAFETY: the mapping is this function's; huge pages don't change its content.
            // Without them the figures are those of small pages, which the header says.
            let _ = unsafe { madvise(start, len_bytes, Advice::LinuxHugepage) };
            let region = Region { start: start.cast(), len_bytes };
            for (index, word) in region.words(0, len_bytes).iter_mut().enumerate() {
                *word = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            }
            region
        }

        /// The words of an extent. There is no other reference into the region meanwhile: this
        /// program has one thread and passes extents to the ways as raw pointers.
        #[expect(clippy::mut_from_ref, reason = "the region is memory, not a value")]
        fn words(&self, at_bytes: usize, len_bytes: usize) -> &mut [u64] {
            assert!(at_bytes.is_multiple_of(PAGE_BYTES) && at_bytes + len_bytes <= self.len_bytes);
            // SAFETY: in bounds and aligned by the assertion, initialised by the kernel, and
            // unaliased as said above.
            unsafe {
                std::slice::from_raw_parts_mut(
                    self.start.byte_add(at_bytes).cast(),
                    len_bytes / size_of::<u64>(),
                )
            }
        }
    }

    impl Drop for Region {
        fn drop(&mut self) {
            // SAFETY: the mapping was made in `new`, and no reference into it outlives `self`.
            let _ = unsafe { munmap(self.start.cast(), self.len_bytes) };
        }
    }

    struct Cell<'a> {
        to: &'a Region,
        from: Option<&'a Region>,
        extent_bytes: usize,
        place: Place,
    }

    /// Which extent comes next, and whether the program then looks at it.
    #[derive(Clone, Copy, PartialEq)]
    enum Place {
        Same,
        Fresh,
        FreshThenRead,
    }

    impl Place {
        const ALL: [Place; 3] = [Place::Same, Place::Fresh, Place::FreshThenRead];

        fn name(self) -> &'static str {
            match self {
                Place::Same => "same",
                Place::Fresh => "fresh",
                Place::FreshThenRead => "fresh, then read",
            }
        }
    }

    impl Cell<'_> {
        /// Where the extent after `at_bytes` is.
        fn next(&self, at_bytes: usize) -> usize {
            let next = at_bytes + self.extent_bytes;
            if self.place != Place::Same && next + self.extent_bytes <= self.to.len_bytes {
                next
            } else {
                0
            }
        }

        /// Does one way for `sample_bytes` at `at_bytes` and on; returns bytes per second, and
        /// where it stopped.
        fn sample(&self, way: &Way, mut at_bytes: usize, plan: &Plan, salt: usize) -> (f64, usize) {
            let extents = (plan.sample_bytes / self.extent_bytes).max(1);
            let last = (1..extents).fold(at_bytes, |at, _| self.next(at));
            // One word a page is made wrong first, so that an extent left alone shows.
            for page in self.to.words(last, self.extent_bytes).chunks_mut(PAGE_BYTES / 8) {
                page[salt % (PAGE_BYTES / 8)] ^= 0xdead_0000_dead_0002;
            }
            let pages = self.extent_bytes / PAGE_BYTES;
            let begin = Instant::now();
            for _ in 0..extents {
                // SAFETY: `next` keeps extents inside of both regions, which are of one size,
                // page-aligned, and apart; the ways are those that this CPU has.
                unsafe {
                    let to = self.to.start.byte_add(at_bytes);
                    let from = self.from.map_or(std::ptr::null(), |from| {
                        from.start.byte_add(at_bytes).cast_const()
                    });
                    way.run(to, from, pages);
                }
                if self.place == Place::FreshThenRead {
                    let words = self.to.words(at_bytes, self.extent_bytes);
                    black_box(words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
                }
                at_bytes = self.next(at_bytes);
            }
            let seconds = begin.elapsed().as_secs_f64();
            self.check(way, last);
            ((extents * self.extent_bytes) as f64 / seconds, at_bytes)
        }

        fn check(&self, way: &Way, at_bytes: usize) {
            let got = self.to.words(at_bytes, self.extent_bytes);
            let right = match self.from {
                Some(from) => got == from.words(at_bytes, self.extent_bytes),
                None => got.iter().all(|&word| word == 0),
            };
            if !right {
                eprintln!("{}: a wrong byte in {} bytes", way.name, self.extent_bytes);
                std::process::exit(4);
            }
        }
    }

    fn median(values: &mut [f64]) -> f64 {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len().is_multiple_of(2) {
            (values[middle - 1] + values[middle]) / 2.0
        } else {
            values[middle]
        }
    }

    fn size(bytes: usize) -> String {
        match bytes {
            b if b >= GIB => format!("{} GiB", b / GIB),
            b if b >= MIB => format!("{} MiB", b / MIB),
            b => format!("{} KiB", b / KIB),
        }
    }

    /// One row of a table: every way at one size and destination.
    fn row(cell: &Cell, ways: &[Way], plan: &Plan) {
        let mut rates = vec![Vec::new(); ways.len()];
        let mut at_bytes = 0;
        // The first round warms up and does not count, unless it is the only one.
        for round in 0..=plan.rounds {
            for (way, rates) in ways.iter().zip(&mut rates) {
                let (rate, next) = cell.sample(way, at_bytes, plan, round * 37 + 5);
                at_bytes = next;
                if round > 0 {
                    rates.push(rate);
                }
            }
        }
        if !plan.timed {
            return println!("{}: {} ways, bytes right", size(cell.extent_bytes), ways.len());
        }
        print!("| {} | {} |", size(cell.extent_bytes), cell.place.name());
        for (index, own) in rates.iter().enumerate() {
            let mut ratios: Vec<f64> = own.iter().zip(&rates[0]).map(|(a, b)| a / b).collect();
            let rate = median(&mut own.clone()) / 1e9;
            let ratio = median(&mut ratios);
            if index == 0 {
                print!(" {rate:.1} |");
            } else {
                print!(
                    " {rate:.1} ({ratio:.2}; {:.2}..{:.2}) |",
                    ratios[0],
                    ratios[ratios.len() - 1]
                );
            }
        }
        println!();
    }

    fn table(title: &str, ways: &[Way], to: &Region, from: Option<&Region>, plan: &Plan) {
        if plan.timed {
            heading(title, ways);
        }
        for &extent_bytes in plan.extents_bytes {
            for place in Place::ALL {
                row(&Cell { to, from, extent_bytes, place }, ways, plan);
            }
        }
    }

    fn heading(title: &str, ways: &[Way]) {
        println!("\n{title}, GB/s (ratio to the first way: median; lowest..highest round)\n");
        print!("| extent | destination |");
        ways.iter().for_each(|way| print!(" {} |", way.name));
        print!("\n|---|---|");
        ways.iter().for_each(|_| print!("---|"));
        println!();
    }

    pub fn main() {
        let plan = if std::env::args().any(|arg| arg == "--bench") { &FULL } else { &TEST };
        let cpu = Cpu::detect();
        let thp = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        println!(
            "{} ({}), last-level cache {}",
            cpu.model_name,
            cpu.signature(),
            size(cpu.llc_bytes() as usize)
        );
        println!("hypervisor: {}", cpu.hypervisor.as_deref().unwrap_or("none"));
        println!("huge pages: {}", thp.as_deref().unwrap_or("none").trim());
        let to = Region::new(plan.region_bytes);
        table("Clearing", &clearing(), &to, None, plan);
        let from = Region::new(plan.region_bytes);
        table("Copying", &copying(), &to, Some(&from), plan);
    }
}
