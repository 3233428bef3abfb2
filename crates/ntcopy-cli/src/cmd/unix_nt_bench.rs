//! `ntcopy unix-nt-bench`: the published microbenchmark's own command line.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::experiment::{Family, Mode};
use ntcopy_bench::experiments::sends::run::{Clocked, Rig, RigOptions};
use ntcopy_bench::experiments::sends::{CellPlan, Form};
use ntcopy_bench::plan::CpuPair;
use ntcopy_bench::run::{self, Failure, Stop};
use ntcopy_report::text::thousands;

use super::bench;
use super::{not_available, unmeasured};

/// No run waits longer than this for a byte to move.
const PATIENCE: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  taskset -ac 1,2 ntcopy unix-nt-bench 1048576 100000 0 524288 524288
  ntcopy kernel boot --cpus 2 -- ntcopy unix-nt-bench 1048576 100000 1 524288 524288

The parent sends on the first CPU that it may run on, the child reads on the second. Before the
clock starts, patterned data goes the same way and every byte is compared.
Exit codes: 0 done; 1 failed; 2 usage; 3 not available here; 4 a byte was wrong.";

/// The published microbenchmark: one unix socket, a reader that splices to /dev/null.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Size of the object, bytes
    #[arg(value_name = "OBJ", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    object_bytes: u64,
    /// How often it is sent
    #[arg(value_name = "ITER", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,
    /// 1: send with MSG_NTCOPY; 0: do not
    #[arg(value_name = "NT", value_parser = clap::value_parser!(u8).range(0..=1))]
    nt: u8,
    /// Size of the reader's pipe, bytes
    #[arg(value_name = "PIPE", value_parser = clap::value_parser!(u64).range(1..))]
    pipe_bytes: u64,
    /// Send buffer of the socket, bytes
    #[arg(value_name = "SNDBUF", value_parser = clap::value_parser!(u64).range(1..))]
    sndbuf_bytes: u64,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mode = if args.nt == 1 { Mode::Hinted } else { Mode::Plain };
    if let Some(why) = run::unavailable(mode)? {
        return Err(not_available(why));
    }
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let clocked = measure(&args, mode, &stop).map_err(unmeasured)?;
    print(mode, &clocked);
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args, mode: Mode, stop: &Stop) -> Result<Clocked, Failure> {
    let reader_args = bench::process_args("reader");
    let options = RigOptions { reader_args, patience: PATIENCE, spoil: false };
    let mut rig = Rig::alone(&cell(args, &run::cpus()?.allowed), &options, stop)?;
    rig.verify(mode, 1)?;
    rig.run(mode, args.iterations)
}

/// The cell that the arguments describe, on the CPUs of the mask that the
/// program was started with.
fn cell(args: &Args, allowed: &[u32]) -> CellPlan {
    let sender = allowed.first().copied().unwrap_or(0);
    CellPlan {
        family: Family::Unix,
        form: Form::FreeRunning {
            iterations: Some(args.iterations),
            most_iterations: args.iterations,
        },
        object_bytes: args.object_bytes,
        dataset_bytes: args.object_bytes,
        pipe_bytes: Some(args.pipe_bytes),
        sndbuf_bytes: Some(args.sndbuf_bytes),
        cpus: CpuPair { sender, reader: allowed.get(1).copied().unwrap_or(sender) },
        published: None,
        note: None,
    }
}

/// The published table's columns: seconds, and millions of bits a second.
fn print(mode: Mode, clocked: &Clocked) {
    let name = if mode == Mode::Hinted { "MSG_NTCOPY" } else { "\"Normal\" copy" };
    let seconds = clocked.elapsed_ns as f64 / 1e9;
    let mbit_per_s = clocked.bytes as f64 * 8.0 / 1e6 / seconds;
    println!("{:<15} {:>17} {:>18}", "Mode", "real time (sec.)", "throughput (Mb/s)");
    println!("{name:<15} {seconds:>17.3} {:>18}", thousands(mbit_per_s));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_cpus_of_the_mask_are_used() {
        let args = Args { object_bytes: 1, iterations: 1, nt: 0, pipe_bytes: 1, sndbuf_bytes: 1 };
        assert_eq!(cell(&args, &[1, 65]).cpus, CpuPair { sender: 1, reader: 65 });
        assert_eq!(cell(&args, &[3]).cpus, CpuPair { sender: 3, reader: 3 });
    }
}
