//! `--help` of every command reads well in the 100 columns that it is printed in.

use clap::Command;

/// Columns of a help text that goes to no terminal, and to most terminals.
const WIDTH: usize = 100;
/// A line of a paragraph, other than its last, is at least this long: a shorter one is what is left
/// of a line that was broken by hand, too long, and then again by the program.
const LEAST: usize = 60;

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

/// Every command that is listed.
pub fn all() -> Vec<Command> {
    let mut program = ntcopy_cli::command().term_width(WIDTH);
    program.build();
    let mut waiting = vec![program];
    let mut all = Vec::new();
    while let Some(command) = waiting.pop() {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set());
        waiting.extend(below.filter(|below| below.get_name() != "help").cloned());
        all.push(command);
    }
    assert!(all.len() > 30, "{} commands", all.len());
    all
}

fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or_default().to_owned()
}

#[test]
fn no_command_has_a_badly_wrapped_help() {
    let bad = |command: Command| {
        let help = command.clone().render_long_help().to_string();
        let bad = badly_wrapped(&help).into_iter();
        bad.map(|what| format!("{}: {what}", name(&command))).collect::<Vec<String>>()
    };
    let bad: Vec<String> = all().into_iter().flat_map(bad).collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Options that are explained.
fn options(command: &Command) -> usize {
    let arguments = command.get_arguments();
    arguments.filter(|arg| !arg.is_positional() && !arg.is_hide_set()).count()
}

/// What a user can be expected to look through; one that all commands below another take is
/// explained once.
const MOST_OPTIONS: usize = 250;

#[test]
fn no_more_options_are_explained_than_somebody_reads() {
    let counts: Vec<(String, usize)> =
        all().iter().map(|command| (name(command), options(command))).collect();
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    println!("{total} options: {counts:?}");
    assert!(total <= MOST_OPTIONS, "{total} options: {counts:?}");
}

#[test]
fn a_line_broken_twice_is_found_and_a_short_sentence_is_not() {
    let twice = "On a schedule, requests come at an offered rate, the same in every mode, whether \
                 or\nothers\nhave been answered.\n\nExamples:\n  ntcopy probe\n\nShort.\nLines.";
    assert_eq!(badly_wrapped(twice), ["a remainder: others / have been answered."]);
    let example = "Examples:\n  ntcopy bench http      in the kernel with the\nflag";
    assert_eq!(badly_wrapped(example).len(), 1);
}
