//! The suite in the kernels that look for faults: under KASAN, lockdep, kmemleak and UBSAN, the
//! copies and their faults on a CPU of Intel's, too, whose way to copy is another one, and the
//! counters on a Zen 4, on which the rule spares another cache, then under KCSAN, then with user
//! copies and allocations that fail.
//!
//! The first socket that opts in patches the kernel, once per boot, and so may the sysctl: each is
//! the first in a boot of its own, under lockdep. Under KCSAN random programs send while the sysctl
//! changes. A failed test fails this, and so does any report of a kernel about itself.

use std::path::Path;

use ntcopy_kernel::Built;

use crate::error::Error;
use crate::guests::{Guests, kernel, words};
use crate::soak::{self, Soak};
use crate::suite;

const KERNELS: [&str; 4] = ["x86", "x86+kcsan", "x86:6.12", "x86:6.12+kcsan"];

/// What tries the copies themselves.
const COPIES: [&str; 3] = ["edges", "holes", "bytes"];

/// Four pages in turn; QEMU's own CPU copies line after line.
const INTEL: &str = "max,vendor=GenuineIntel,family=6,model=207";

/// Its source displaces level 2 whichever way it is copied.
const ZEN4: &str = "max,vendor=AuthenticAMD,family=25,model=17";

pub fn run(ntcopy: &Path, kernels: &[&str]) -> Result<(), Error> {
    let programs = suite::names(&suite::all());
    let guests = Guests::new(ntcopy, "kernels", &programs)?;
    for name in if kernels.is_empty() { &KERNELS } else { kernels } {
        let kernel = kernel(name)?;
        each(&guests, &kernel, "suite", &programs)?;
        if name.ends_with("kcsan") {
            let soak = Soak { kernel: name, cpus: 2, seed: 1, minutes: 0, programs: 50 };
            soak::run(ntcopy, &soak)?;
        } else if !name.ends_with("plain") {
            faults(&guests, &kernel)?;
            on_cpu(INTEL, || each(&guests, &kernel, "intel", &COPIES))?;
            on_cpu(ZEN4, || each(&guests, &kernel, "zen4", &["counters"]))?;
        }
    }
    Ok(())
}

fn each(guests: &Guests, kernel: &Built, name: &str, programs: &[&str]) -> Result<(), Error> {
    let boot = guests.command(kernel, &guests.each(programs));
    guests.run(kernel, name, boot)?.must_pass(name).map(drop)
}

fn faults(guests: &Guests, kernel: &Built) -> Result<(), Error> {
    let calls = guests.program("calls");
    for (name, command) in [
        ("faults", guests.sends_while_calls_fail()?),
        ("first-setsockopt", words(&[&calls, "-r", "calls.tcp_obeyed.write_and_writev"])),
        ("first-sysctl", words(&[&calls, "-r", "calls.tcp_all.write_and_writev"])),
    ] {
        guests.run(kernel, name, guests.command(kernel, &command))?.must_pass(name)?;
    }
    Ok(())
}

fn on_cpu(model: &str, boots: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    // SAFETY: the one other thread, which waits for signals, reads no variable.
    unsafe { std::env::set_var("NTCOPY_QEMU_CPU", model) };
    let result = boots();
    // SAFETY: the one other thread, which waits for signals, reads no variable.
    unsafe { std::env::remove_var("NTCOPY_QEMU_CPU") };
    result
}
