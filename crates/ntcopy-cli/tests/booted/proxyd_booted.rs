//! proxyd's tests of TLS in a kernel that has TLS of its own: the one that runs these tests may have
//! none.

use std::path::PathBuf;

use crate::common::{good, kernel_built, ntcopy, stderr};

/// The program of proxyd's integration tests.
fn proxyd_tests() -> PathBuf {
    let programs = xtask::programs::build().expect("the tests of the workspace");
    let of_proxyd = programs.into_iter().find(|program| program.name == "proxyd it");
    of_proxyd.expect("cargo names the program that it made").path
}

/// Runs tests of the program in the kernel, with these options of the boot.
fn run_booted(options: &[&str], tests: &[&str]) {
    let boot = ["kernel", "boot", "--timeout", "600", "--mem", "1G"];
    let program = proxyd_tests();
    let program = ["--", program.to_str().expect("UTF-8"), "--nocapture", "--test-threads", "1"];
    let output = ntcopy(&[&boot[..], options, &program, tests].concat());
    let said = good(&output) + &stderr(&output);
    let ran = said.contains("test result: ok. ") && !said.contains("test result: ok. 0 passed");
    assert!(ran, "{said}");
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
