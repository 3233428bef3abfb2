//! Which calls are changed, and that they are in every situation of a process.

use crate::built::{COMPILERS, alone, library, program, run, shared, watched};

#[test]
fn large_sends_on_matching_sockets_get_the_flag_and_nothing_else_does() {
    for compiler in COMPILERS {
        let Some(calls) = program(compiler, "calls") else { continue };
        run(watched(&calls).arg("unix,tcp"));
        for families in ["unix", "tcp", "udp", "unix,tcp,udp"] {
            run(watched(&calls).arg(families).env("NTCOPY_PRELOAD_FAMILIES", families));
        }
    }
}

#[test]
fn what_is_large_is_what_was_said() {
    let calls = program("gcc", "calls").expect("gcc");
    run(watched(&calls).arg("unix,tcp").env("NTCOPY_PRELOAD_MIN_BYTES", "59900"));
    run(watched(&calls).arg("none").env("NTCOPY_PRELOAD_MIN_BYTES", "65537"));
}

#[test]
fn numbers_of_descriptors_change_their_meaning() {
    for compiler in COMPILERS {
        let Some(reuse) = program(compiler, "reuse") else { continue };
        print!("{}", run(&mut watched(&reuse)));
    }
}

#[test]
fn nothing_is_ready_before_the_constructor_and_everything_works() {
    let life = program("gcc", "life").expect("gcc");
    let preloads = [library(), &shared("spy"), &shared("early")];
    run(alone(&life, &preloads).arg("early").env("NTCOPY_PRELOAD_ASSUME", "kernel"));
}

#[test]
fn signal_handlers_send() {
    run(watched(&program("gcc", "life").expect("gcc")).arg("signals"));
}

#[test]
fn children_of_fork_vfork_and_exec_have_descriptors_of_their_own() {
    run(watched(&program("gcc", "life").expect("gcc")).arg("forks"));
}

#[test]
fn a_thread_is_cancelled_in_a_send_that_waits() {
    for compiler in COMPILERS {
        let Some(life) = program(compiler, "life") else { continue };
        run(watched(&life).arg("cancelled"));
    }
}

#[test]
fn threads_take_each_others_numbers() {
    run(watched(&program("gcc", "life").expect("gcc")).arg("threads"));
}

#[test]
fn a_library_that_binds_deeply_goes_past() {
    let life = program("gcc", "life").expect("gcc");
    run(watched(&life).arg("deep-bind").arg(shared("plugin")));
}

#[test]
fn a_program_that_confines_itself_is_left_alone() {
    let life = program("gcc", "life").expect("gcc");
    for how in ["confined-by-prctl", "confined-by-syscall"] {
        run(watched(&life).arg(how));
    }
}
