//! `ntcopy kernel boot` of the kernels in QEMU. These take long to build, so they are tested when
//! asked for: `make test-kernels`.

use crate::common::{
    ends,
    guest::{self, Guest, a_command_is_at_home},
    signal::Signal,
    text,
};

/// What holds for every kernel that can be made to break: a fault that it reports fails the boot.
fn a_fault_of_the_kernel_fails_the_boot(kernel: &'static str) {
    let guest = Guest::new(kernel, &[]);
    let provoke = "echo WARNING > /sys/kernel/debug/provoke-crash/DIRECT; echo done";
    let output = guest.shell(provoke);
    ends(&output, 1, &["WARNING: ", "lkdtm_WARNING", "1 fault reported"]);
    assert_eq!(text(&output.stdout), "done\n");
    guest.assert_nothing_left();
}

#[test]
#[ignore = "make test-kernels"]
fn the_x86_kernel_with_kasan_runs_a_command_and_fails_on_its_own_faults() {
    a_command_is_at_home("x86", "2");
    a_fault_of_the_kernel_fails_the_boot("x86");
}

#[test]
#[ignore = "make test-kernels"]
fn the_x86_kernel_with_kcsan_runs_a_command() {
    a_command_is_at_home("x86+kcsan", "2");
}

#[test]
#[ignore = "make test-kernels"]
fn the_x86_kernel_of_the_long_term_series_runs_a_command() {
    a_command_is_at_home("x86:6.12", "1");
    a_fault_of_the_kernel_fails_the_boot("x86:6.12");
}

#[test]
#[ignore = "make test-kernels"]
fn the_distribution_s_kernels_run_a_command_and_do_not_know_the_flag() {
    for kernel in ["stock", "stock:7.3"] {
        a_command_is_at_home(kernel, "1");
        let guest = Guest::new(kernel, &[]);
        let output = guest.shell("test -e /proc/sys/net/core/ntcopy; echo $?; uname -r");
        assert_eq!(text(&output.stderr), "");
        let said = text(&output.stdout);
        assert!(said.starts_with("1\n") && said.ends_with("-cloud-amd64\n"), "{said}");
    }
}

#[test]
#[ignore = "make test-kernels"]
fn an_access_that_kasan_sees_is_reported_with_its_stack() {
    let guest = Guest::new("x86", &[]);
    let provoke = "echo READ_AFTER_FREE > /sys/kernel/debug/provoke-crash/DIRECT";
    ends(&guest.shell(provoke), 1, &["BUG: KASAN: ", "lkdtm_READ_AFTER_FREE"]);
    guest.assert_nothing_left();
}

#[test]
#[ignore = "make test-kernels"]
fn a_panic_ends_the_guest_and_says_what_it_was_about() {
    guest::a_panic_ends_it_and_shows_its_last_lines("x86");
}

#[test]
#[ignore = "make test-kernels"]
fn a_signal_ends_the_guest_and_leaves_nothing() {
    for kernel in ["x86", "stock"] {
        guest::a_signal_ends_it_and_leaves_nothing(kernel, Signal::INT, 130);
    }
}
