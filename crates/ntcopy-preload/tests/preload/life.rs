//! That sockets opt in, in every situation of a process.

use crate::built::{library, played, program, run, shared, under};

#[test]
fn nothing_is_ready_before_the_constructor_and_everything_works() {
    let life = program("gcc", "life").expect("gcc");
    run(played("taken", &life, &[library(), &shared("early")]).arg("early"));
}

#[test]
fn signal_handlers_children_and_threads_make_sockets() {
    let life = program("gcc", "life").expect("gcc");
    for what in ["signals", "forks", "threads", "without-the-first"] {
        run(under(&life).arg(what));
    }
}

#[test]
fn a_library_that_binds_deeply_goes_past() {
    let life = program("gcc", "life").expect("gcc");
    run(under(&life).arg("deep-bind").arg(shared("plugin")));
}

#[test]
fn a_program_that_confines_itself_is_left_alone() {
    let life = program("gcc", "life").expect("gcc");
    for how in ["confined-by-prctl", "confined-by-syscall"] {
        run(under(&life).arg(how));
    }
}
