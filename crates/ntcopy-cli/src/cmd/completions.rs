//! `ntcopy completions`: what a shell wants to know of the command line.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Command, ValueEnum};
use clap_complete::Shell;

/// Print what a shell needs to complete ntcopy's commands and options.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ntcopy completions bash > ~/.local/share/bash-completion/completions/ntcopy
  ntcopy completions zsh > ~/.zfunc/_ntcopy        a folder that is in $fpath
  ntcopy completions fish > ~/.config/fish/completions/ntcopy.fish

`make install` puts all three where the shells look for them.")]
pub struct Args {
    /// The shell
    shell: For,
}

/// The shells that the completions are tried with.
#[derive(Clone, Copy, ValueEnum)]
enum For {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script for one shell. `command` is the whole command line.
pub fn run(args: Args, mut command: Command) -> anyhow::Result<ExitCode> {
    let shell = match args.shell {
        For::Bash => Shell::Bash,
        For::Zsh => Shell::Zsh,
        For::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "ntcopy", &mut script);
    print!("{}", String::from_utf8(script).context("the script is not UTF-8")?);
    Ok(ExitCode::SUCCESS)
}
