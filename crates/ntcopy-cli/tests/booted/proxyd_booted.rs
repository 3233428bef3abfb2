//! proxyd's tests of TLS in a kernel that has TLS of its own: the one that runs these tests may have
//! none.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::common::kernel_built;

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// The program of proxyd's integration tests.
fn proxyd_tests() -> PathBuf {
    let programs = xtask::programs::build().expect("the tests of the workspace");
    let of_proxyd = programs.into_iter().find(|program| program.name == "proxyd it");
    of_proxyd.expect("cargo names the program that it made").path
}

fn ntcopy(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
    command.stdin(Stdio::null()).args(arguments);
    command
}

/// Runs tests of the program in the kernel, with these options of the boot.
fn run_booted(options: &[&str], tests: &[&str]) {
    let mut boot = ntcopy(&["kernel", "boot", "--timeout", "600", "--mem", "1G"]);
    boot.args(options).arg("--").arg(proxyd_tests()).args(tests);
    let output = boot.args(["--nocapture", "--test-threads", "1"]).output().unwrap();
    let said = text(&output);
    let ran = said.contains("test result: ok. ") && !said.contains("test result: ok. 0 passed");
    assert!(output.status.success() && ran, "{said}");
    assert!(!said.contains("skipped in part"), "a kernel without TLS: {said}");
}

const SLOW_CLIENT: &str = "tls::a_slow_client_gets_the_last_byte_too";

#[test]
fn what_is_sent_by_the_kernel_s_tls_arrives_whole() {
    kernel_built();
    run_booted(&[], &["tls::", "--skip", SLOW_CLIENT]);
    // A slow client keeps small send buffers full; in the other tests TCP would wait for room.
    let small_buffers = ["--sysctl", "net.ipv4.tcp_wmem=4096 16384 32768"];
    run_booted(&small_buffers, &["--exact", SLOW_CLIENT]);
}
