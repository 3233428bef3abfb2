//! The program's own help: its commands in groups, what most people need first.

use clap::Command;

/// What a command is for.
const GROUPS: [(&str, &[&str]); 3] = [
    ("What most people need", &["try", "probe", "advise", "run", "stat", "report"]),
    ("Measuring", &["bench", "footprint"]),
    ("Kernels, fleets and the rest", &["kernel", "module", "survey", "ddio", "unix-nt-bench"]),
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
        assert!(at("  unix-nt-bench ") < at("Options:"), "{help}");
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }
}
