//! How the help is laid out: commands in groups, what most people need first; and options that all
//! commands below one take, in the help of that one alone.

use clap::{Arg, Command};
use ntcopy_bench::experiment::default_words;

use super::bench::EXPERIMENTS;

/// What a command is for.
const GROUPS: [(&str, &[&str]); 3] = [
    ("What most people need", &["try", "probe", "advise", "run", "set", "stat", "report"]),
    ("Measuring", &["bench", "footprint"]),
    ("Kernels, fleets and the rest", &["kernel", "module", "survey", "ddio", "unix-nt-bench"]),
];

/// How the help is laid out; the groups stand where clap would list all commands at once.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The command line with its commands in groups, and shared options once.
pub fn laid_out(command: Command) -> Command {
    let list = list(&command);
    let command = command.before_help(list).help_template(TEMPLATE);
    command.mut_subcommands(|below| {
        let is_bench = below.get_name() == "bench";
        sharing(if is_bench { below.mut_subcommands(with_defaults) } else { below })
    })
}

/// An experiment whose options say what its file of defaults has.
fn with_defaults(experiment: Command) -> Command {
    let name = experiment.get_name();
    let file = EXPERIMENTS.iter().find(|(known, _)| known.as_str() == name);
    let Some((_, defaults)) = file else { return experiment };
    experiment.mut_args(|arg| {
        let words = default_words(defaults, arg.get_id().as_str());
        match words.zip(arg.get_help().map(ToString::to_string)) {
            Some((words, help)) => arg.help(format!("{help} [default: {words}]")),
            None => arg,
        }
    })
}

/// A command whose options are those of all below it: their help names them, and points here.
fn sharing(command: Command) -> Command {
    let shared: Vec<Arg> =
        command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    let named = shared.iter().filter(|arg| !arg.is_hide_set());
    let named: Vec<String> = named.filter_map(as_typed).collect();
    if named.is_empty() {
        return command;
    }
    let words = format!(
        "More options, which ntcopy {} --help explains:\n  {}",
        command.get_name(),
        named.join(", ")
    );
    command.mut_subcommands(|below| {
        let notes = below.get_after_help().map(|notes| format!("\n\n{notes}"));
        below
            .args(shared.iter().map(|arg| arg.clone().hide(true)))
            .after_help(format!("{words}{}", notes.unwrap_or_default()))
    })
}

/// `--out DIR`
fn as_typed(arg: &Arg) -> Option<String> {
    let value = arg.get_value_names().and_then(|names| names.first());
    let value = value.filter(|_| arg.get_action().takes_values());
    let value = value.map(|name| format!(" {name}")).unwrap_or_default();
    arg.get_long().map(|name| format!("--{name}{value}"))
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
        let help = laid_out(crate::Cli::command()).render_help().to_string();
        let at = |words: &str| help.find(words).unwrap_or_else(|| panic!("{words}: {help}"));
        assert!(at("What most people need:") < at("  probe "), "{help}");
        assert!(at("  report ") < at("Measuring:") && at("Measuring:") < at("  kernel "), "{help}");
        assert!(at("  unix-nt-bench ") < at("Options:"), "{help}");
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }
}
