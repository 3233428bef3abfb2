use super::*;

/// What a kernel without a fault says, with words in it that a hasty reader takes for one.
const NEWS: &str = "\
[    0.000000] Linux version 7.3.4-ntcopy (ntcopy@ntcopy) #1 SMP PREEMPT
[    0.000000] KERNEL supported cpus:
[    0.015000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
[    0.020000] kasan: KernelAddressSanitizer initialized (generic)
[    0.030000] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on
[    0.040000] kcsan: enabled early
[    1.000000] FAULT_INJECTION: forcing a failure.
[    1.000000] name failslab, interval 1, probability 100, space 0, times 0
[    2.000000] test: # a program that speaks of a BUG: and of a WARNING: on its own
";

fn titles(console: &str) -> Vec<String> {
    find(console, Machine::Qemu).into_iter().map(|splat| splat.title).collect()
}

#[test]
fn news_is_no_fault() {
    assert_eq!(titles(NEWS), Vec::<String>::new());
}

/// Each kind of report as a kernel prints it, and the line that it is named by.
const REPORTS: &[(&str, &str)] = &[
    (
        "WARNING: drivers/misc/lkdtm/bugs.c:115 at lkdtm_WARNING+0x1d/0x30, CPU#1: sh/40",
        "\
[    9.1] ------------[ cut here ]------------
[    9.2] WARNING: drivers/misc/lkdtm/bugs.c:115 at lkdtm_WARNING+0x1d/0x30, CPU#1: sh/40
[    9.2] CPU: 1 UID: 0 PID: 40 Comm: sh Not tainted 7.3.4-ntcopy #1 PREEMPT
[    9.2] RIP: 0010:lkdtm_WARNING+0x1d/0x30
[    9.2] Call Trace:
[    9.2]  <TASK>
[    9.2]  lkdtm_do_action+0x1f/0x40
[    9.2]  </TASK>
[    9.2] ---[ end trace 0000000000000000 ]---
",
    ),
    (
        "BUG: KASAN: slab-use-after-free in lkdtm_READ_AFTER_FREE+0x11c/0x1a0",
        "\
[    9.1] ==================================================================
[    9.1] BUG: KASAN: slab-use-after-free in lkdtm_READ_AFTER_FREE+0x11c/0x1a0
[    9.1] Read of size 4 at addr ffff888006a1c208 by task sh/41
[    9.1] Call Trace:
[    9.1]  <TASK>
[    9.1]  kasan_report+0xda/0x110
[    9.1]  </TASK>
[    9.1] 
[    9.1] Allocated by task 41:
[    9.1]  kasan_save_stack+0x24/0x50
[    9.1] The buggy address belongs to the object at ffff888006a1c000
[    9.1] ==================================================================
",
    ),
    (
        "BUG: KCSAN: data-race in unix_stream_sendmsg / unix_stream_read_generic",
        "\
[    9.1] ==================================================================
[    9.1] BUG: KCSAN: data-race in unix_stream_sendmsg / unix_stream_read_generic
[    9.1] 
[    9.1] write to 0xffff888003a5b0f0 of 8 bytes by task 77 on cpu 0:
[    9.1]  unix_stream_sendmsg+0x2f1/0x6b0
[    9.1] Reported by Kernel Concurrency Sanitizer on:
[    9.1] CPU: 1 UID: 0 PID: 78 Comm: test Not tainted 7.3.4-ntcopy #1
[    9.1] ==================================================================
",
    ),
    (
        "UBSAN: array-index-out-of-bounds in drivers/misc/lkdtm/bugs.c:441:16",
        "\
[    9.1] ------------[ cut here ]------------
[    9.1] UBSAN: array-index-out-of-bounds in drivers/misc/lkdtm/bugs.c:441:16
[    9.1] index 8 is out of range for type 'char [8]'
[    9.1] Call Trace:
[    9.1]  <TASK>
[    9.1]  __ubsan_handle_out_of_bounds+0xa0/0xd0
[    9.1]  </TASK>
[    9.1] ---[ end trace ]---
",
    ),
    (
        "WARNING: possible circular locking dependency detected",
        "\
[    9.1] ======================================================
[    9.1] WARNING: possible circular locking dependency detected
[    9.1] 7.3.4-ntcopy #1 Not tainted
[    9.1] ------------------------------------------------------
[    9.1] test/44 is trying to acquire lock:
[    9.1] ffff888003b1c0f0 (&u->iolock){+.+.}-{4:4}, at: unix_a+0x10/0x20
[    9.1] 
[    9.1] *** DEADLOCK ***
[    9.1] stack backtrace:
[    9.1] Call Trace:
[    9.1]  <TASK>
[    9.1]  dump_stack_lvl+0x78/0xe0
[    9.1]  </TASK>
",
    ),
    (
        "BUG: sleeping function called from invalid context at lib/iov_iter.c:42",
        "\
[    9.1] BUG: sleeping function called from invalid context at lib/iov_iter.c:42
[    9.1] in_atomic(): 1, irqs_disabled(): 0, non_block: 0, pid: 45, name: test
[    9.1] Call Trace:
[    9.1]  <TASK>
[    9.1]  __might_resched+0x1e8/0x2c0
[    9.1]  </TASK>
",
    ),
    (
        "kernel BUG at drivers/misc/lkdtm/bugs.c:105!",
        "\
[    9.1] ------------[ cut here ]------------
[    9.1] kernel BUG at drivers/misc/lkdtm/bugs.c:105!
[    9.1] RIP: 0010:lkdtm_BUG+0x5/0x10
[    9.1] ---[ end trace 0000000000000000 ]---
",
    ),
    (
        "unreferenced object 0xffff888004b1c000 (size 64):",
        "\
unreferenced object 0xffff888004b1c000 (size 64):
  comm \"test\", pid 46, jiffies 4294897000
  hex dump (first 32 bytes):
    00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................
  backtrace (crc 1a2b3c4d):
    __kmalloc_noprof+0x2d4/0x4e0
",
    ),
];

#[test]
fn each_report_is_found_once_and_whole_among_the_news() {
    for (title, report) in REPORTS {
        let found = find(&format!("{NEWS}{report}{NEWS}"), Machine::Qemu);
        assert_eq!(found.len(), 1, "{title}: {found:?}");
        assert_eq!(found[0].title, *title);
        assert_eq!(found[0].lines[0], *title);
        let last = report.lines().last().map(message);
        assert_eq!(found[0].lines.last().map(String::as_str), last, "{title}");
    }
}

#[test]
fn reports_one_after_the_other_are_told_apart() {
    let all: String = REPORTS.iter().map(|(_, report)| *report).collect();
    let expected: Vec<&str> = REPORTS.iter().map(|(title, _)| *title).collect();
    assert_eq!(titles(&all), expected);
    let twice: String = REPORTS.iter().map(|(_, report)| report.repeat(2)).collect();
    assert_eq!(titles(&twice).len(), 2 * REPORTS.len());
}

#[test]
fn a_report_is_found_whatever_stands_before_it_on_its_line() {
    for (title, report) in REPORTS {
        for stamp in ["[    9.1] ", "[   19.123456][   T42] ", "[    9.123456] [    C1] ", ""] {
            let moved: String =
                report.lines().map(|line| format!("{stamp}{}\r\n", message(line))).collect();
            assert_eq!(titles(&moved), [*title], "{stamp}");
        }
    }
}

#[test]
fn a_report_that_breaks_off_counts_all_the_same() {
    for (title, report) in REPORTS {
        let first = report.lines().position(|line| message(line) == *title).unwrap();
        let cut: String = report.lines().take(first + 1).map(|line| format!("{line}\n")).collect();
        assert_eq!(titles(&cut), [*title]);
    }
}

#[test]
fn a_title_in_the_middle_of_a_message_is_none() {
    for (title, _) in REPORTS {
        assert_eq!(titles(&format!("[    9.1] test: {title}\n")), Vec::<String>::new(), "{title}");
    }
}

#[test]
fn an_emulated_cpu_may_be_slow_and_a_um_kernel_may_not() {
    let stalls = "\
[   60.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[   60.2] INFO: task test:45 blocked for more than 120 seconds.
[   60.3] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [test:45]
";
    assert_eq!(titles(stalls), Vec::<String>::new());
    assert_eq!(find(stalls, Machine::Um).len(), 3);
}

#[test]
fn a_long_report_is_cut_and_does_not_hide_the_next() {
    let long = format!(
        "BUG: KASAN: wild-memory-access in f+0x1/0x2\n{}{}",
        "  a line of it\n".repeat(500),
        "=".repeat(66)
    );
    let found = find(&format!("{long}\n{}", REPORTS[0].1), Machine::Qemu);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].lines.len(), MOST_LINES);
}

#[test]
fn only_the_last_lines_are_shown() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text: String = (0..100).map(|n| format!("line {n}\r\n\n")).collect();
    std::fs::write(file.path(), text).unwrap();
    let lines = last_lines(file.path());
    assert_eq!(lines.len(), LAST_LINES);
    assert_eq!(lines.last().unwrap(), "line 99");
}

#[test]
fn a_panic_is_shown_from_its_beginning() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let trace = "Call Trace:\n".repeat(60);
    let text = format!("news\nKernel panic - not syncing: why\n{trace}");
    std::fs::write(file.path(), text).unwrap();
    let lines = last_lines(file.path());
    assert_eq!(lines[0], "Kernel panic - not syncing: why");
    assert_eq!(lines.len(), LAST_LINES);
}
