//! What can be asked: the experiments, their modes and parameters. Data only.

mod mode;
mod published;
pub mod unix;

pub use mode::{Mode, UnknownMode};
pub use published::{Published, published};

/// An experiment's definition as it ships, for `--list`.
#[derive(Debug, Clone, Copy)]
pub struct Listed {
    /// Its name, as in `ntcopy bench NAME`.
    pub name: &'static str,
    /// The file with its defaults, comments included.
    pub defaults: &'static str,
}

/// Every experiment of this version.
pub const EXPERIMENTS: &[Listed] = &[Listed { name: "unix", defaults: unix::DEFAULTS_TOML }];
