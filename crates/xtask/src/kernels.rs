//! The suite in the kernels that look for faults: under KASAN, lockdep, kmemleak and UBSAN, the
//! copies and their faults of pages in turn, too, as of Intel's CPUs with AMX, then under KCSAN,
//! then with user copies and allocations that fail.
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

/// The bit of CPUs that copy four pages in turn, which has no name; QEMU emulates none of them.
/// Linux 6.12 has no way to set a bit.
const IN_TURN: &str = "setcpuid=693";

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
            if !name.contains("6.12") {
                let mut boot = guests.command(&kernel, &guests.each(&COPIES));
                boot.arguments.push(IN_TURN.to_owned());
                guests.run(&kernel, "turns", boot)?.must_pass("turns")?;
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::root;

    #[test]
    fn the_bit_is_the_one_that_the_patch_defines() {
        let folder = root().join("kernel/series/7.3/net");
        let patches = std::fs::read_dir(folder).expect("the series");
        let copy = patches
            .map(|entry| entry.expect("an entry").path())
            .find(|path| path.to_string_lossy().contains("0001-x86-lib"))
            .expect("the copy");
        let text = std::fs::read_to_string(copy).expect("a patch");
        let defined = text.split_once("X86_FEATURE_NT_IN_TURN").expect("the bit").1;
        let (word, bit) = defined
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(')'))
            .and_then(|(number, _)| number.split_once("*32+"))
            .expect("(word*32+bit)");
        let number = |text: &str| text.parse::<u32>().expect("a number");
        assert_eq!(IN_TURN, format!("setcpuid={}", number(word) * 32 + number(bit)));
    }
}
