//! The rule that decides whether a hinted copy bypasses the caches: the kernel's own test of it,
//! KUnit's suite `nontemporal`, in a booted kernel.

use std::fs;

use crate::common::ntcopy;

const SUITE: &str = include_str!("../../../../kernel/kunit/nontemporal_kunit.c");

/// The names of the suite's cases.
fn cases() -> impl Iterator<Item = &'static str> {
    SUITE.lines().filter_map(|line| {
        let case = line.strip_prefix("\tKUNIT_CASE")?.trim_start_matches("_PARAM");
        case.strip_prefix('(')?.split([',', ')']).next()
    })
}

#[test]
fn the_kernel_decides_by_the_rule() {
    let folder = tempfile::tempdir().expect("a folder for what the kernel says");
    let console = folder.path().join("console");
    let path = console.to_str().expect("a path in UTF-8");
    let mut boot = vec!["kernel", "boot", "--timeout", "120", "--console", path];
    boot.extend(["--append", "kunit.enable=1", "--append", "kunit.autorun=1", "--", "true"]);
    let output = ntcopy(&boot);
    let said = fs::read_to_string(&console).unwrap_or_default();
    assert!(output.status.success(), "{:?}\n{said}", output.status);
    // printk may put a time in front of a line.
    let ends = |end: &str| said.lines().any(|line| line.trim_end().ends_with(end));
    let names: Vec<_> = cases().collect();
    assert!(!names.is_empty(), "no case in the suite");
    for name in &names {
        let is_ok = |number| ends(&format!("ok {number} {name}"));
        assert!((1..=names.len()).any(is_ok), "no {name} in\n{said}");
    }
    let totals = format!("# nontemporal: pass:{0} fail:0 skip:0 total:{0}", names.len());
    assert!(ends(&totals), "not {totals:?} in\n{said}");
    assert!(ends("ok 1 nontemporal") && !said.contains("not ok "), "{said}");
}
