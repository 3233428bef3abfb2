//! Programs that are under a filter of system calls from the beginning.

use std::path::Path;
use std::process::Command;

use crate::built::{alone, filters, program, run, watched};

/// A program that writes 1 MiB into sockets, which arrive as they were, under these filters; the
/// library knows of this number that allow its calls.
fn sender(base: &dyn Fn(&Path) -> Command, under: &[[&str; 2]], allowing: u32) -> Command {
    let filtered = program("gcc", "filtered").expect("gcc");
    let mut command = base(&filtered);
    command.env("NTCOPY_PRELOAD_FILTERS", allowing.to_string());
    for [what, call] in under {
        command.args(["filter", what, call]).arg(&filtered);
    }
    command.arg("send");
    command
}

const UNTRIED: [[&str; 2]; 8] = [
    ["kill", "sendto"],
    ["refuse", "sendto"],
    ["kill", "sendmsg"],
    ["refuse", "sendmsg"],
    ["kill", "getsockopt"],
    ["refuse-large", "sendto"],
    ["kill", "getpid"],
    ["allow", "sendto"],
];

#[test]
fn under_a_filter_that_nobody_has_tried_it_does_nothing() {
    for filter in UNTRIED {
        run(&mut sender(&|path| alone(path, &[]), &[filter], 0));
        run(sender(&|path| watched(path), &[filter], filters()).arg("plain"));
    }
}

#[test]
fn under_as_many_filters_as_were_tried_it_hints() {
    let allow = ["allow", "sendto"];
    for under in [&[][..], &[allow], &[allow, allow]] {
        let tried = filters() + under.len() as u32;
        run(sender(&|path| watched(path), under, tried).arg("hinted"));
        // One more, in between.
        let more = [under, &[["kill", "sendto"]]].concat();
        run(sender(&|path| watched(path), &more, tried).arg("plain"));
    }
    // The filters that were tried are not these, if these are fewer.
    run(sender(&|path| watched(path), &[allow], filters() + 2).arg("plain"));
}
