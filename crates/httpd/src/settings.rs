//! The file for what a command line leaves out.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::options::INSTEAD;

/// A command line, the program's name first; the words of files stand before the others.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) all: Vec<OsString>,
    /// What `--config` named.
    pub(crate) files: Vec<PathBuf>,
}

/// Puts the settings of each file that `--config` names in its place. Each of them is tried alone,
/// since clap does not say where a word came from: a mistake is told with its file and line.
pub(crate) fn with_files(words: Vec<OsString>, mut command: Command) -> Result<Words, String> {
    // `--help` and `--version` are among the arguments only then.
    command.build();
    let mut words = words.into_iter();
    let (mut all, mut given): (Vec<_>, _) = (words.next().into_iter().collect(), Vec::new());
    let mut files = Vec::new();
    while let Some(word) = words.next() {
        let path = match word.to_str() {
            Some("--config") => words.next(),
            Some(text) => text.strip_prefix("--config=").map(OsString::from),
            None => None,
        };
        match path.map(PathBuf::from) {
            Some(path) => {
                File::read(&path)?.words(&path, &command, &mut all)?;
                given.extend(["--config".into(), path.clone().into()]);
                files.push(path);
            }
            None => given.push(word),
        }
    }
    all.extend(given);
    Ok(Words { all, files })
}

struct File(String);

impl File {
    fn read(path: &Path) -> Result<File, String> {
        let text = std::fs::read_to_string(path);
        text.map(File).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn words(
        &self,
        path: &Path,
        command: &Command,
        words: &mut Vec<OsString>,
    ) -> Result<(), String> {
        let wrong = |at: usize, why: &dyn Display| {
            let line = 1 + self.0.bytes().take(at).filter(|byte| *byte == b'\n').count();
            format!("{}:{line}: {why}", path.display())
        };
        let table = DeTable::parse(&self.0);
        let table = table
            .map_err(|error| wrong(error.span().map_or(0, |span| span.start), &error.message()))?;
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let arg = setting(command, name.get_ref());
            let arg = arg.map_err(|why| wrong(name.span().start, &why))?;
            for value in values(arg, value) {
                let (at, key) = (value.span().start, name.get_ref());
                let word = word(arg, key, value.get_ref())
                    .and_then(|word| word.map_or(Ok(None), |word| tried(command, word)))
                    .map_err(|why| wrong(at, &format_args!("{key}: {why}")))?;
                words.extend(word.map(OsString::from));
            }
        }
        Ok(())
    }
}

/// The argument that a name in a file is of.
fn setting<'c>(command: &'c Command, name: &str) -> Result<&'c Arg, String> {
    let Some(arg) = command.get_arguments().find(|arg| arg.get_long() == Some(name)) else {
        let error =
            command.clone().try_get_matches_from([command.get_name(), &format!("--{name}")]);
        let similar = match error.as_ref().err().and_then(|e| e.get(ContextKind::SuggestedArg)) {
            Some(ContextValue::String(option)) => {
                format!("; did you mean {}?", option.trim_start_matches('-'))
            }
            _ => String::new(),
        };
        return Err(format!("there is no setting {name}{similar}"));
    };
    let acts = matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    if acts || name == "config" || arg.get_help_heading() == Some(INSTEAD) {
        return Err(format!("{name} is no setting: it is for the command line alone"));
    }
    Ok(arg)
}

/// What a list has, where the argument takes several.
fn values<'v, 'i>(
    arg: &Arg,
    value: &'v Spanned<DeValue<'i>>,
) -> Box<dyn Iterator<Item = &'v Spanned<DeValue<'i>>> + 'v> {
    match (arg.get_action(), value.get_ref()) {
        (ArgAction::Append, DeValue::Array(list)) => Box::new(list.iter()),
        _ => Box::new(std::iter::once(value)),
    }
}

/// What a command line would have for it: nothing for a switch that is off.
fn word(arg: &Arg, name: &str, value: &DeValue<'_>) -> Result<Option<String>, String> {
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    let text = match value {
        DeValue::Boolean(on) if is_switch => return Ok(on.then(|| format!("--{name}"))),
        _ if is_switch => return Err("expected true or false".to_owned()),
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        other => return Err(format!("expected a text or a number, not {}", kind(other))),
    };
    Ok(Some(format!("--{name}={text}")))
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
        DeValue::Boolean(_) => "true or false",
        _ => "a date",
    }
}

/// The word, if it makes sense by itself. What it needs beside it is for the whole line to say.
fn tried(command: &Command, word: String) -> Result<Option<String>, String> {
    match command.clone().try_get_matches_from([command.get_name(), &word]) {
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
            let text = error.to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            let lines: Vec<_> = first.lines().map(str::trim).collect();
            Err(lines.join(" ").trim_start_matches("error: ").to_owned())
        }
        _ => Ok(Some(word)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{CommandFactory, Parser};
    use tracing::level_filters::LevelFilter;

    use super::*;
    use crate::Options;

    #[derive(Debug, Parser)]
    #[command(args_override_self = true)]
    struct Daemon {
        #[command(flatten)]
        options: Options,
        #[arg(long)]
        public: bool,
        #[arg(long)]
        times: Option<u8>,
    }

    fn parse(text: &str, words: &[&str]) -> Result<Options, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap();
        let words = [&["d"], words, &["--config", path]].concat();
        let words = words.into_iter().map(OsString::from).collect();
        let words = with_files(words, Daemon::command());
        let words = words.map_err(|error| error.replace(path, "FILE"))?;
        assert_eq!(words.files, [Path::new(path)]);
        let daemon = Daemon::try_parse_from(words.all).map_err(|error| error.to_string())?;
        Ok(daemon.options)
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_lists_add_up() {
        let file = "listen = [\"unix:/run/s\", \"/run/t\"]\nworkers = 3\nhead-timeout = 0.5\n\
                    log-level = \"warn\"\npublic = false\n";
        let options = parse(file, &["--workers=2", "--listen", "tcp:127.0.0.1:1"]).unwrap();
        assert_eq!(
            options.listen.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["unix:/run/s", "unix:/run/t", "tcp:127.0.0.1:1"]
        );
        assert_eq!(options.workers(), 2);
        assert_eq!(options.head_timeout, Duration::from_millis(500));
        assert_eq!(options.log_level, LevelFilter::WARN);
    }

    #[test]
    fn a_mistake_is_named_with_its_file_and_line() {
        for (text, expected) in [
            ("speed = 3\n", "FILE:1: there is no setting speed"),
            ("\nworker = 3\n", "FILE:2: there is no setting worker; did you mean workers?"),
            ("[daemon]\nworkers = 3\n", "FILE:1: there is no setting daemon"),
            ("\nlisten = [\n", "FILE:2: "),
            ("workers = 1\nworkers = 2\n", "FILE:2: "),
            (
                "listen = [\n \"/run/s\",\n \"nowhere\"]\n",
                "FILE:3: listen: invalid value 'nowhere'",
            ),
            (
                "public = true\nworkers = 0\n",
                "FILE:2: workers: invalid value '0' for '--workers <N>'",
            ),
            ("idle-timeout = 0\n", "FILE:1: idle-timeout: "),
            ("log-level = \"loud\"\n", "FILE:1: log-level: "),
            ("workers = [1, 2]\n", "FILE:1: workers: expected a text or a number, not a list"),
            ("workers = true\n", "FILE:1: workers: expected a text or a number"),
            ("listen = [[\"/run/s\"]]\n", "FILE:1: listen: expected a text or a number"),
            ("workers = {}\n", "FILE:1: workers: expected a text or a number, not a table"),
            ("public = \"yes\"\n", "FILE:1: public: expected true or false"),
            ("public = 1\n", "FILE:1: public: expected true or false"),
            ("times = 256\n", "FILE:1: times: "),
            ("check = true\n", "FILE:1: check is no setting"),
            ("check = false\n", "FILE:1: check is no setting"),
            ("help = true\n", "FILE:1: help is no setting"),
            ("config = \"/other\"\n", "FILE:1: config is no setting"),
        ] {
            let error = parse(text, &[]).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_and_an_option_without_one() {
        let line = |words: &[&str]| {
            with_files(words.iter().map(OsString::from).collect(), Daemon::command())
        };
        assert!(line(&["d", "--config=/none/a.toml"]).unwrap_err().starts_with("/none/a.toml: "));
        let words = line(&["d", "--config"]).unwrap();
        let error = Daemon::try_parse_from(words.all).unwrap_err().to_string();
        assert!(error.contains("--config <FILE>"), "{error}");
    }
}
