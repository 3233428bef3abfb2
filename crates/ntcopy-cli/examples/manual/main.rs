//! Manual pages and completions of the program, for packages and `make install`.
//!
//! usage: manual FOLDER

mod pages;

use std::path::Path;

use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).context("usage: manual FOLDER")?;
    pages::write(Path::new(&folder))
}
