//! `ntcopy kernel boot` of the kernels in QEMU. These take long to build, so they are tested when
//! asked for: `make test-kernels`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{
    guest,
    signal::{self, Signal},
    text,
};

fn ntcopy() -> Command {
    let mut ntcopy = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
    ntcopy.stdin(Stdio::null());
    ntcopy
}

/// Has a kernel built, if the cache does not hold it.
fn build(kernel: &str) {
    let output = ntcopy().args(["kernel", "build", "--kernel", kernel]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// `ntcopy kernel boot` with temporary files in a directory of the test's own.
struct Guest {
    tmp: tempfile::TempDir,
    kernel: &'static str,
}

impl Guest {
    fn new(kernel: &'static str) -> Self {
        let tmp = tempfile::Builder::new().prefix("ntq").tempdir_in("/tmp").unwrap();
        Self { tmp, kernel }
    }

    fn command(&self, options: &[&str], script: &str) -> Command {
        let mut ntcopy = ntcopy();
        ntcopy.args(["kernel", "boot", "--kernel", self.kernel, "--mem", "768M"]);
        ntcopy.args(["--timeout", "300"]).args(options).args(["--", "sh", "-c", script]);
        ntcopy.env("TMPDIR", self.tmp.path());
        ntcopy
    }

    fn run(&self, options: &[&str], script: &str) -> Output {
        self.command(options, script).output().unwrap()
    }

    /// Nothing of this guest is left: no file, no process.
    fn assert_nothing_left(&self) {
        guest::assert_nothing_left(self.tmp.path(), Duration::ZERO);
    }
}

/// What holds for every kernel: the command is at home, and all of its output arrives.
fn a_command_is_at_home(kernel: &'static str, cpus: &str) {
    let guest = Guest::new(kernel);
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    // Every byte value, at lengths that are no multiple of any buffer on the way.
    let bytes: Vec<u8> =
        (0..1_000_001u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(folder.path().join("out"), &bytes).unwrap();
    fs::write(folder.path().join("err"), &bytes[1..]).unwrap();
    let script = "{ pwd; echo \"$MARK\"; id -u; nproc; uname -m; cat /sys/class/net/lo/flags; \
                  cat /proc/sys/net/core/somaxconn; cat - | wc -c; test -w /dev/shm && echo dev; } \
                  > made; touch ../other 2>/dev/null && exit 1; cat out & cat err >&2; wait; exit 77";
    let write = folder.path().to_str().unwrap();
    let options = ["--cpus", cpus, "--write", write, "--sysctl", "net.core.somaxconn=1234"];
    let mut command = guest.command(&options, script);
    let output = command.current_dir(folder.path()).env("MARK", "a b\tc").output().unwrap();
    assert_eq!(output.status.code(), Some(77), "{}", text(&output.stderr));
    assert!(output.stdout == bytes, "standard output differs: {} bytes", output.stdout.len());
    assert!(output.stderr == bytes[1..], "standard error differs: {} bytes", output.stderr.len());
    let here = folder.path().canonicalize().unwrap();
    let made = fs::read_to_string(folder.path().join("made")).unwrap();
    let expected = format!("{}\na b\tc\n0\n{cpus}\nx86_64\n0x9\n1234\n0\ndev\n", here.display());
    assert_eq!(made, expected);
    guest.assert_nothing_left();
}

/// What holds for every kernel that can be made to break: a fault that it reports fails the boot.
fn a_fault_of_the_kernel_fails_the_boot(kernel: &'static str) {
    let guest = Guest::new(kernel);
    let provoke = "echo WARNING > /sys/kernel/debug/provoke-crash/DIRECT; echo done";
    let output = guest.run(&[], provoke);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(text(&output.stdout), "done\n");
    assert!(said.contains("WARNING: ") && said.contains("lkdtm_WARNING"), "{said}");
    assert!(said.contains("1 fault reported"), "{said}");
    let output = guest.run(&["--splats", "print"], provoke);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("lkdtm_WARNING"));
    guest.assert_nothing_left();
}

#[test]
#[ignore = "make test-kernels"]
fn the_x86_kernel_with_kasan_runs_a_command_and_fails_on_its_own_faults() {
    build("x86");
    a_command_is_at_home("x86", "2");
    a_fault_of_the_kernel_fails_the_boot("x86");
}

#[test]
#[ignore = "make test-kernels"]
fn the_x86_kernel_with_kcsan_runs_a_command() {
    build("x86+kcsan");
    a_command_is_at_home("x86+kcsan", "2");
}

#[test]
#[ignore = "make test-kernels"]
fn the_x86_kernel_of_the_long_term_series_runs_a_command() {
    build("x86:6.12");
    a_command_is_at_home("x86:6.12", "1");
    a_fault_of_the_kernel_fails_the_boot("x86:6.12");
}

#[test]
#[ignore = "make test-kernels"]
fn the_distribution_s_kernels_run_a_command_and_do_not_know_the_flag() {
    for kernel in ["stock", "stock:7.3"] {
        build(kernel);
        a_command_is_at_home(kernel, "1");
        let guest = Guest::new(kernel);
        let output = guest.run(&[], "test -e /proc/sys/net/core/ntcopy; echo $?; uname -r");
        assert_eq!(text(&output.stderr), "");
        let said = text(&output.stdout);
        assert!(said.starts_with("1\n") && said.ends_with("-cloud-amd64\n"), "{said}");
    }
}

#[test]
#[ignore = "make test-kernels"]
fn an_access_that_kasan_sees_is_reported_with_its_stack() {
    build("x86");
    let guest = Guest::new("x86");
    let provoke = "echo READ_AFTER_FREE > /sys/kernel/debug/provoke-crash/DIRECT";
    let output = guest.run(&[], provoke);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("BUG: KASAN: ") && said.contains("lkdtm_READ_AFTER_FREE"), "{said}");
    guest.assert_nothing_left();
}

#[test]
#[ignore = "make test-kernels"]
fn a_panic_ends_the_guest_and_says_what_it_was_about() {
    build("x86");
    let guest = Guest::new("x86");
    let output = guest.run(&[], "echo c > /proc/sysrq-trigger; sleep 600");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("sysrq triggered crash"), "{said}");
    guest.assert_nothing_left();
}

#[test]
#[ignore = "make test-kernels"]
fn a_signal_ends_the_guest_and_leaves_nothing() {
    for kernel in ["x86", "stock"] {
        build(kernel);
        let guest = Guest::new(kernel);
        let begun = tempfile::tempdir_in("/tmp").unwrap();
        let mark = begun.path().join("mark");
        let script = format!("touch {}; sync; sleep 600", mark.display());
        let write = begun.path().to_str().unwrap();
        let mut child = guest.command(&["--write", write], &script).spawn().unwrap();
        wait_for(&mark, &mut child);
        signal::send(&child, Signal::INT);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        guest.assert_nothing_left();
    }
}

/// Waits until the command in the guest has made a file.
fn wait_for(path: &Path, child: &mut std::process::Child) {
    while !path.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it began");
        thread::sleep(Duration::from_millis(50));
    }
}
