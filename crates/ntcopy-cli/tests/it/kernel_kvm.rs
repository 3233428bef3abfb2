//! `--kernel kvm` where it was found that KVM runs no guest: refused at once, with the reason, before
//! anything is built. And what `--kernel auto` makes of such a finding.

use std::process::Command;

use crate::common::{PROGRAM, ends};

fn ntcopy(arguments: &[&str], cache: &std::path::Path) -> std::process::Output {
    Command::new(PROGRAM)
        .args(arguments)
        .env("NTCOPY_CACHE", cache)
        .output()
        .expect("the program starts")
}

#[test]
fn where_a_guest_dies_each_command_refuses_it_with_the_reason() {
    let cache = tempfile::tempdir().unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let commands = [
        &["kernel", "boot", "--kernel", "kvm", "--", "true"][..],
        &["bench", "unix", "--kernel", "kvm", "--quick"],
        &["bench", "http", "--kernel", "kvm", "--quick"],
        &["try", "--kernel", "kvm", "--", "true"],
    ];
    // A machine may have a user who may not open it, or no QEMU: then it says that.
    std::fs::write(cache.path().join("kvm"), format!("{boot_id}it stood still\n")).unwrap();
    for command in commands {
        let said = ends(&ntcopy(command, cache.path()), 3, &[]);
        let expected = ["it stood still", "qemu-system-x86"];
        assert!(expected.iter().any(|words| said.contains(words)), "{command:?}: {said}");
        assert!(!cache.path().join("kernels").exists(), "nothing was built");
    }
}

#[test]
fn auto_is_um_where_a_guest_dies_or_no_kernel_is_built_for_it_and_says_so() {
    let cache = tempfile::tempdir().unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for (verdict, says) in
        [("it stood still", "it stood still"), ("works", "makes a kernel for it")]
    {
        std::fs::write(cache.path().join("kvm"), format!("{boot_id}{verdict}\n")).unwrap();
        // What is wrong with the rest is found before anything is built.
        let commands = [
            &["bench", "unix", "--kernel", "auto", "--sockets", "0"][..],
            &["try", "--kernel", "auto", "--", "/no/such/program"],
        ];
        for command in commands {
            let stderr = String::from_utf8(ntcopy(command, cache.path()).stderr).unwrap();
            let line = stderr.lines().find(|line| line.starts_with("kernel: um ("));
            let line = line.unwrap_or_else(|| panic!("{command:?}: {stderr}"));
            assert!(line.contains(says) || line.contains("qemu-system-x86"), "{line}");
        }
    }
}
