//! proxyd's tests of TLS in a kernel that has TLS of its own: the one that runs these tests may have
//! none.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::common::kernel_built;

fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// The program of proxyd's integration tests, built if it isn't there.
fn proxyd_tests() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_ntcopy"));
    let profile = program.parent().expect("a folder of the program");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "-q", "--locked", "--no-run", "-p", "proxyd", "--test", "it"]);
    cargo.args(["--message-format=json", "--target-dir"]);
    cargo.arg(profile.parent().expect("the target folder"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().expect("cargo, which runs this test");
    assert!(output.status.success(), "{}", text(&output));
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|message| message["target"]["name"] == "it" && message["executable"].is_string())
        .and_then(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("cargo names the program that it made")
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
