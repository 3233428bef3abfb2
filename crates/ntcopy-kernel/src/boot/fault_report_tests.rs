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
    find(console, RunsAs::Qemu).into_iter().map(|report| report.title).collect()
}

#[test]
fn news_is_no_fault() {
    assert_eq!(titles(NEWS), Vec::<String>::new());
}

/// Reports as a kernel prints them, and the line that each is named by.
const REPORTS: &[(&str, &str)] = &[
    (
        "WARNING: drivers/misc/lkdtm/bugs.c:115 at lkdtm_WARNING+0x1d/0x30, CPU#1: sh/40",
        "\
[    9.1] ------------[ cut here ]------------
[    9.2] WARNING: drivers/misc/lkdtm/bugs.c:115 at lkdtm_WARNING+0x1d/0x30, CPU#1: sh/40
[    9.2] Call Trace:
[    9.2]  <TASK>
[    9.2]  </TASK>
[    9.2] ---[ end trace 0000000000000000 ]---
",
    ),
    (
        "BUG: KASAN: slab-use-after-free in lkdtm_READ_AFTER_FREE+0x11c/0x1a0",
        "\
[    9.1] ==================================================================
[    9.1] BUG: KASAN: slab-use-after-free in lkdtm_READ_AFTER_FREE+0x11c/0x1a0
[    9.1]  <TASK>
[    9.1]  </TASK>
[    9.1] Allocated by task 41:
[    9.1] ==================================================================
",
    ),
    (
        "WARNING: possible circular locking dependency detected",
        "\
[    9.1] ======================================================
[    9.1] WARNING: possible circular locking dependency detected
[    9.1] ------------------------------------------------------
[    9.1]  <TASK>
[    9.1]  </TASK>
",
    ),
    (
        "kernel BUG at drivers/misc/lkdtm/bugs.c:105!",
        "\
[    9.1] ------------[ cut here ]------------
[    9.1] kernel BUG at drivers/misc/lkdtm/bugs.c:105!
[    9.1] Oops: invalid opcode: 0000 [#1] SMP
[    9.1] ---[ end trace 0000000000000000 ]---
",
    ),
    (
        "unreferenced object 0xffff888004b1c000 (size 64):",
        "\
unreferenced object 0xffff888004b1c000 (size 64):
  comm \"test\", pid 46, jiffies 4294897000
",
    ),
];

#[test]
fn each_report_is_found_once_and_takes_none_of_the_news() {
    for (title, report) in REPORTS {
        let found = find(&format!("{NEWS}{report}{NEWS}"), RunsAs::Qemu);
        assert_eq!(found.len(), 1, "{title}: {found:?}");
        assert_eq!((found[0].title.as_str(), found[0].lines[0].as_str()), (*title, *title));
        assert!(found[0].lines.iter().all(|line| !NEWS.contains(line)), "{:?}", found[0].lines);
    }
}

#[test]
fn each_kind_of_report_is_a_fault() {
    for title in [
        "BUG: KCSAN: data-race in unix_stream_sendmsg / unix_stream_read_generic",
        "BUG: sleeping function called from invalid context at lib/iov_iter.c:42",
        "BUG kmalloc-64 (Not tainted): Right Redzone overwritten",
        "UBSAN: array-index-out-of-bounds in drivers/misc/lkdtm/bugs.c:441:16",
        "WARNING: suspicious RCU usage",
        "INFO: trying to register non-static key.",
        "Kernel panic - not syncing: why",
    ] {
        assert_eq!(titles(&format!("[    9.1] {title}\n")), [title]);
        // Programs may speak of bugs as they like.
        assert_eq!(titles(&format!("[    9.1] test: {title}\n")), Vec::<String>::new());
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
fn an_emulated_cpu_may_be_slow_and_a_um_kernel_may_not() {
    let stalls = "\
[   60.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[   60.2] INFO: task test:45 blocked for more than 120 seconds.
[   60.3] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [test:45]
";
    assert_eq!(titles(stalls), Vec::<String>::new());
    assert_eq!(find(stalls, RunsAs::Um).len(), 3);
}

#[test]
fn a_long_report_is_cut_and_does_not_hide_the_next() {
    let long = format!(
        "BUG: KASAN: wild-memory-access in f+0x1/0x2\n{}{}",
        "  a line of it\n".repeat(500),
        "=".repeat(66)
    );
    let found = find(&format!("{long}\n{}", REPORTS[0].1), RunsAs::Qemu);
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
