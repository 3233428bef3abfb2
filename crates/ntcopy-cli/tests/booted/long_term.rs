//! Linux 6.12, for which there is a series of its own.

use std::path::Path;

use xtask::suite::{self, Kernel};

use crate::common::PROGRAM;

#[test]
#[ignore = "make test-612"]
fn the_kernel_of_the_long_term_series_keeps_its_promises() {
    let lacks = &["mptcp", "sctp", "io_uring"];
    let kernel = Kernel { name: "um:6.12", lacks, big_mib: 64, limit_s: 900 };
    let passed = suite::must_pass(Path::new(PROGRAM), &kernel, &suite::of_sockets());
    passed.unwrap_or_else(|error| panic!("{error}"));
}
