//! `--help` of every command reads well in the 100 columns that it is printed in.

use std::process::Command;

use crate::common::help::listed;

/// Columns of a help text that goes to no terminal, and to most terminals.
const WIDTH: usize = 100;
/// A line of a paragraph, other than its last, is at least this long: a shorter one is what is left
/// of a line that was broken by hand, too long, and then again by the program.
const LEAST: usize = 60;

fn help(words: &[String]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
    command.args(words).arg("--help").env("COLUMNS", WIDTH.to_string());
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn badly_wrapped(help: &str) -> Vec<String> {
    let lines: Vec<&str> = help.lines().collect();
    let mut bad = Vec::new();
    for pair in lines.windows(2) {
        let (line, next) = (pair[0], pair[1]);
        let goes_on = !next.is_empty() && !next.starts_with(' ');
        if line.chars().count() > WIDTH {
            bad.push(format!("too long: {line}"));
        }
        if line.starts_with(' ') && goes_on {
            bad.push(format!("an example that is broken: {line} / {next}"));
        }
        let is_prose = !line.is_empty() && !line.starts_with(' ') && !line.ends_with(['.', ':']);
        if is_prose && goes_on && line.chars().count() < LEAST {
            bad.push(format!("a remainder: {line} / {next}"));
        }
    }
    bad
}

/// The help of every command, with the command's name.
fn all() -> Vec<(String, String)> {
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    let mut all = Vec::new();
    while let Some(words) = waiting.pop() {
        let help = help(&words);
        waiting.extend(listed(&help).into_iter().map(|word| [words.clone(), vec![word]].concat()));
        all.push((words.join(" "), help));
    }
    assert!(all.len() > 30, "{} commands", all.len());
    all
}

#[test]
fn no_command_has_a_badly_wrapped_help() {
    let all = all();
    let bad = |(name, help): &(String, String)| {
        let bad = badly_wrapped(help).into_iter();
        bad.map(|what| format!("ntcopy {name}: {what}")).collect::<Vec<String>>()
    };
    let bad: Vec<String> = all.iter().flat_map(bad).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Options that are explained: the lines that begin with one.
fn options(help: &str) -> usize {
    let mut is_list = false;
    let mut count = 0;
    for line in help.lines() {
        if !line.is_empty() && !line.starts_with(' ') {
            is_list = line == "Options:";
        }
        // Deeper lines go on with what the one before says.
        let is_first = line.starts_with("  -") || line.starts_with("      --");
        count += usize::from(is_list && is_first);
    }
    count
}

/// What a user can be expected to look through; one that all commands below another take is
/// explained once.
const MOST_OPTIONS: usize = 250;

#[test]
fn no_more_options_are_explained_than_somebody_reads() {
    let counts: Vec<(String, usize)> =
        all().into_iter().map(|(name, help)| (name, options(&help))).collect();
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    println!("{total} options: {counts:?}");
    assert!(total <= MOST_OPTIONS, "{total} options: {counts:?}");
    assert!(counts.iter().all(|(_, count)| *count > 0), "each has --help: {counts:?}");
}

#[test]
fn a_wrong_command_is_told_which_there_are() {
    for (words, right) in [
        (&["bench", "unx"][..], "There are: unix, http, app"),
        (&["bench"], "unix "),
        (&["kernel", "remove"], "There are: build, "),
        (&["advice"], "'advise'"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
        let output = command.args(words).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(right), "{words:?}: {said}");
    }
}

#[test]
fn a_line_broken_twice_is_found_and_a_short_sentence_is_not() {
    let twice = "On a schedule, requests come at an offered rate, the same in every mode, whether \
                 or\nothers\nhave been answered.\n\nExamples:\n  ntcopy probe\n\nShort.\nLines.";
    assert_eq!(badly_wrapped(twice), ["a remainder: others / have been answered."]);
    let example = "Examples:\n  ntcopy bench http      in the kernel with the\nflag";
    assert_eq!(badly_wrapped(example).len(), 1);
}
