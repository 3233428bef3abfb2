//! ntcopy.ko: its sources, and the suite through it.
//!
//! The sources: checkpatch, and for each kernel W=1 and sparse. Then the module is loaded in QEMU, into kernels with KASAN, lockdep and
//! kmemleak, and the suite runs; also while allocations and user copies fail in the middle of
//! sends. What the guest's kernel says of itself fails this, and so does a reference that is left
//! when all sockets are closed.

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
    style()?;
    let programs = suite::names(&suite::of_module());
    let guests = Guests::new(ntcopy, "module", &programs)?;
    for name in if kernels.is_empty() { &KERNELS } else { kernels } {
        let (kernel, module) = module(name)?;
        warnings(&kernel)?;
        through(&guests, &kernel, &module, "suite", &guests.each(&programs))?;
        let sends = guests.sends_while_calls_fail()?;
        let said = through(&guests, &kernel, &module, "faults", &sends)?;
        let bypassed = said.lines().filter_map(|line| line.strip_prefix("# NtcopyBypassedBytes "));
        if !bypassed.into_iter().any(|bytes| bytes != "0") {
            return Err(Error::Failed(format!("{name}: faults: nothing went past the caches")));
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

/// checkpatch of the source's own. compat.h is about versions, and the kernel takes a table of
/// sysctls that is not constant; a name in an asm goto is no division.
const IGNORED: &str = "LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED,CONST_STRUCT";

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
    check(IGNORED, "./*.c ./*.h Kbuild Makefile")?;
    check("SPACING", "include/asm/nontemporal.h")?;
    Ok(())
}

/// Compiles once more, with every warning there is, and sparse.
fn warnings(kernel: &Built) -> Result<(), Error> {
    let work = tempfile::tempdir().doing("making a folder")?;
    let copy = "cp -r \"$1/kernel/module/.\" \"$1/uapi/.\" \"$2\"";
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
    use std::process::Command;

    use ntcopy_kernel::module::check_release;

    use crate::programs::root;

    const RELEASES: [&str; 11] = [
        "5.15.4-generic",
        "6.1.0-56-amd64",
        "6.4.4-amd64",
        "6.5.4-amd64",
        "6.11.4-amd64",
        "6.12.4-amd64",
        "6.14.4-generic",
        "7.0.4-amd64",
        "7.3.4-amd64",
        "7.4.4-amd64",
        "7.30.4-amd64",
    ];

    /// The suite ran on them: DKMS builds for these by itself.
    fn is_tried(release: &str) -> bool {
        release.starts_with("6.12.") || release.starts_with("7.3.")
    }

    /// What `dkms autoinstall` of 3.0.10 (Debian 12) does with the module for a kernel. It reads
    /// dkms.conf for each kernel that has the module, or for none ("").
    const AUTOINSTALL: &str = r#"
        kernelver=("$1")
        safe_source() { . "$1"; }
        read_conf() { local kernelver=$1; safe_source "$2"; }
        read_conf "$2" "$3"
        if [[ ! $AUTOINSTALL ]]; then echo left alone
        elif [[ ! ${kernelver[0]} =~ $BUILD_EXCLUSIVE_KERNEL ]]; then echo failed
        else echo built; fi"#;

    #[test]
    fn dkms_builds_by_itself_where_the_suite_ran_and_leaves_other_kernels_alone() {
        for release in RELEASES {
            assert!(!is_tried(release) || check_release(release).is_ok(), "{release}: compat.h");
            for built_for in ["", "6.12.9-amd64", release] {
                let mut bash = Command::new("bash");
                bash.args(["-c", AUTOINSTALL, "dkms", release, built_for]);
                let output = bash.arg(root().join("kernel/module/dkms.conf")).output().unwrap();
                let fate = if is_tried(release) { "built" } else { "left alone" };
                let said = String::from_utf8_lossy(&output.stdout);
                assert_eq!(said.trim(), fate, "{release}, and it has the module for '{built_for}'");
            }
        }
    }

    /// What `dkms build` reads: the kernel is in a variable of its own.
    #[test]
    fn dkms_refuses_to_build_where_the_suite_did_not_run() {
        let script = r#"kernelver=$1; . "$2"; [[ $kernelver =~ $BUILD_EXCLUSIVE_KERNEL ]]"#;
        for release in RELEASES {
            let mut bash = Command::new("bash");
            bash.args(["-c", script, "dkms", release]);
            let status = bash.arg(root().join("kernel/module/dkms.conf")).status().unwrap();
            assert_eq!(status.success(), is_tried(release), "{release}");
        }
    }
}
