//! ntcopy.ko: its sources, and the suite through it.
//!
//! The sources: the range of versions in the two files that state it, checkpatch, and for each
//! kernel W=1 and sparse. Then the module is loaded in QEMU, into kernels with KASAN, lockdep and
//! kmemleak, and the suite runs; also while allocations and user copies fail in the middle of
//! sends. What the guest's kernel says of itself fails this, and so does a reference that is left
//! when all sockets are closed.

use std::fs;
use std::path::Path;
use std::process::Command;

use ntcopy_kernel::{Built, Cache, cached_sources};

use crate::error::{Doing, Error};
use crate::guests::{Guests, module};
use crate::programs::root;
use crate::running::said;
use crate::selftests::unpack;
use crate::suite;

const KERNELS: [&str; 2] = ["x86:6.12+module", "x86+module"];

/// An out-of-tree module, and nothing else.
const TAINT: &str = "taint: 4096";

pub fn run(ntcopy: &Path, kernels: &[&str]) -> Result<(), Error> {
    range()?;
    style()?;
    let programs = suite::names(&suite::of_module());
    let guests = Guests::new(ntcopy, "module", &programs)?;
    for name in if kernels.is_empty() { &KERNELS } else { kernels } {
        let (kernel, module) = module(name)?;
        warnings(&kernel)?;
        through(&guests, &kernel, &module, "suite", &guests.each(&programs))?;
        let sends = guests.sends_while_calls_fail()?;
        let said = through(&guests, &kernel, &module, "faults", &sends)?;
        let hinted = said.lines().filter_map(|line| line.strip_prefix("# nontemporal_bytes "));
        if !hinted.into_iter().any(|bytes| bytes != "0") {
            return Err(Error::Failed(format!("{name}: faults: nothing was hinted")));
        }
    }
    Ok(())
}

fn through(
    guests: &Guests,
    kernel: &Built,
    module: &Path,
    name: &str,
    command: &[String],
) -> Result<String, Error> {
    let boot = guests.command(kernel, &guests.through(module, command));
    let tried = guests.run(kernel, name, boot)?.must_pass(name)?;
    if tried.stdout.lines().any(|line| line == TAINT) {
        return Ok(tried.stdout);
    }
    Err(Error::Failed(format!("{}: {name}: tainted by more than the module", kernel.kind)))
}

/// dkms.conf has to take what compat.h takes, and nothing else.
fn range() -> Result<(), Error> {
    let read = |name: &str| {
        let file = root().join("kernel/module").join(name);
        fs::read_to_string(file).doing(format!("reading {name}"))
    };
    let (compat, dkms) = (read("compat.h")?, read("dkms.conf")?);
    let bounds: Vec<(u32, u32)> = compat.lines().filter_map(bound).take(2).collect();
    let [low, high] = bounds[..] else {
        return Err(Error::Failed("compat.h does not state its range".to_owned()));
    };
    let pattern = dkms.lines().find_map(|it| it.strip_prefix("BUILD_EXCLUSIVE_KERNEL="));
    let pattern = pattern.unwrap_or_default().trim_matches('"').to_owned();
    // On both sides of each bound, and between them where a number has two digits.
    let before = |(major, minor): (u32, u32)| (major, minor.saturating_sub(1));
    for (major, minor) in [before(low), low, (6, 12), (7, 0), before(high), high, (7, 30)] {
        let release = format!("{major}.{minor}.4-amd64");
        let wanted = low <= (major, minor) && (major, minor) < high;
        let script = "printf '%s\\n' \"$1\" | grep -Eq \"$2\"";
        let mut grep = Command::new("sh");
        grep.args(["-c", script, "grep", &release, &pattern]);
        if grep.status().doing("running grep")?.success() != wanted {
            return Err(Error::Failed(format!("dkms.conf and compat.h differ on {major}.{minor}")));
        }
    }
    Ok(())
}

/// `#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)`
fn bound(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("#if LINUX_VERSION_CODE ")?;
    let numbers = rest.split_once("KERNEL_VERSION(")?.1.strip_suffix(", 0)")?;
    let (major, minor) = numbers.split_once(", ")?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// checkpatch of the source's own. compat.h is about versions; a table of sysctls that is filled in
/// is not constant; a name in an asm goto is no division.
const IGNORED: &str = "LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED,MACRO_ARG_REUSE,\
                       COMPLEX_MACRO,FUNCTION_ARGUMENTS,CONST_STRUCT";

fn style() -> Result<(), Error> {
    let work = tempfile::tempdir().doing("making a folder")?;
    let packages = cached_sources(&Cache::locate()?)?;
    let newest = packages.first().ok_or_else(|| {
        Error::NotHere("no source of Linux 7.x: run 'ntcopy kernel build' first".to_owned())
    })?;
    let names = ["checkpatch.pl", "spelling.txt", "const_structs.checkpatch"];
    unpack(newest, &names.map(|name| format!("*/scripts/{name}")), "2", work.path())?;
    let check = |ignored: &str, files: &str| {
        let script =
            format!("perl \"$1\" --no-tree --strict --quiet --ignore {ignored} -f {files}");
        let mut perl = Command::new("sh");
        perl.args(["-c", &script, "checkpatch"]).arg(work.path().join("checkpatch.pl"));
        said(perl.current_dir(root().join("kernel/module")), "checkpatch complains")
    };
    check(IGNORED, "./*.c ./*.h include/linux/*.h Kbuild Makefile")?;
    check("SPACING", "include/asm/nontemporal.h")?;
    Ok(())
}

/// Compiles once more, with every warning there is, and sparse.
fn warnings(kernel: &Built) -> Result<(), Error> {
    let work = tempfile::tempdir().doing("making a folder")?;
    let copy = "cp -r \"$1/kernel/module/.\" \"$1/uapi/ntcopy.h\" \"$2\"";
    let mut cp = Command::new("sh");
    cp.args(["-c", copy, "cp"]).arg(root()).arg(work.path());
    said(&mut cp, "the sources cannot be copied")?;
    let mut make = Command::new("make");
    make.arg("-C").arg(kernel.headers()).arg(format!("M={}", work.path().display()));
    make.arg(format!("CHECK={}", root().join("scripts/sparse.sh").display()));
    make.args(["CC=gcc", "W=1", "C=1", "modules"]);
    let said = said(&mut make, "the module does not compile")?;
    let complaint = |line: &&str| {
        let of_ours =
            line.contains("ntcopy") && (line.contains("warning") || line.contains("error"));
        let names_a_line = line.split(':').nth(1).is_some_and(|at| at.parse::<u32>().is_ok());
        of_ours || (names_a_line && (line.contains(".c:") || line.contains(".h:")))
    };
    let complaints: Vec<&str> = said.lines().filter(complaint).collect();
    if complaints.is_empty() {
        return Ok(());
    }
    Err(Error::Failed(format!("the compiler or sparse complains:\n{}", complaints.join("\n"))))
}

#[cfg(test)]
mod tests {
    use super::bound;

    #[test]
    fn a_bound_of_versions_is_read() {
        let line = "#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)";
        assert_eq!(bound(line), Some((6, 5)));
        assert_eq!(bound("#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 7)"), None);
    }
}
