//! The program's own help: its commands in groups, what most people need first. Options that had
//! another name work by it, and it is said to be old.

use std::ffi::OsString;

use clap::Command;

/// What a command is for.
const GROUPS: [(&str, &[&str]); 3] = [
    ("What most people need", &["try", "probe", "advise", "run", "stat", "report", "compare"]),
    ("Measuring", &["bench", "footprint", "calibrate"]),
    (
        "Kernels, fleets and the rest",
        &["kernel", "module", "survey", "ddio", "unix-nt-bench", "completions", "man"],
    ),
];

/// How the help is laid out; the groups stand where clap would list all commands at once.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The command line with its commands in groups.
pub fn grouped(command: Command) -> Command {
    let list = list(&command);
    command.before_help(list).help_template(TEMPLATE)
}

fn list(command: &Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{title}:\n"));
        for name in names {
            if let Some(found) = command.find_subcommand(name) {
                let about = found.get_about().map(ToString::to_string).unwrap_or_default();
                text.push_str(&format!("  {name:<14} {about}\n"));
            }
        }
        text.push('\n');
    }
    text.push_str("ntcopy COMMAND --help says more, with examples.");
    text
}

/// The words that lead to a command, the option's old name, and its name.
const OLD: [(&[&str], &str, &str); 5] = [
    (&["bench", "http"], "--data-set", "--dataset"),
    (&["bench", "memcpy"], "--peers", "--modes"),
    (&["bench", "memset"], "--peers", "--modes"),
    (&["bench", "order"], "--peers", "--modes"),
    (&["bench", "pages"], "--peers", "--modes"),
];

/// Notes on the old names among the words of a command line, the program's own name first.
pub fn old_names(words: &[OsString]) -> Vec<String> {
    let words: Vec<&str> = words
        .iter()
        .skip(1)
        .map(|word| word.to_str().unwrap_or_default())
        .take_while(|word| *word != "--")
        .collect();
    // The inside of a booted kernel is started with the words that the outside has judged.
    if words.contains(&"--measure-only") {
        return Vec::new();
    }
    let is_given = |old: &str| words.iter().any(|word| word.split('=').next() == Some(old));
    let of_this = OLD.iter().filter(|(path, old, _)| words.starts_with(path) && is_given(old));
    of_this.map(|(_, old, new)| format!("note: {old} is called {new} now; both work")).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = crate::Cli::command();
        let named: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for found in command.get_subcommands().filter(|found| !found.is_hide_set()) {
            let times = named.iter().filter(|name| **name == found.get_name()).count();
            assert_eq!(times, 1, "{}", found.get_name());
        }
    }

    #[test]
    fn what_most_people_need_comes_first_and_each_line_fits() {
        let help = grouped(crate::Cli::command()).render_help().to_string();
        let at = |words: &str| help.find(words).unwrap_or_else(|| panic!("{words}: {help}"));
        assert!(at("What most people need:") < at("  probe "), "{help}");
        assert!(at("  report ") < at("Measuring:") && at("Measuring:") < at("  kernel "), "{help}");
        assert!(at("  man ") < at("Options:"), "{help}");
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }

    fn said(line: &str) -> Vec<String> {
        old_names(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn an_old_name_is_said_to_be_old_and_a_new_one_is_not() {
        let note = "note: --data-set is called --dataset now; both work";
        assert_eq!(said("ntcopy bench http --data-set 1MiB"), [note]);
        assert_eq!(said("ntcopy bench http --data-set=1MiB"), [note]);
        assert_eq!(said("ntcopy bench http --dataset 1MiB"), [""; 0]);
        assert_eq!(said("ntcopy bench http --data-set 1MiB --measure-only"), [""; 0]);
    }

    #[test]
    fn words_of_another_command_or_program_are_not_looked_at() {
        assert_eq!(said("ntcopy advise --apply out"), [""; 0]);
        assert_eq!(said("ntcopy kernel package --config running"), [""; 0]);
        assert_eq!(said("ntcopy kernel boot -- proxyd --config x"), [""; 0]);
    }
}
