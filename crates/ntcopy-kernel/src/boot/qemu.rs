//! QEMU as the machine: every instruction emulated, or run by KVM; nothing of the host's but its
//! file tree.

use std::os::fd::RawFd;
use std::path::Path;

use super::spec::PORT_NAMES;
use super::{CONSOLE, SHARE_SOCKET};
use crate::kind::Kind;
use crate::tools::Virtiofsd;

pub(super) const PROGRAM: &str = "qemu-system-x86_64";

/// What the guest's kernel calls the host's tree.
const TAG: &str = "ntcopy";

/// A guest by KVM has threads that can be told apart.
const KVM_NAMES: [&str; 2] = ["-name", "ntcopy,debug-threads=on"];

/// How the guest sees the host's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// 9p, which QEMU serves itself, and which our own kernels have.
    NineP,
    /// virtio-fs: what a stock kernel for clouds has built in. A daemon of its own serves it.
    VirtioFs,
}

impl Share {
    pub(super) fn of(kind: Kind) -> Self {
        if kind.is_stock() { Self::VirtioFs } else { Self::NineP }
    }
}

/// Environment: what QEMU emulates, as its option `-cpu` takes it. Vendor and model decide how the
/// kernel copies non-temporally.
const CPU_VARIABLE: &str = "NTCOPY_QEMU_CPU";

/// The CPU that KVM gives a guest: the host's own.
pub(super) fn kvm_machine() -> [&'static str; 4] {
    ["-accel", "kvm", "-cpu", "host"]
}

fn tcg_machine(cpus: u32) -> [String; 4] {
    let threads = if cpus > 1 { "multi" } else { "single" };
    // Five levels of page tables only make each emulated walk longer.
    let model = std::env::var(CPU_VARIABLE).unwrap_or_else(|_| "max".to_owned());
    ["-accel".into(), format!("tcg,thread={threads}"), "-cpu".into(), format!("{model},la57=off")]
}

/// The machine's arguments. `fds` are its ends of the lines.
pub(super) fn arguments(
    kernel: &Path,
    kind: Kind,
    mem_bytes: u64,
    cpus: u32,
    run_dir: &Path,
    fds: [RawFd; 3],
) -> Vec<String> {
    let mem_kib = mem_bytes.div_ceil(1 << 20) << 10;
    let run_dir = run_dir.display();
    let mut words: Vec<String> = match kind {
        // Its threads have names, by which they are pinned.
        Kind::Kvm => kvm_machine().into_iter().chain(KVM_NAMES).map(str::to_owned).collect(),
        _ => tcg_machine(cpus).into(),
    };
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    add("-smp", cpus.to_string());
    add("-m", format!("{mem_kib}K"));
    match Share::of(kind) {
        Share::NineP => {
            add("-machine", "q35".into());
            add("-fsdev", "local,id=root,path=/,security_model=none,multidevs=remap".into());
            add("-device", format!("virtio-9p-pci,fsdev=root,mount_tag={TAG}"));
        }
        Share::VirtioFs => {
            // The daemon reads and writes the guest's memory.
            add("-object", format!("memory-backend-memfd,id=mem,size={mem_kib}K,share=on"));
            add("-machine", "q35,memory-backend=mem".into());
            add("-chardev", format!("socket,id=root,path={run_dir}/{SHARE_SOCKET}"));
            add("-device", format!("vhost-user-fs-pci,chardev=root,tag={TAG}"));
        }
    }
    add("-chardev", format!("file,id=console,path={run_dir}/{CONSOLE},append=on"));
    add("-serial", "chardev:console".into());
    add("-device", "virtio-serial-pci".into());
    for ((number, name), fd) in PORT_NAMES.iter().enumerate().zip(fds) {
        add("-chardev", format!("socket,id=line{number},fd={fd}"));
        let nr = number + 1;
        add("-device", format!("virtserialport,chardev=line{number},nr={nr},name={name}"));
    }
    add("-display", "none".into());
    add("-kernel", kernel.display().to_string());
    words.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
    words
}

/// How 9p is mounted. The host does not change files under a running test, so the guest may keep
/// what it has read; what it writes goes out at once.
const NINE_P: &str = "trans=virtio,version=9p2000.L,msize=512000,cache=loose";

/// The first part of the kernel's command line. By KVM the kernel's times are those of a real one,
/// so it guards itself as that does.
pub(super) fn kernel_arguments(kind: Kind, share: Share) -> Vec<String> {
    let (file_system, flags) = match share {
        Share::NineP => ("9p", format!("rootflags={NINE_P}")),
        Share::VirtioFs => ("virtiofs", String::new()),
    };
    [
        "console=ttyS0",
        &format!("root={TAG}"),
        &format!("rootfstype={file_system}"),
        &flags,
        "rw",
        // A fault ends the guest, and QEMU with it, with its report on the console.
        "oops=panic",
        "panic=-1",
        // An emulated CPU that waits for the host looks like one that hangs.
        "rcupdate.rcu_cpu_stall_suppress=1",
        "nowatchdog",
        // Its timer may be late for the kernel's look whether it interrupts.
        "no_timer_check",
        if kind == Kind::Kvm { "" } else { "mitigations=off" },
    ]
    .iter()
    .filter(|word| !word.is_empty())
    .map(|word| (*word).to_owned())
    .collect()
}

/// The arguments of the daemon that serves the whole tree over virtio-fs.
pub(super) fn daemon_arguments(daemon: &Virtiofsd, socket: &Path) -> Vec<String> {
    let socket = format!("--socket-path={}", socket.display());
    let rest: &[&str] = match daemon.takes_long_options {
        true => &["--shared-dir=/", "--cache=auto", "--sandbox=chroot"],
        // Its other sandbox cannot share the root directory itself.
        false => &["-f", "-o", "source=/", "-o", "cache=auto", "-o", "sandbox=chroot"],
    };
    std::iter::once(socket).chain(rest.iter().map(|word| (*word).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{Flavour, Release};

    fn line(kind: Kind, cpus: u32) -> String {
        let (kernel, run_dir) = (Path::new("/c/linux"), Path::new("/tmp/run"));
        let words = arguments(kernel, kind, 512 << 20, cpus, run_dir, [7, 8, 9]);
        [words, kernel_arguments(kind, Share::of(kind))].concat().join(" ")
    }

    #[test]
    fn by_kvm_the_guest_has_the_host_s_cpu_and_threads_with_names() {
        let kvm = line(Kind::Kvm, 2);
        for part in ["-accel kvm -cpu host", "debug-threads=on", "-smp 2", "rootfstype=9p"] {
            assert!(kvm.contains(part), "{part} in {kvm}");
        }
        assert!(!kvm.contains("tcg") && !kvm.contains("mitigations"), "{kvm}");
        let emulated = line(Kind::X86(Release::V6_12, Flavour::Plain), 2);
        assert!(emulated.contains("tcg,thread=multi") && emulated.contains("mitigations=off"));
        assert!(!emulated.contains("kvm"), "{emulated}");
    }
}
