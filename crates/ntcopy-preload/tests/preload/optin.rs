//! How sockets opt in, on a kernel that a program plays (`tests/c/fake.c`).

use std::process::Command;

use crate::built::{COMPILERS, library, played, program, run, under};

const STREAM: &str = "262144";
const DATAGRAM: &str = "4096";

fn optin(command: &mut Command, numbers: [&str; 4]) {
    run(command.args(numbers));
}

#[test]
fn every_new_socket_of_a_matching_kind_has_its_number() {
    for compiler in COMPILERS {
        let Some(optin_c) = program(compiler, "optin") else { continue };
        optin(&mut under(&optin_c), [STREAM, DATAGRAM, STREAM, "0"]);
        for (families, numbers) in [
            ("unix", [STREAM, DATAGRAM, "0", "0"]),
            ("tcp", ["0", "0", STREAM, "0"]),
            ("udp", ["0", "0", "0", DATAGRAM]),
            ("unix,tcp,udp", [STREAM, DATAGRAM, STREAM, DATAGRAM]),
        ] {
            optin(under(&optin_c).env("NTCOPY_PRELOAD_FAMILIES", families), numbers);
        }
    }
}

#[test]
fn what_is_large_is_what_was_said() {
    let optin_c = program("gcc", "optin").expect("gcc");
    for number in ["4096", "65536", "2147483647"] {
        let mut command = under(&optin_c);
        command.env("NTCOPY_PRELOAD_MIN_BYTES", number);
        command.env("NTCOPY_PRELOAD_FAMILIES", "udp,unix,tcp");
        optin(&mut command, [number; 4]);
    }
}

#[test]
fn a_kernel_that_refuses_the_value_is_left_alone() {
    let filtered = program("gcc", "filtered").expect("gcc");
    run(played("refused", &filtered, &[library()]).args(["send", "0"]));
}
