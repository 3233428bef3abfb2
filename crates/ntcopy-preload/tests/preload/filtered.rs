//! Programs that are under a filter of system calls from the beginning.

use std::path::Path;
use std::process::Command;

use crate::built::{filters, library, played, program, run};

/// A program that writes 1 MiB into sockets, which arrive as they were, under these filters; the
/// library knows of this number that allow its calls.
fn sender(preloads: &[&Path], under: &[[&str; 2]], allowing: u32) -> Command {
    let filtered = program("gcc", "filtered").expect("gcc");
    let mut command = played("taken", &filtered, preloads);
    command.env("NTCOPY_PRELOAD_FILTERS", allowing.to_string());
    for [what, call] in under {
        command.args(["filter", what, call]).arg(&filtered);
    }
    command.arg("send");
    command
}

const UNTRIED: [[&str; 2]; 7] = [
    ["kill", "option"],
    ["refuse", "option"],
    ["kill", "process_vm_readv"],
    ["kill", "gettid"],
    ["kill", "ioctl"],
    ["refuse", "process_vm_readv"],
    ["allow", "setsockopt"],
];

#[test]
fn under_a_filter_that_nobody_has_tried_it_does_nothing() {
    // One filter plays the kernel.
    let tried = filters() + 1;
    for filter in UNTRIED {
        run(&mut sender(&[], &[filter], tried));
        run(sender(&[library()], &[filter], tried).arg("0"));
    }
}

#[test]
fn under_as_many_filters_as_were_tried_sockets_opt_in() {
    let allow = ["allow", "setsockopt"];
    for under in [&[][..], &[allow], &[allow, allow]] {
        let tried = filters() + 1 + under.len() as u32;
        run(sender(&[library()], under, tried).arg("262144"));
        // One more, in between.
        let more = [under, &[["kill", "option"]]].concat();
        run(sender(&[library()], &more, tried).arg("0"));
    }
    // The filters that were tried are not these, if these are fewer.
    run(sender(&[library()], &[allow], filters() + 3).arg("0"));
}
