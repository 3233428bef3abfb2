//! proxyd's tests of TLS in a kernel that has TLS of its own: the one that runs these tests may have
//! none.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

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

#[test]
fn what_is_sent_by_the_kernel_s_tls_arrives_whole() {
    let ntcopy = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
        command.stdin(Stdio::null());
        command
    };
    let built = ntcopy().args(["kernel", "build"]).output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
    let output = ntcopy()
        .args(["kernel", "boot", "--timeout", "600", "--mem", "1G"])
        // Send buffers that a slow client keeps full.
        .args(["--sysctl", "net.ipv4.tcp_wmem=4096 16384 32768", "--"])
        .arg(proxyd_tests())
        .args(["tls::", "--nocapture", "--test-threads", "1"])
        .output()
        .unwrap();
    let said = text(&output);
    assert!(output.status.success() && said.contains("test result: ok. "), "{said}");
    assert!(!said.contains("skipped in part"), "a kernel without TLS: {said}");
}
