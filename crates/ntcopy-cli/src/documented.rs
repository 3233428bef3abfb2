//! The commands that the guide and the page of claims tell people to type are commands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use crate::Cli;

fn pages() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut pages = vec![docs.join("CLAIMS.md")];
    let guide = fs::read_dir(docs.join("guide/src")).expect("docs/guide/src");
    pages.extend(guide.map(|entry| entry.expect("an entry").path()));
    pages
}

/// Lines of fences marked `sh`, and code within a line, that begin with `ntcopy`.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let (mut is_code, mut is_shell) = (false, false);
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            is_code = !is_code;
            is_shell = is_code && kind == "sh";
        } else if is_shell {
            commands.push(line.to_string());
        } else if !is_code {
            commands.extend(line.split('`').skip(1).step_by(2).map(str::to_string));
        }
    }
    let commands = commands.iter().map(|line| line.strip_prefix("sudo ").unwrap_or(line));
    // A bare name, or one verb, is a word of the sentence.
    let whole = commands.filter(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first() == Some(&"ntcopy") && words.len() > 2
    });
    whole.map(str::to_string).collect()
}

#[test]
fn every_command_in_the_guide_is_one() {
    let mut tried = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for command in commands(&text) {
            let words = shlex::split(&command).unwrap_or_else(|| panic!("{page:?}: {command}"));
            match Cli::try_parse_from(words) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::DisplayHelp => {}
                Err(error) => panic!("{}: {command}\n{error}", page.display()),
            }
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried} commands");
}

#[test]
fn a_command_that_is_none_is_found() {
    let text = "Say `ntcopy bench order --colums 1`.\n```sh\nsudo ntcopy ddio ways 4\n```\n";
    let commands = commands(text);
    assert_eq!(commands, ["ntcopy bench order --colums 1", "ntcopy ddio ways 4"]);
    assert!(Cli::try_parse_from(commands[0].split(' ')).is_err());
    assert!(Cli::try_parse_from(commands[1].split(' ')).is_ok());
}
