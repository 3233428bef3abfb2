//! `ntcopy unix-nt-bench`: the published command line.

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
    command.arg("unix-nt-bench").args(args).output().expect("ntcopy starts")
}

#[test]
fn the_published_command_line_prints_the_published_columns() {
    let output = run(&["65536", "100", "0", "131072", "131072"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
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
    if ntcopy::socket::kernel_support() == ntcopy::socket::Support::None {
        assert_eq!(output.status.code(), Some(3));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("this kernel has no MSG_NTCOPY"), "{text}");
        assert!(output.stdout.is_empty(), "no number");
    } else {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("MSG_NTCOPY"));
    }
}

#[test]
fn nonsense_is_a_usage_error() {
    for args in [
        &["1048576", "10", "2", "524288", "524288"][..],
        &["0", "10", "0", "524288", "524288"],
        &["1048576", "10", "0", "524288"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}
