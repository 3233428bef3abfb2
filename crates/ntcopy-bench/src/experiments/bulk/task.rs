//! What the experiments on copies in user space have in common: what is done
//! ([`Task`]), and the ways to do it ([`Way`]).

use std::fmt;

use ntcopy::arch::{COPY_BACKENDS, FILL_BACKENDS};
use ntcopy::{Method, Path};
use serde::{Deserialize, Serialize};

use crate::experiment::words;

pub const PIECE_BYTES: u64 = 64 << 10;

pub const ELEMENT_BYTES: u64 = 8;

/// Bytes of a page, on every machine that this program runs on.
pub const PAGE_BYTES: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Clear,
    /// Another page is copied to it.
    Copy,
}

words!(Action, Clear = "clear", Copy = "copy");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadBack {
    None,
    /// 100 bytes of each, in five places.
    Some,
    All,
}

words!(ReadBack, None = "none", Some = "some", All = "all");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageWay {
    /// `rep stosb`, `rep movsb`.
    RepB,
    /// `rep stosq`, `rep movsq`.
    RepQ,
    /// SSE, normal stores, PREFETCHT0 on the source.
    SseT0,
    /// SSE, normal stores, PREFETCHNTA on the source.
    SseNta,
    /// SSE, non-temporal stores, PREFETCHT0 on the source.
    SseNtT0,
    /// SSE, non-temporal stores, PREFETCHNTA on the source.
    SseNtNta,
    /// MOVNTI, by the kernel series' own assembly.
    Movnti,
    /// MOVDIR64B; a copy by the kernel series' own assembly.
    Movdir64b,
}

words!(
    PageWay,
    RepB = "rep-b",
    RepQ = "rep-q",
    SseT0 = "sse-t0",
    SseNta = "sse-nta",
    SseNtT0 = "sse-nt-t0",
    SseNtNta = "sse-nt-nta",
    Movnti = "movnti",
    Movdir64b = "movdir64b"
);

impl PageWay {
    /// Why it says nothing about an action, if so.
    pub fn not_for(self, action: Action) -> Option<&'static str> {
        match (self, action) {
            (PageWay::SseNta | PageWay::SseNtNta, Action::Clear) => {
                Some("a clear has no source to prefetch: it would be the same as with t0")
            }
            _ => None,
        }
    }
}

/// Pages of the memory that is copied or filled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Pages {
    /// Transparent huge pages, where the kernel has them
    #[default]
    Huge,
    /// Pages of 4 KiB, as a program gets them that asks for nothing on most systems
    Small,
}

/// Where the bytes of one side were before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Heat {
    Hot,
    /// The next one in a region that is far larger than the last-level cache.
    Cold,
}

words!(Heat, Hot = "hot", Cold = "cold");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatrixTask {
    Sum,
    Write,
    /// They are copied to the same places of another one.
    Copy,
}

words!(MatrixTask, Sum = "sum", Write = "write", Copy = "copy");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    Copy {
        source: Heat,
        destination: Heat,
        /// How far into a cache line sources begin that destinations begin with.
        offset_bytes: u32,
        /// What is read of each destination, once it is copied: nothing or all.
        read_back: ReadBack,
    },
    Fill {
        value: u8,
        destination: Heat,
    },
    /// Walks through a square matrix of 8-byte numbers.
    Matrix(MatrixTask),
    Pages {
        action: Action,
        /// What is read, once the whole buffer is done.
        read_back: ReadBack,
    },
}

/// Which way through a matrix, and by which stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Walk {
    pub by_columns: bool,
    /// MOVNTI, instead of normal stores.
    pub nontemporal: bool,
}

/// A library of another project that copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// libpmem2's `pmem2_memcpy_fn`.
    Libpmem2,
    LlvmLibc,
    /// DPDK's `rte_memcpy`.
    RteMemcpy,
}

words!(Peer, Libpmem2 = "libpmem2", LlvmLibc = "llvm-libc", RteMemcpy = "rte-memcpy");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// The C library's `memcpy` or `memset`, as it is.
    Libc,
    /// glibc's, with another threshold: what CPUID's cache size asks for, or what was asked for.
    LibcTuned,
    Peer(Peer),
    /// This library, hints [`ntcopy::Hints::AUTO`].
    Ours,
    /// This library, in pieces of [`PIECE_BYTES`].
    Stream,
    /// One of this library's paths, chosen by hand.
    Copy(Path),
    Fill(Method),
    Walk(Walk),
    Page(PageWay),
}

/// perf's names of its functions to fill.
const PERF_NAMES: [(Method, &str); 3] = [
    (Method::RepStosb, "x86-64-stosb"),
    (Method::RepStosq, "x86-64-stosq"),
    (Method::Movnti, "x86-64-movnt"),
];

const WALKS: [(&str, Walk); 4] = [
    ("row", Walk { by_columns: false, nontemporal: false }),
    ("column", Walk { by_columns: true, nontemporal: false }),
    ("row-nt", Walk { by_columns: false, nontemporal: true }),
    ("column-nt", Walk { by_columns: true, nontemporal: true }),
];

impl Task {
    /// A copy between aligned places, of which nothing is read.
    pub const fn copy(source: Heat, destination: Heat) -> Task {
        Task::Copy { source, destination, offset_bytes: 0, read_back: ReadBack::None }
    }

    /// Every way to do a task of this kind, whether this CPU has it or not.
    pub fn ways(self) -> Vec<Way> {
        match self {
            Task::Copy { .. } => {
                let ours = [Way::Libc, Way::LibcTuned, Way::Ours, Way::Stream];
                let ours = ours.into_iter().chain(Peer::ALL.iter().copied().map(Way::Peer));
                let rows = COPY_BACKENDS.iter().filter(|row| row.method != Method::Libc);
                ours.chain(rows.flat_map(|row| row.paths()).map(Way::Copy)).collect()
            }
            Task::Fill { .. } => {
                let rows = FILL_BACKENDS.iter().map(|row| row.method);
                let rows = rows.filter(|method| *method != Method::Libc);
                let ours = [Way::Libc, Way::LibcTuned, Way::Ours];
                ours.into_iter().chain(rows.map(Way::Fill)).collect()
            }
            Task::Matrix(_) => WALKS.map(|(_, walk)| Way::Walk(walk)).into(),
            Task::Pages { .. } => PageWay::ALL.iter().copied().map(Way::Page).collect(),
        }
    }

    /// The names of its ways, for the command line.
    pub(crate) fn way_names(self) -> clap::builder::PossibleValuesParser {
        self.ways().iter().map(Way::to_string).collect::<Vec<String>>().into()
    }

    pub fn way(self, name: &str) -> Result<Way, String> {
        let ways = self.ways();
        ways.iter().copied().find(|way| way.to_string() == name).ok_or_else(|| {
            let known: Vec<String> = ways.iter().map(Way::to_string).collect();
            format!("--modes {name}: there is no such way; there are {}", known.join(", "))
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Way::Libc => "libc",
            Way::LibcTuned => "libc-tuned",
            Way::Peer(peer) => peer.as_str(),
            Way::Ours => "ours",
            Way::Stream => "stream",
            Way::Copy(path) => return path.fmt(out),
            Way::Fill(method) => PERF_NAMES
                .iter()
                .find(|(other, _)| other == method)
                .map_or(method.name(), |(_, name)| name),
            Way::Walk(walk) => {
                WALKS.iter().find(|(_, other)| other == walk).map_or("walk", |(name, _)| name)
            }
            Way::Page(way) => way.as_str(),
        };
        out.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASKS: [Task; 4] = [
        Task::copy(Heat::Hot, Heat::Cold),
        Task::Fill { value: 0, destination: Heat::Hot },
        Task::Matrix(MatrixTask::Sum),
        Task::Pages { action: Action::Clear, read_back: ReadBack::None },
    ];

    #[test]
    fn every_way_reads_back_by_its_name() {
        for task in TASKS {
            for way in task.ways() {
                assert_eq!(task.way(&way.to_string()), Ok(way));
            }
        }
    }

    #[test]
    fn an_unknown_way_names_the_known_ones() {
        let error = TASKS[1].way("rep-stosb").unwrap_err();
        assert!(error.contains("x86-64-stosb") && error.contains("x86-64-movnt"), "{error}");
    }
}
