//! Linux 6.12, for which there is a series of its own.

use crate::common::suite::{self, Kernel};

#[test]
#[ignore = "make test-612"]
fn the_kernel_of_the_long_term_series_keeps_its_promises() {
    let arguments = &["--kernel", "um:6.12"];
    let lacks = &["mptcp", "sctp", "io_uring"];
    suite::must_pass_with_sockets(&Kernel { arguments, lacks, big_mib: 64, limit_s: 900 });
}
