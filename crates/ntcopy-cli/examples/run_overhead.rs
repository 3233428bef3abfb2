//! What the library of `ntcopy run` costs a call that it leaves alone.
//!
//! ```text
//! make build
//! cargo run --release -p ntcopy-cli --example run_overhead -- target/release/libntcopy-preload.so
//! ```
//!
//! Starts itself over and over on one CPU, in turns without the library and with it, and times calls
//! that are too small to be hinted, or not on a socket that is to be. Any kernel will do:
//! `NTCOPY_PRELOAD_ASSUME` makes the library take it for one that has the flag.

use std::ffi::CStr;
use std::fs::File;
use std::hint::black_box;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, io, mem};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use ntcopy_bench::run;
use ntcopy_record::stats::{interval, median};

/// What the library of `ntcopy run` costs a call that it leaves alone
#[derive(Parser)]
struct Args {
    /// libntcopy-preload.so
    library: PathBuf,
    /// Interleaved pairs of processes
    #[arg(long, value_name = "N", default_value_t = 31,
          value_parser = clap::value_parser!(u32).range(5..))]
    pairs: u32,
    /// Calls of each kind that a process times
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,
    /// Be one of the processes
    #[arg(long, hide = true)]
    child: bool,
}

/// What is written to, and what.
struct Ends {
    null: File,
    udp: UdpSocket,
    /// It is never read from: what is too much for its buffer is dropped by the kernel.
    _sink: UdpSocket,
    unix: (UnixStream, UnixStream),
    bytes: Vec<u8>,
    /// A message of the first bytes, and its slice, which are not on the stack.
    message: Box<(libc::msghdr, libc::iovec)>,
}

/// A kind of call.
struct Case {
    name: &'static str,
    /// Makes one; below 0 it has failed.
    call: fn(&Ends) -> isize,
}

const SMALL: usize = 64;
const LARGE: usize = 16 << 10;

const CASES: [Case; 10] = [
    Case { name: "`write` of 1 byte to a file", call: |ends| write(&ends.null, ends, 1) },
    Case { name: "`write` of 16 KiB to a file", call: |ends| write(&ends.null, ends, LARGE) },
    Case { name: "`writev` of 2 x 64 bytes to a file", call: writev },
    Case { name: "`send` of 64 bytes, UDP", call: |ends| send(ends, SMALL) },
    Case { name: "`send` of 16 KiB, UDP", call: |ends| send(ends, LARGE) },
    Case { name: "`sendmsg` of 64 bytes, UDP", call: |ends| sendmsg(&ends.udp, ends) },
    Case { name: "the same from the heap", call: |ends| sendmsg_of_heap(&ends.udp, ends) },
    Case {
        name: "`sendmsg` of 64 bytes, unix, and `read`",
        call: |ends| sendmsg(&ends.unix.0, ends).min(read(ends)),
    },
    Case {
        name: "the same from the heap",
        call: |ends| sendmsg_of_heap(&ends.unix.0, ends).min(read(ends)),
    },
    Case { name: "`dup` and `close`", call: dup_and_close },
];

fn write(to: &impl AsRawFd, ends: &Ends, size: usize) -> isize {
    let bytes = &ends.bytes[..size];
    // SAFETY: the pointer and the length are those of a slice.
    unsafe { libc::write(to.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) }
}

fn vector(ends: &Ends) -> [libc::iovec; 2] {
    [0, SMALL].map(|at| {
        let part = &ends.bytes[at..at + SMALL];
        libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() }
    })
}

fn writev(ends: &Ends) -> isize {
    let vector = vector(ends);
    // SAFETY: both parts are slices, which the call only reads.
    unsafe { libc::writev(ends.null.as_raw_fd(), vector.as_ptr(), 2) }
}

fn send(ends: &Ends, size: usize) -> isize {
    let bytes = &ends.bytes[..size];
    // SAFETY: the pointer and the length are those of a slice.
    unsafe { libc::send(ends.udp.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) }
}

fn message(slice: *mut libc::iovec) -> libc::msghdr {
    // SAFETY: zeros are null pointers and sizes of nothing.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (slice, 1);
    message
}

fn sendmsg(to: &impl AsRawFd, ends: &Ends) -> isize {
    let mut vector = vector(ends);
    let message = message(vector.as_mut_ptr());
    // SAFETY: the message has one part, a slice, which the call only reads.
    unsafe { libc::sendmsg(to.as_raw_fd(), &raw const message, 0) }
}

fn sendmsg_of_heap(to: &impl AsRawFd, ends: &Ends) -> isize {
    // SAFETY: as above; the part lies beside the message.
    unsafe { libc::sendmsg(to.as_raw_fd(), &raw const ends.message.0, 0) }
}

fn read(ends: &Ends) -> isize {
    let mut bytes = [0_u8; SMALL];
    // SAFETY: the pointer and the length are those of a slice.
    unsafe { libc::read(ends.unix.1.as_raw_fd(), bytes.as_mut_ptr().cast(), SMALL) }
}

fn dup_and_close(ends: &Ends) -> isize {
    // SAFETY: the number that is closed is the one that was just made, and has no other user.
    unsafe { libc::close(libc::dup(ends.null.as_raw_fd())) as isize }
}

/// The file that has the `write` which this program calls.
fn owner_of_write() -> anyhow::Result<PathBuf> {
    // SAFETY: zeros are null pointers.
    let mut found: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: the address is a function's, and the structure is a local.
    let is_found = unsafe { libc::dladdr(libc::write as *const libc::c_void, &mut found) } != 0;
    ensure!(is_found && !found.dli_fname.is_null(), "the loader knows no file with write()");
    // SAFETY: the loader gave a string of its own, which stays.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Ok(PathBuf::from(name.to_str().context("the path of the file with write()")?))
}

/// One process: times every kind of call, and prints a line for each, nanoseconds of all of them.
fn time_calls(args: &Args) -> anyhow::Result<()> {
    let is_wanted = env::var_os("LD_PRELOAD").is_some();
    let has_library = owner_of_write()?.file_name() == args.library.file_name();
    ensure!(is_wanted == has_library, "the library is loaded, or not, against what was asked");
    let sink = UdpSocket::bind("127.0.0.1:0")?;
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    udp.connect(sink.local_addr()?)?;
    let null = File::options().write(true).open("/dev/null").context("/dev/null")?;
    let bytes = vec![7; LARGE];
    let slice = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: SMALL };
    let mut heap = Box::new((message(std::ptr::null_mut()), slice));
    heap.0.msg_iov = &raw mut heap.1;
    let ends = Ends { null, udp, _sink: sink, unix: UnixStream::pair()?, bytes, message: heap };
    for case in &CASES {
        repeat(case, &ends, args.calls / 10)?;
        let start = Instant::now();
        repeat(case, &ends, args.calls)?;
        println!("{}", start.elapsed().as_nanos());
    }
    Ok(())
}

fn repeat(case: &Case, ends: &Ends, calls: u32) -> anyhow::Result<()> {
    for _ in 0..calls {
        if (case.call)(black_box(ends)) < 0 {
            bail!("{}: {}", case.name, io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Filters of system calls, as of a container: the library is to take it that they allow its calls.
fn filters() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Nanoseconds of one call of each kind, in a new process.
fn measured(args: &Args, library: Option<&Path>) -> anyhow::Result<Vec<f64>> {
    let mut child = Command::new(env::current_exe().context("this program's path")?);
    child.arg("--child").arg("--calls").arg(args.calls.to_string()).arg(&args.library);
    child.env_remove("LD_PRELOAD");
    if let Some(library) = library {
        child.env("LD_PRELOAD", library).env("NTCOPY_PRELOAD_ASSUME", "kernel");
        child.env("NTCOPY_PRELOAD_FILTERS", filters().to_string());
    }
    let output = child.output().context("cannot start this program anew")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.is_empty(), "the timed process: {said}");
    let text = String::from_utf8(output.stdout).context("the timed process")?;
    let ns = text.lines().map(|line| Ok(line.parse::<f64>()? / f64::from(args.calls)));
    let ns: Vec<f64> = ns.collect::<anyhow::Result<_>>().context("the timed process")?;
    ensure!(ns.len() == CASES.len(), "the timed process said {text:?}");
    Ok(ns)
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if args.child {
        return time_calls(&args);
    }
    let library = args.library.canonicalize();
    let library = library.with_context(|| format!("{}: make build", args.library.display()))?;
    // Both of a pair on one CPU, which those that are started inherit.
    run::stay_on(run::cpus()?.allowed.last().copied())?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for pair in 0..args.pairs {
        // The order takes turns, so that neither side always comes second.
        for is_under in [pair % 2 == 0, pair % 2 == 1] {
            let ns = measured(&args, is_under.then_some(library.as_path()))?;
            if is_under { with.push(ns) } else { without.push(ns) }
        }
    }
    println!("| call | alone, ns | under the library, ns | ratio |");
    println!("|---|---|---|---|");
    for (index, case) in CASES.iter().enumerate() {
        let of = |all: &[Vec<f64>]| all.iter().map(|each| each[index]).collect::<Vec<f64>>();
        let (alone, under) = (of(&without), of(&with));
        let ratios: Vec<f64> =
            under.iter().zip(&alone).map(|(under, alone)| under / alone).collect();
        let (low, high) = interval(&ratios);
        println!(
            "| {} | {:.0} | {:.0} | {:.3}x ({low:.3}-{high:.3}) |",
            case.name,
            median(&alone),
            median(&under),
            median(&ratios),
        );
    }
    Ok(())
}
