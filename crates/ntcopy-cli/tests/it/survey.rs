//! `ntcopy survey`: records in, records out, by whatever way they travel.

mod run;
mod store;

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{PROGRAM, project, text};
pub use crate::common::{ends, json};

/// The program, with a home and a store of its own.
fn ntcopy(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words).env("HOME", folder).env_remove("XDG_DATA_HOME");
    command.env("NTCOPY_SURVEY_STORE", folder.join("survey.sqlite"));
    command
}

fn done(output: &Output, code: i32) -> String {
    ends(output, code, &[]);
    text(&output.stdout)
}

fn run(folder: &Path, words: &[&str]) -> String {
    done(&ntcopy(folder, words).output().expect("the program starts"), 0)
}

/// A record that the repository holds.
fn recorded(name: &str) -> String {
    let date = std::fs::read_dir(project().join("bench/record"))
        .expect("bench/record")
        .filter_map(|entry| Some(entry.ok()?.path().join(name)))
        .find(|path| path.join("record.jsonl").exists());
    date.unwrap_or_else(|| panic!("no record of {name}")).display().to_string()
}
