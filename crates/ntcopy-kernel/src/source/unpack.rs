//! Unpacking a source package, without what our kernels never look at.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use crate::cache::children;
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::Kind;
use crate::process::Group;
use crate::series::Series;

/// Two thirds of the tree are drivers and architectures that none of our kernels compiles. Left
/// out is only what is compiled, never a Kconfig, a Makefile or a header that configuring could need.
const SOURCES_LEFT_OUT: &[&str] = &[
    "sound",
    "drivers/accel",
    "drivers/clk",
    "drivers/comedi",
    "drivers/crypto",
    "drivers/gpu",
    "drivers/hid",
    "drivers/hwmon",
    "drivers/iio",
    "drivers/infiniband",
    "drivers/input",
    "drivers/media",
    "drivers/mfd",
    "drivers/mmc",
    "drivers/mtd",
    "drivers/net/ethernet",
    "drivers/net/wireless",
    "drivers/phy",
    "drivers/pinctrl",
    "drivers/platform",
    "drivers/regulator",
    "drivers/scsi",
    "drivers/soc",
    "drivers/spi",
    "drivers/staging",
    "drivers/usb",
    "drivers/video",
];
/// Architectures of which only the headers matter, for the collision check.
const ARCHS_LEFT_OUT: &[&str] = &[
    "alpha",
    "arc",
    "arm",
    "arm64",
    "csky",
    "hexagon",
    "loongarch",
    "m68k",
    "microblaze",
    "mips",
    "nios2",
    "openrisc",
    "parisc",
    "powerpc",
    "riscv",
    "s390",
    "sh",
    "sparc",
    "xtensa",
];
/// Whole folders that no build of a kernel reads.
const FOLDERS_LEFT_OUT: &[&str] = &[
    "Documentation/devicetree/bindings",
    "Documentation/translations",
    "tools/perf",
    "tools/testing",
];

/// Folders of which um+small compiles only what lies in them and below the folders named with each;
/// of all others it reads what describes them, and of architectures the interface's headers.
const COMPILED_SMALL: &[(&str, &[&str])] = &[
    ("arch", &["um", "x86"]),
    ("drivers", &["base", "char", "net", "tty"]),
    ("fs", &["devpts", "exportfs", "hostfs", "kernfs", "notify", "proc", "ramfs", "sysfs"]),
    ("net", &["bpf", "core", "ethernet", "ethtool", "ipv4", "ipv6", "netlink", "sched", "unix"]),
    ("security", &[]),
    ("Documentation", &[]),
    ("rust", &[]),
    ("samples", &[]),
    ("sound", &[]),
];

/// Room for the unpacked tree and its build, in bytes: measured 0.7 GB for um, 1.1 GB for x86 with
/// KASAN, and a reserve.
pub(crate) const NEEDED_BYTES: u64 = 1_800_000_000;
/// The same for a whole tree, which `--keep-source` leaves behind: measured 2.0 GB.
pub(crate) const NEEDED_WHOLE_BYTES: u64 = 2_500_000_000;

/// Which files of a source are unpacked.
pub(crate) enum Wanted {
    /// All of them.
    Whole,
    /// What one of our kernels with these touched files needs.
    Trimmed(HashSet<String>),
    /// What um+small with these touched files needs.
    Small(HashSet<String>),
}

impl Wanted {
    /// What one of our kernels with this series needs.
    pub(crate) fn trimmed(kind: Kind, series: &Series) -> Self {
        let touched = series.touched().into_iter().collect();
        if kind == Kind::UmSmall { Self::Small(touched) } else { Self::Trimmed(touched) }
    }

    /// Whether a file is wanted, by its path below the tree's top.
    fn has(&self, path: &str) -> bool {
        let touched = match self {
            Self::Whole => return true,
            Self::Trimmed(touched) => touched,
            Self::Small(touched) => {
                if is_left_out_of_small(path) {
                    return touched.contains(path);
                }
                touched
            }
        };
        let below =
            |folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/'));
        let extension = Path::new(path).extension().and_then(|end| end.to_str()).unwrap_or("");
        let compiled = matches!(extension, "c" | "S" | "dts" | "dtsi");
        let arch = path.strip_prefix("arch/").and_then(|rest| rest.split('/').next());
        let unwanted = FOLDERS_LEFT_OUT.iter().any(below)
            || ((compiled || extension == "h") && SOURCES_LEFT_OUT.iter().any(below))
            || (compiled && arch.is_some_and(|arch| ARCHS_LEFT_OUT.contains(&arch)));
        !unwanted || touched.contains(path)
    }
}

/// Whether um+small neither compiles a file nor needs it to be configured.
fn is_left_out_of_small(path: &str) -> bool {
    let Some((top, rest)) = path.split_once('/') else { return false };
    let Some((_, compiled)) = COMPILED_SMALL.iter().find(|(folder, _)| *folder == top) else {
        return false;
    };
    let Some((below, _)) = rest.split_once('/') else { return false };
    let is_interface = top == "arch" && path.contains("/include/uapi/");
    !compiled.contains(&below) && !describes(path) && !is_interface
}

/// Whether a file says what can be built, by its name.
fn describes(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["Makefile", "Kbuild", "Kconfig"].iter().any(|start| name.starts_with(start))
}

/// Unpacks the kernel that a package holds into `target`, and gives the tree's directory.
///
/// Nothing lies on the disk in between: dpkg-deb gives the package's files, the one of them that
/// is the compressed tree goes through xz, and what comes out is unpacked here.
pub(crate) fn unpack(
    package: &Path,
    target: &Path,
    wanted: &Wanted,
    interrupts: &Interrupts,
) -> Result<PathBuf> {
    fs::create_dir_all(target).doing("creating", target)?;
    let mut dpkg = Command::new("dpkg-deb");
    let (mut dpkg, files) = start(dpkg.arg("--fsys-tarfile").arg(package).stdin(Stdio::null()))?;
    let mut xz = Command::new("xz");
    let xz = xz.args(["--decompress", "--stdout", "--threads=0"]).stdin(Stdio::piped());
    let child = xz.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn();
    let mut child = child.doing("starting", "xz")?;
    let ends = (child.stdin.take(), child.stdout.take());
    let mut xz = Group::new(child, "xz");
    let (Some(input), Some(tree)) = ends else { unreachable!("both ends were asked for") };
    let feeder = thread::spawn(move || feed(files, input));
    let unpacked = entries(tree, target, wanted, interrupts);
    if unpacked.is_err() {
        // Ends the feeder too.
        dpkg.kill();
        xz.kill();
    }
    let fed = feeder.join().unwrap_or_else(|_| Err(io::Error::other("panicked")));
    unpacked?;
    let is_source = fed.doing("reading", package)?;
    let ended_well = dpkg.wait()?.success() && xz.wait()?.success();
    let tree = children(target)?.into_iter().find(|path| path.join("Makefile").is_file());
    tree.filter(|_| is_source && ended_well).ok_or_else(|| Error::NotATree {
        path: package.to_path_buf(),
        reason: "the package is damaged, or holds no usr/src/linux-source-*.tar.xz; ntcopy kernel \
                 clean --all lets it be downloaded again"
            .into(),
    })
}

/// Starts a program whose output is read here.
pub(super) fn start(command: &mut Command) -> Result<(Group, ChildStdout)> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdout(Stdio::piped()).process_group(0).spawn();
    let mut child = child.doing("starting", &name)?;
    let stdout = child.stdout.take();
    let group = Group::new(child, &name);
    let Some(stdout) = stdout else { unreachable!("its output was asked for") };
    Ok((group, stdout))
}

/// Finds the compressed tree among the package's files and hands it to xz. False when there is
/// none.
fn feed(files: ChildStdout, mut xz: ChildStdin) -> io::Result<bool> {
    let mut archive = tar::Archive::new(files);
    let mut found = false;
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        if !found && path.contains("usr/src/linux-source-") && path.ends_with(".tar.xz") {
            io::copy(&mut entry, &mut xz)?;
            found = true;
        }
    }
    // What is left is padding; dpkg-deb is to end by itself.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(found)
}

/// Unpacks the wanted files of a tree.
fn entries(tree: impl Read, target: &Path, wanted: &Wanted, interrupts: &Interrupts) -> Result<()> {
    let mut archive = tar::Archive::new(tree);
    archive.set_preserve_mtime(false);
    let entries = archive.entries().doing("unpacking to", target)?;
    for (count, entry) in entries.enumerate() {
        if count % 256 == 0 {
            interrupts.check()?;
        }
        let mut entry = entry.doing("unpacking to", target)?;
        let path = entry.path().doing("unpacking to", target)?.to_string_lossy().into_owned();
        let below_top = path.split_once('/').map_or("", |(_, rest)| rest);
        if wanted.has(below_top) {
            entry.unpack_in(target).doing("unpacking to", target)?;
        }
    }
    // What is left is padding. Whoever writes it must not find its reader gone, and die of that.
    io::copy(&mut archive.into_inner(), &mut io::sink()).doing("unpacking to", target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trimmed(touched: &[&str]) -> Wanted {
        Wanted::Trimmed(touched.iter().map(|file| (*file).to_owned()).collect())
    }

    #[test]
    fn drivers_and_other_architectures_are_left_out_but_not_what_describes_them() {
        let wanted = trimmed(&[]);
        for left_out in ["drivers/gpu/drm/a.c", "sound/core/a.h", "arch/arm/kernel/a.S"] {
            assert!(!wanted.has(left_out), "{left_out}");
        }
        for kept in [
            "drivers/gpu/Kconfig",
            "drivers/net/loopback.c",
            "drivers/gpuish/a.c",
            "arch/sparc/include/uapi/asm/socket.h",
            "arch/um/kernel/process.c",
            "arch/x86/lib/copy_user_64.S",
            "Makefile",
            "",
        ] {
            assert!(wanted.has(kept), "{kept}");
        }
    }

    #[test]
    fn of_a_small_kernel_only_what_it_compiles_is_unpacked() {
        let wanted = Wanted::Small(["net/tls/tls_sw.c".to_owned()].into());
        for left_out in ["fs/xfs/xfs_super.c", "drivers/acpi/a.h", "net/sctp/a.c", "samples/a/b.c"]
        {
            assert!(!wanted.has(left_out), "{left_out}");
        }
        for kept in [
            "fs/xfs/Kconfig",
            "fs/namei.c",
            "fs/proc/base.c",
            "net/tls/tls_sw.c",
            "arch/mips/include/uapi/asm/socket.h",
            "arch/um/kernel/process.c",
            "lib/iov_iter.c",
        ] {
            assert!(wanted.has(kept), "{kept}");
        }
    }

    #[test]
    fn what_the_series_touches_is_never_left_out() {
        let wanted = trimmed(&["tools/testing/selftests/net/Makefile"]);
        assert!(wanted.has("tools/testing/selftests/net/Makefile"));
        assert!(!wanted.has("tools/testing/selftests/net/a.c"));
        assert!(Wanted::Whole.has("drivers/gpu/drm/a.c"));
    }

    #[test]
    fn a_tree_is_read_to_the_last_byte_of_its_padding() {
        struct Counted<'a>(&'a [u8], &'a std::cell::Cell<usize>);
        impl Read for Counted<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let read = self.0.read(buffer)?;
                self.1.set(self.1.get() + read);
                Ok(read)
            }
        }
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_cksum();
        builder.append_data(&mut header, "linux/Makefile", &b"x"[..]).unwrap();
        let mut bytes = builder.into_inner().unwrap();
        bytes.resize(bytes.len() + 200_000, 0);
        let folder = tempfile::tempdir().unwrap();
        let read = std::cell::Cell::new(0);
        let interrupts = Interrupts::arm().unwrap();
        entries(Counted(&bytes, &read), folder.path(), &trimmed(&[]), &interrupts).unwrap();
        assert_eq!(read.get(), bytes.len());
        assert!(folder.path().join("linux/Makefile").is_file());
    }

    #[test]
    fn a_file_that_is_no_package_is_refused_and_leaves_no_process() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("x.deb");
        fs::write(&package, "not a package").unwrap();
        let interrupts = Interrupts::arm().unwrap();
        let target = folder.path().join("target");
        unpack(&package, &target, &trimmed(&[]), &interrupts).unwrap_err();
    }
}
