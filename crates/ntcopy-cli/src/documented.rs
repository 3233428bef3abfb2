//! The commands that the documents tell people to type are commands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use crate::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README, what is beside it but for the changelog, which lists and does not tell, and all of docs/.
fn pages() -> Vec<PathBuf> {
    let mut folders = vec![root(), root().join("docs")];
    for entry in fs::read_dir(root().join("docs")).expect("docs") {
        let path = entry.expect("an entry").path();
        folders.extend(path.is_dir().then_some(path));
    }
    let mut pages = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        pages.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    pages.retain(|page| {
        page.extension().is_some_and(|kind| kind == "md") && !page.ends_with("CHANGELOG.md")
    });
    pages
}

/// A command line of a page.
#[derive(Debug, PartialEq)]
struct Command {
    line: String,
    /// Within a sentence, where it may lack what the sentence is not about.
    is_named_only: bool,
}

/// Lines of fences marked `sh`, indented lines, and code within a line, that begin with `ntcopy`.
fn commands(text: &str) -> Vec<Command> {
    let mut found: Vec<(&str, bool)> = Vec::new();
    let (mut is_code, mut is_shell) = (false, false);
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            is_code = !is_code;
            is_shell = is_code && kind == "sh";
        } else if is_shell {
            found.push((line, false));
        } else if !is_code {
            found.extend(line.strip_prefix("    ").map(|line| (line, false)));
            found.extend(line.split('`').skip(1).step_by(2).map(|code| (code, true)));
        }
    }
    let mut commands = Vec::new();
    for (line, is_named_only) in found {
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        // A bare name, or one verb, is a word of the sentence; NAME stands for any experiment.
        if words.first() == Some(&"ntcopy") && words.len() > 2 && !words.contains(&"NAME") {
            commands.push(Command { line: line.to_owned(), is_named_only });
        }
    }
    commands
}

/// Why the program would not take it.
fn refusal(command: &Command) -> Option<String> {
    // A number stands for that of a process.
    let Some(words) = shlex::split(&command.line.replace(" PID", " 1")) else {
        return Some("a quotation mark has no other one".to_owned());
    };
    // What comes then is the shell's.
    let own = words.into_iter().take_while(|word| !matches!(word.as_str(), ">" | "|" | "&&"));
    match Cli::try_parse_from(own) {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp => None,
            ErrorKind::MissingRequiredArgument if command.is_named_only => None,
            _ => Some(error.to_string()),
        },
    }
}

#[test]
fn every_command_in_the_documents_is_one() {
    let mut tried = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for command in commands(&text) {
            if let Some(why) = refusal(&command) {
                let at = text.lines().position(|line| line.contains(&command.line));
                let line = at.map_or(1, |at| at + 1);
                panic!("{}:{line}: {}\n{why}", page.display(), command.line);
            }
            tried += 1;
        }
    }
    assert!(tried > 120, "{tried} commands");
}

#[test]
fn a_command_that_is_none_is_found() {
    let text = "Say `ntcopy bench order --colums 1`.\n\
                ```sh\nsudo ntcopy ddio ways 4 > x\n```\n\
                \x20   ntcopy run --family tcp\n\
                `ntcopy run --family tcp` or `ntcopy bench NAME --quick`\n";
    let commands = commands(text);
    let lines: Vec<&str> = commands.iter().map(|command| command.line.as_str()).collect();
    let hinted = "ntcopy run --family tcp";
    assert_eq!(lines, ["ntcopy bench order --colums 1", "ntcopy ddio ways 4 > x", hinted, hinted]);
    let refused: Vec<bool> = commands.iter().map(|found| refusal(found).is_some()).collect();
    assert_eq!(refused, [true, false, true, false]);
}
