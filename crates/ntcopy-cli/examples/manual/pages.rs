//! A manual page of every command, made from what `--help` prints, and what shells want to know of
//! the command line to complete it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

/// Stands in the pages' heads: when the pages, or these ones' shape, were last gone through.
const DATE: &str = "2026-11-21";

/// Commands, with all below them, that change the whole system and need root for it; and daemons.
const OF_SYSTEM: [&str; 4] = ["ntcopy-ddio", "ntcopy-module", "proxyd", "storaged"];

/// Writes the pages into `man` below a folder, and beside it a file for each shell, by its name.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    let man = folder.join("man");
    fs::create_dir_all(&man)
        .with_context(|| format!("{}: the folder cannot be made", man.display()))?;
    // A page of `help` for each command that has others below it would say nothing.
    let daemons = [storaged::config::Config::command(), proxyd::config::Config::command()];
    for mut command in [without_help(ntcopy_cli::command())].into_iter().chain(daemons) {
        command.build();
        write_pages(&command, &man)?;
    }
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut ntcopy_cli::command(), "ntcopy", &mut script);
        write_file(&folder.join(shell.to_string()), &script)?;
    }
    Ok(())
}

fn write_file(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
}

fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn write_pages(command: &Command, directory: &Path) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, directory)?;
    }
    let page = Man::new(command.clone())
        .section(section(&name(command)))
        .date(DATE)
        .source(concat!("ntcopy ", env!("CARGO_PKG_VERSION")))
        .manual("ntcopy");
    let mut text = Vec::new();
    render(command, &page, &mut text).context("a page cannot be put together")?;
    write_file(&directory.join(page.get_filename()), &text)
}

/// What a command's page is called: `ntcopy-bench-unix`.
pub fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// The section of a page: 8 for administration of the system, else 1.
fn section(page: &str) -> &'static str {
    let is_below = |command: &str| {
        page.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    if OF_SYSTEM.iter().any(|command| is_below(command)) { "8" } else { "1" }
}

/// The commands below one, each by its page. The crate has all of them in the section of that one.
fn subcommands(command: &Command, page: &Man) -> io::Result<String> {
    let mut text = Vec::new();
    page.render_subcommands_section(&mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let ours = section(&name(command));
    for below in command.get_subcommands().map(name) {
        let of = |section: &str| format!("\n{}({section})\n", escaped(&below));
        text = text.replace(&of(ours), &of(section(&below)));
    }
    Ok(text)
}

fn render(command: &Command, page: &Man, out: &mut Vec<u8>) -> io::Result<()> {
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        out.write_all(subcommands(command, page)?.as_bytes())?;
    }
    let notes = command.get_after_long_help().or(command.get_after_help());
    if let Some(notes) = notes {
        out.write_all(&self::notes(&notes.to_string()))?;
    }
    let see = if command.get_name() == "ntcopy" { "" } else { ".BR ntcopy (1),\n" };
    write!(out, ".SH SEE ALSO\n{see}.BR ntcopy (3),\n.BR msg_ntcopy (7)\n")
}

/// What stands below the options, as it stands there: indented lines are examples, and are not
/// filled.
fn notes(text: &str) -> Vec<u8> {
    let mut page = String::from(".SH NOTES\n");
    let mut is_example = false;
    let mut is_begun = false;
    for line in text.lines() {
        let indented = line.starts_with(' ');
        if indented != is_example {
            page.push_str(if indented { ".nf\n" } else { ".fi\n" });
            is_example = indented;
        }
        if line.trim().is_empty() {
            is_begun = false;
            continue;
        }
        if !indented && !is_begun && !page.ends_with(".SH NOTES\n") {
            page.push_str(".P\n");
        }
        is_begun = true;
        page.push_str(&escaped(line));
        page.push('\n');
    }
    if is_example {
        page.push_str(".fi\n");
    }
    page.into_bytes()
}

/// A line as roff takes it for text.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_not_filled_paragraphs_are_and_no_line_is_a_request() {
        let text = "Examples:\n  a --b\n  c\n\nOne\n.SH\n'\\n\n\nThree.\n  d";
        let page = ".SH NOTES\nExamples:\n.nf\n  a \\-\\-b\n  c\n.fi\n.P\nOne\n\\&.SH\n\\&'\\en\n.P\n\
                    Three.\n.nf\n  d\n.fi\n";
        assert_eq!(String::from_utf8(notes(text)).expect("UTF-8"), page);
    }
}
