//! What part of a program's CPU time is the copy of its sends.
//!
//! The kernel's clock of CPU time samples its threads, with the kernel functions that each is in: it
//! needs no hardware counter, and is there in virtual machines.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;

use perf_event::events::Software;
use perf_event::{Builder, SampleFlag, Sampler};

use crate::processes::{Pid, threads};

/// Of CPU time between two samples of a thread.
const PERIOD_NS: u64 = 10_000_000;
/// For a thread's samples: some thousand of them.
const BUFFER_BYTES: usize = 256 << 10;
/// Threads that are sampled at most: each has a buffer.
const MOST_THREADS: usize = 256;
/// `PERF_RECORD_SAMPLE` of linux/perf_event.h.
const PERF_RECORD_SAMPLE: u32 = 9;
/// What the copy's functions are called, behind underscores: what they call is in their time.
const COPIES: [&str; 3] = ["copy_from_iter", "copy_page_from_iter", "csum_and_copy_from_iter"];

/// Samples of CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    pub samples: u64,
    pub copying: u64,
}

/// A program whose CPU time is sampled.
pub struct Sampling {
    threads: Vec<Sampler>,
    copies: Vec<Range<u64>>,
}

impl Sampling {
    /// Begins, or says which right is missing.
    pub fn start(pids: &[Pid]) -> Result<Sampling, String> {
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let copies = copies(&symbols);
        if copies.is_empty() {
            return Err("the kernel hides where its functions are (kernel.kptr_restrict, or no \
                        CONFIG_KALLSYMS): root may see it"
                .to_owned());
        }
        let mut samplers = Vec::new();
        for thread in pids.iter().flat_map(|pid| threads(*pid)).take(MOST_THREADS) {
            match sampler(thread) {
                Ok(sampler) => samplers.push(sampler),
                // It has just ended.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(refused(&error)),
            }
        }
        Ok(Sampling { threads: samplers, copies })
    }

    pub fn finish(mut self) -> Share {
        let mut share = Share::default();
        for sampler in &mut self.threads {
            // One that goes on is sampled a little longer, and no more.
            let _ = sampler.disable();
            while let Some(record) = sampler.next_record() {
                if record.ty() == PERF_RECORD_SAMPLE {
                    share.add(&chain(&record.to_contiguous()), &self.copies);
                }
            }
        }
        share
    }
}

impl Share {
    fn add(&mut self, chain: &[u64], copies: &[Range<u64>]) {
        self.samples += 1;
        let is_copy = |address: &u64| copies.iter().any(|range| range.contains(address));
        self.copying += u64::from(chain.iter().any(is_copy));
    }

    /// None of so few samples that it would be chance.
    pub fn part(self) -> Option<f64> {
        (self.samples >= 20).then(|| self.copying as f64 / self.samples as f64)
    }
}

/// The functions of a sample, innermost first: it holds the address, their number, and they, as
/// `PERF_SAMPLE_IP` and `PERF_SAMPLE_CALLCHAIN` have it. The crate's parser wants more of one
/// without functions.
fn chain(sample: &[u8]) -> Vec<u64> {
    let words =
        sample.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    let mut all: Vec<u64> = words.collect();
    if all.len() > 1 {
        all.remove(1);
    }
    all
}

fn sampler(thread: u32) -> io::Result<Sampler> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder.observe_pid(i32::try_from(thread).unwrap_or(0)).any_cpu().include_kernel();
    builder.sample(SampleFlag::IP | SampleFlag::CALLCHAIN).sample_period(PERIOD_NS);
    builder.attrs_mut().set_exclude_callchain_user(1);
    let mut counter = builder.build()?;
    counter.enable()?;
    counter.sampled(BUFFER_BYTES)
}

fn refused(error: &io::Error) -> String {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    match (error.kind(), level) {
        (ErrorKind::PermissionDenied, Ok(level)) => format!(
            "sampling the kernel takes root or CAP_PERFMON, or kernel.perf_event_paranoid of 1 at \
             most (it is {})",
            level.trim()
        ),
        (ErrorKind::PermissionDenied, Err(_)) => "sampling the kernel takes root".to_owned(),
        _ => format!("this kernel samples nothing: {error}"),
    }
}

/// Where the functions of the copy are, of the lines of `/proc/kallsyms`; nowhere if it hides that.
fn copies(symbols: &str) -> Vec<Range<u64>> {
    let of = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let is_text = matches!(words.next()?, "t" | "T");
        Some((address, words.next()?.to_owned())).filter(|_| is_text && address > 0)
    };
    let mut all: Vec<(u64, String)> = symbols.lines().filter_map(of).collect();
    all.sort_unstable();
    let is_copy =
        |name: &str| COPIES.iter().any(|copy| name.trim_start_matches('_').starts_with(copy));
    let ends = all.iter().skip(1).map(|(address, _)| *address).chain([u64::MAX]);
    let ranges = all.iter().zip(ends).filter(|((_, name), _)| is_copy(name));
    ranges.map(|((address, _), end)| *address..end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81b69000 T iov_iter_advance\n\
                           ffffffff81b69600 T _copy_from_iter\n\
                           ffffffff81b69a00 T _copy_to_iter\n\
                           ffffffff81afc1e0 t bio_copy_from_iter\n\
                           ffffffff82000000 T copy_page_from_iter\n\
                           ffffffff82000100 D copy_from_iter_data\n";

    #[test]
    fn a_sample_counts_where_any_of_its_functions_is_the_copy() {
        let copies = copies(SYMBOLS);
        let from_iter = 0xffff_ffff_81b6_9600_u64..0xffff_ffff_81b6_9a00;
        assert_eq!(copies, [from_iter.clone(), 0xffff_ffff_8200_0000..u64::MAX]);
        let mut share = Share::default();
        share.add(&[0xffff_ffff_81b6_9b00, from_iter.start + 9, 1], &copies);
        share.add(&[from_iter.end, 2], &copies);
        share.add(&[], &copies);
        assert_eq!(share, Share { samples: 3, copying: 1 });
        assert_eq!(share.part(), None, "too few");
        assert_eq!(Share { samples: 40, copying: 10 }.part(), Some(0.25));
    }

    #[test]
    fn a_sample_is_its_address_and_its_functions() {
        let chain = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            super::chain(&bytes)
        };
        assert_eq!(chain(&[7, 2, 7, 8]), [7, 7, 8]);
        assert_eq!((chain(&[7, 0]), chain(&[])), (vec![7], vec![]));
    }

    #[test]
    fn hidden_addresses_are_nowhere() {
        let hidden = "0000000000000000 T _copy_from_iter\n0000000000000000 T _copy_to_iter\n";
        assert!(copies(hidden).is_empty());
    }

    #[test]
    fn a_program_that_works_is_sampled_or_the_missing_right_is_said() {
        let mut sampling = Sampling::start(&[std::process::id()]);
        if let Ok(sampling) = &mut sampling {
            let (began, mut word) = (std::time::Instant::now(), 1_u64);
            while began.elapsed() < std::time::Duration::from_secs(1) {
                word = std::hint::black_box(word.wrapping_mul(3));
            }
            assert!(!sampling.threads.is_empty());
        }
        match sampling.map(Sampling::finish) {
            Ok(share) => assert!(share.samples > 0 && share.copying <= share.samples, "{share:?}"),
            Err(why) => assert!(why.contains("root") || why.contains("samples nothing"), "{why}"),
        }
    }
}
