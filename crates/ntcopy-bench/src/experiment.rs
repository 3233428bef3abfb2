//! What can be asked: the experiments, their modes and parameters. Data only.

/// Defines `defaults()` of an experiment: its `DEFAULTS_TOML`, read once, as its `Defaults`.
macro_rules! reads_defaults {
    ($name:literal) => {
        /// The defaults, read.
        ///
        /// # Panics
        ///
        /// When the embedded file is not what it was when the tests passed.
        #[must_use]
        pub fn defaults() -> &'static Defaults {
            static DEFAULTS: std::sync::LazyLock<Defaults> = std::sync::LazyLock::new(|| {
                toml::from_str(DEFAULTS_TOML).expect(concat!(
                    "bench/experiments/",
                    $name,
                    ".toml parses"
                ))
            });
            &DEFAULTS
        }
    };
}
use reads_defaults;

pub mod bulk;
mod family;
pub mod memcpy;
pub mod memset;
mod mode;
pub mod order;
pub mod pages;
pub mod phase;
mod published;
pub mod retention;
pub mod unix;

pub use family::{DATAGRAM_BYTES, Family, UnknownFamily};
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
pub const EXPERIMENTS: &[Listed] = &[
    Listed { name: "unix", defaults: unix::DEFAULTS_TOML },
    Listed { name: "phase", defaults: phase::DEFAULTS_TOML },
    Listed { name: "retention", defaults: retention::DEFAULTS_TOML },
    Listed { name: "memcpy", defaults: memcpy::DEFAULTS_TOML },
    Listed { name: "memset", defaults: memset::DEFAULTS_TOML },
    Listed { name: "order", defaults: order::DEFAULTS_TOML },
    Listed { name: pages::NAME, defaults: pages::DEFAULTS_TOML },
];
