//! How sockets opt in, on a kernel that a program plays (`tests/c/fake.c`).

use std::process::Command;

use crate::built::{alone, filters, library, program, run, shared};

/// The program under the library and the spy, and under a kernel that takes the option or refuses
/// its values.
fn under(kernel: &str, what: &str) -> Command {
    let mut command = alone(&program("gcc", "fake").expect("gcc"), &[library(), &shared("spy")]);
    command.env("NTCOPY_PRELOAD_FILTERS", (filters() + 1).to_string());
    command.arg(kernel).arg(program("gcc", "optin").expect("gcc")).arg(what);
    command
}

#[test]
fn a_socket_opts_in_once_and_the_program_finds_its_own_setting() {
    run(&mut under("taken", "adaptive"));
    run(under("taken", "nt").env("NTCOPY_PRELOAD_MODE", "nt"));
}

#[test]
fn a_socket_that_refuses_the_flag_is_sent_to_plainly() {
    run(&mut under("picky", "picky"));
}

#[test]
fn a_kernel_that_refuses_the_value_gets_plain_sends() {
    for mode in ["adaptive", "nt"] {
        run(under("refused", "refused").env("NTCOPY_PRELOAD_MODE", mode));
    }
}
