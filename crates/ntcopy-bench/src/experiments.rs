//! The experiments, each whole in one place: what can be asked, the plan that is made of it, what
//! it runs, and what a sample is.
//!
//! What several of them share is beside them, in the stages: the sends of `unix` and `retention`,
//! the copies and fills of `memcpy`, `memset`, `order` and `pages`, the servers of `net` and
//! `pingpong`.

#[cfg(not(feature = "fake-lanes"))]
pub mod app;
#[cfg(not(feature = "fake-lanes"))]
pub mod footprint;
pub mod http;
pub mod memcpy;
pub mod memset;
pub mod net;
pub mod order;
pub mod pages;
pub mod pingpong;
pub mod retention;
#[cfg(not(feature = "fake-lanes"))]
pub mod turns;
pub mod unix;

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
    Listed { name: "retention", defaults: retention::DEFAULTS_TOML },
    Listed { name: "memcpy", defaults: memcpy::DEFAULTS_TOML },
    Listed { name: "memset", defaults: memset::DEFAULTS_TOML },
    Listed { name: "order", defaults: order::DEFAULTS_TOML },
    Listed { name: pages::NAME, defaults: pages::DEFAULTS_TOML },
    Listed { name: http::NAME, defaults: http::DEFAULTS_TOML },
    Listed { name: net::NAME, defaults: net::DEFAULTS_TOML },
    Listed { name: pingpong::NAME, defaults: pingpong::DEFAULTS_TOML },
    Listed { name: "app", defaults: include_str!("../../../bench/experiments/app.toml") },
];

/// The first line of a record that begins now.
#[cfg(not(feature = "fake-lanes"))]
fn header(
    name: &str,
    baseline: &str,
    command: &[String],
    not_a_timing: Option<&String>,
) -> ntcopy_record::Header {
    ntcopy_record::Header {
        format: ntcopy_record::FORMAT,
        id: crate::sample::new_id(name, command),
        experiment: name.to_owned(),
        command: command.to_vec(),
        ntcopy: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: crate::run::unix_now_ns(),
        baseline: baseline.to_owned(),
        not_a_timing: not_a_timing.cloned(),
    }
}
