//! `ntcopy unix-nt-bench`: the published command line.

use std::process::Output;

use crate::common::{ends, good, has_flag, ntcopy};

fn run(args: &[&str]) -> Output {
    ntcopy(&[&["unix-nt-bench"], args].concat())
}

#[test]
fn the_published_command_line_prints_the_published_columns() {
    let text = good(&run(&["65536", "100", "0", "131072", "131072"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("real time (sec.)") && lines[0].contains("throughput (Mb/s)"));
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(&words[..2], ["\"Normal\"", "copy"]);
    assert!(words[2].parse::<f64>().is_ok(), "{text}");
    assert!(words[3].replace(',', "").parse::<u64>().is_ok_and(|rate| rate > 0), "{text}");
}

#[test]
fn the_flag_works_or_is_not_available_with_the_reason() {
    let output = run(&["65536", "100", "1", "131072", "131072"]);
    if has_flag() {
        assert!(good(&output).contains("MSG_NTCOPY"));
    } else {
        ends(&output, 3, &["this kernel has no MSG_NTCOPY"]);
        assert!(output.stdout.is_empty(), "no number");
    }
}
