//! What `bench memcpy`, `memset` and `order` take on the command line.

use clap::ValueEnum;
use ntcopy_bench::experiment::bulk::{Heat, MatrixTask};
use ntcopy_bench::experiments::{memcpy, memset, order};
use ntcopy_record::units::Bytes;

use super::super::args::Common;

/// Pages of the memory that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pages {
    /// Transparent huge pages, where the kernel has them
    Huge,
    /// Pages of 4 KiB, as a program gets them that asks for nothing on most systems
    Small,
}

const MEMCPY_EXAMPLES: &str = "\
Examples:
  ntcopy bench memcpy --quick                            20 cells, about a minute
  ntcopy bench memcpy                                    all of them, about a quarter of an hour
  ntcopy bench memcpy --size 256MiB --source cold --destination cold --threads 1
  ntcopy bench memcpy --size 16MiB --modes ours,avx512-nt+t0,movdir64b+t0

Hot: the same buffer in every call. Cold: the next one in a region of four times the last-level \
cache (--region). Where the destination is cold, the library gets the size of the region as the \
total of a stream, as it would from a program that streams.

Modes beside libc: libc-tuned (glibc with the threshold that CPUID's cache size asks for), libpmem2, \
llvm-libc and rte-memcpy (if they are there: scripts/copy-peers.sh), ours, stream (ours, in pieces of 64 KiB), and every path of the library by its \
name. libc, as it is, is what all are compared with.";

/// Arguments of `bench memcpy`.
#[derive(clap::Args)]
#[command(after_help = MEMCPY_EXAMPLES, args_override_self = true)]
pub struct MemcpyArgs {
    /// Ways to compare with libc
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<String>,
    /// Bytes of a call [default: see --list]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    size: Vec<Bytes>,
    /// hot, cold [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    source: Vec<Heat>,
    /// hot, cold [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    destination: Vec<Heat>,
    /// Threads that copy at once, each on its CPU [default: 1,2, as far as there are CPUs]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Memory that a cold side walks through [default: four times the last-level cache]
    #[arg(long, value_name = "SIZE")]
    region: Option<Bytes>,
    /// The corrected threshold of libc-tuned [default: three quarters of CPUID's level-3 cache]
    #[arg(long, value_name = "SIZE")]
    libc_threshold: Option<Bytes>,
    /// Pages of the memory
    #[arg(long, value_name = "KIND", default_value = "huge")]
    pages: Pages,
}

impl MemcpyArgs {
    /// The settings as the engine wants them.
    pub fn settings(&self, common: &Common) -> memcpy::Settings {
        memcpy::Settings {
            peers: self.modes.clone(),
            size_bytes: bytes(&self.size),
            source: self.source.clone(),
            destination: self.destination.clone(),
            threads: self.threads.clone(),
            region_bytes: self.region.map(|size| size.0),
            tuned_threshold_bytes: self.libc_threshold.map(|size| size.0),
            small_pages: self.pages == Pages::Small,
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }
}

const MEMSET_EXAMPLES: &str = "\
Examples:
  ntcopy bench memset --quick
  ntcopy bench memset --size 512MiB --modes x86-64-movnt,clzero,ours
  ntcopy bench memset --value 165                        a value that is not zero
  ntcopy bench memset --modes libc-tuned --libc-threshold 4MiB   glibc with another threshold

Every call fills the same memory, touched before. Functions that `perf bench mem memset` has \
carry its names; libc is what all are compared with.";

/// Arguments of `bench memset`.
#[derive(clap::Args)]
#[command(after_help = MEMSET_EXAMPLES, args_override_self = true)]
pub struct MemsetArgs {
    /// Ways to compare with libc [default: all that the CPU has]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<String>,
    /// Bytes of a call [default: see --list]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    size: Vec<Bytes>,
    /// Threads that fill at once, each on its CPU [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threads: Vec<u32>,
    /// The byte that is stored [default: 0]
    #[arg(long, value_name = "BYTE")]
    value: Option<u8>,
    /// The threshold of libc-tuned, glibc 2.40 and later [default: three quarters of CPUID's level-3
    /// cache]
    #[arg(long, value_name = "SIZE")]
    libc_threshold: Option<Bytes>,
    /// Pages of the memory
    #[arg(long, value_name = "KIND", default_value = "huge")]
    pages: Pages,
}

impl MemsetArgs {
    /// The settings as the engine wants them.
    pub fn settings(&self, common: &Common) -> memset::Settings {
        memset::Settings {
            peers: self.modes.clone(),
            size_bytes: bytes(&self.size),
            threads: self.threads.clone(),
            value: self.value,
            tuned_threshold_bytes: self.libc_threshold.map(|size| size.0),
            small_pages: self.pages == Pages::Small,
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }
}

const ORDER_EXAMPLES: &str = "\
Examples:
  ntcopy bench order --quick
  ntcopy bench order --side 4096,4097 --task write       a power of two, and one more

A square matrix of 8-byte numbers is summed, written and copied: row by row, and column by \
column; with normal stores, and with MOVNTI.";

/// Arguments of `bench order`.
#[derive(clap::Args)]
#[command(after_help = ORDER_EXAMPLES, args_override_self = true)]
pub struct OrderArgs {
    /// Walks to compare with row [default: column,row-nt,column-nt]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<String>,
    /// Rows, and columns [default: see --list]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    side: Vec<u64>,
    /// sum, write, copy [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    task: Vec<MatrixTask>,
    /// Pages of the memory
    #[arg(long, value_name = "KIND", default_value = "huge")]
    pages: Pages,
}

impl OrderArgs {
    /// The settings as the engine wants them.
    pub fn settings(&self, common: &Common) -> order::Settings {
        order::Settings {
            peers: self.modes.clone(),
            side: self.side.clone(),
            tasks: self.task.clone(),
            small_pages: self.pages == Pages::Small,
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }
}

fn bytes(sizes: &[Bytes]) -> Vec<u64> {
    sizes.iter().map(|size| size.0).collect()
}
