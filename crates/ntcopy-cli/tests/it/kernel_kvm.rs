//! `--kernel kvm` where it was found that KVM runs no guest: refused at once, with the reason, before
//! anything is built.

use std::process::Command;

fn ntcopy(arguments: &[&str], cache: &std::path::Path) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_ntcopy"))
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
        let output = ntcopy(command, cache.path());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{command:?}: {stderr}");
        let expected = ["it stood still", "qemu-system-x86"];
        assert!(expected.iter().any(|words| stderr.contains(words)), "{command:?}: {stderr}");
        assert!(!cache.path().join("kernels").exists(), "nothing was built");
    }
}
