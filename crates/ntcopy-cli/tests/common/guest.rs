//! `ntcopy kernel boot`, and what every kernel's guest does alike.

use std::fs;
use std::process::{Command, Output, Stdio};

use super::signal::{self, Signal};
use super::{PROGRAM, ends, good, ntcopy, text, wait_until};

/// A kernel that is built if need be, and temporary files in a folder of the test's own.
pub struct Guest {
    pub tmp: tempfile::TempDir,
    options: Vec<String>,
}

impl Guest {
    pub fn new(kernel: &str, options: &[&str]) -> Self {
        good(&ntcopy(&["kernel", "build", "--kernel", kernel]));
        // An emulated CPU is slow, and its kernel large.
        let (timeout, mem) =
            if kernel.starts_with("um") { ("60", "256M") } else { ("300", "768M") };
        let mut all = vec!["--kernel", kernel];
        for (option, value) in [("--timeout", timeout), ("--mem", mem)] {
            if !options.contains(&option) {
                all.extend([option, value]);
            }
        }
        let options = all.iter().chain(options).map(|option| (*option).to_owned()).collect();
        // Not below target/, whose path may be too long for the kernel's socket.
        let tmp = tempfile::Builder::new().prefix("ntk").tempdir_in("/tmp").unwrap();
        Self { tmp, options }
    }

    pub fn command(&self, command: &[&str]) -> Command {
        let mut ntcopy = Command::new(PROGRAM);
        ntcopy.args(["kernel", "boot"]).args(&self.options).arg("--").args(command);
        ntcopy.env("TMPDIR", self.tmp.path()).stdin(Stdio::null());
        ntcopy
    }

    pub fn run(&self, command: &[&str]) -> Output {
        self.command(command).output().unwrap()
    }

    pub fn shell(&self, script: &str) -> Output {
        self.run(&["sh", "-c", script])
    }

    /// Nothing of this guest is left: no file, no process. What was killed may still be on its way
    /// out, on a busy machine.
    pub fn assert_nothing_left(&self) {
        let left: Vec<_> = fs::read_dir(self.tmp.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
        let mark = self.tmp.path().to_str().unwrap();
        let of_guest = |pid: &str| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
        };
        let left = || -> Vec<String> {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            let names = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.filter(|pid| of_guest(pid)).collect()
        };
        wait_until(None, || left().is_empty());
    }
}

/// The command has the host's folder, files and environment, and all of its output arrives.
pub fn a_command_is_at_home(kernel: &str, cpus: &str) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let write = folder.path().to_str().unwrap();
    let sysctl = "net.core.somaxconn=1234";
    let guest = Guest::new(kernel, &["--cpus", cpus, "--write", write, "--sysctl", sysctl]);
    // Every byte value, at lengths that are no multiple of any buffer on the way.
    let bytes: Vec<u8> =
        (0..1_000_001u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(folder.path().join("out"), &bytes).unwrap();
    fs::write(folder.path().join("err"), &bytes[1..]).unwrap();
    let script = "{ pwd; echo \"$MARK\"; id -u; nproc; uname -m; cat /sys/class/net/lo/flags; \
                  cat /proc/sys/net/core/somaxconn; cat - | wc -c; test -w /dev/shm && echo dev; } \
                  > made; touch ../other 2>/dev/null && exit 1; cat out & cat err >&2; wait; exit 77";
    let mut command = guest.command(&["sh", "-c", script]);
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

pub fn a_panic_ends_it_and_shows_its_last_lines(kernel: &str) {
    let guest = Guest::new(kernel, &[]);
    let output = guest.shell("echo before; sleep 1; echo c > /proc/sysrq-trigger; sleep 600");
    ends(&output, 1, &["Kernel panic - not syncing: sysrq triggered crash"]);
    assert_eq!(text(&output.stdout), "before\n");
    guest.assert_nothing_left();
}

pub fn a_signal_ends_it_and_leaves_nothing(kernel: &str, signal: Signal, code: i32) {
    let begun = tempfile::tempdir_in("/tmp").unwrap();
    let guest = Guest::new(kernel, &["--write", begun.path().to_str().unwrap()]);
    let mark = begun.path().join("mark");
    let script = "touch \"$0\"; sync; sleep 600";
    let mut command = guest.command(&["sh", "-c", script, mark.to_str().unwrap()]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_until(Some(&mut child), || mark.exists());
    signal::send(&child, signal);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(code), "{signal:?}: {status}");
    guest.assert_nothing_left();
}
