//! What is wrong is answered as without the library.

use crate::built::{COMPILERS, library, played, program, run, under};

#[test]
fn every_error_and_every_partial_send_is_the_same() {
    for compiler in COMPILERS {
        let Some(errors) = program(compiler, "errors") else { continue };
        let without = run(&mut played("taken", &errors, &[]));
        // Every call on every descriptor.
        assert!(without.lines().count() > 300, "{without}");
        for min_bytes in ["4096", "1000000"] {
            let with = run(under(&errors).env("NTCOPY_PRELOAD_MIN_BYTES", min_bytes));
            assert_eq!(with, without, "{compiler}, from {min_bytes} bytes on");
        }
        let with = run(&mut played("refused", &errors, &[library()]));
        assert_eq!(with, without, "{compiler}, refused");
    }
}
