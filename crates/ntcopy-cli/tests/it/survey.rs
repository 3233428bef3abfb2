//! `ntcopy survey`: records in, records out, by whatever way they travel.

mod run;
mod store;

use std::path::Path;
use std::process::Output;

pub use crate::common::{at_home, ends, in_home, json};
use crate::common::{project, text};

fn done(output: &Output, code: i32) -> String {
    ends(output, code, &[]);
    text(&output.stdout)
}

fn run(folder: &Path, words: &[&str]) -> String {
    done(&in_home(folder, words), 0)
}

/// A record that the repository holds.
fn recorded(name: &str) -> String {
    let date = std::fs::read_dir(project().join("bench/record"))
        .expect("bench/record")
        .filter_map(|entry| Some(entry.ok()?.path().join(name)))
        .find(|path| path.join("record.jsonl").exists());
    date.unwrap_or_else(|| panic!("no record of {name}")).display().to_string()
}
