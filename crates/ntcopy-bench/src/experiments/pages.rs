//! Experiment `pages`: its defaults and what a user may set.
//!
//! It has two forms: a buffer that is cleared or copied page by page, here, and loops of forks, in
//! [`fork`].

pub mod fork;
mod plan;

use serde::Deserialize;

pub use self::plan::plan;

use crate::experiment::bulk::{Action, ReadBack};
use crate::experiment::{reads_defaults, size};

pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/pages.toml");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub pairs: u32,
    pub pages: PagesDefaults,
    pub fork: fork::ForkDefaults,
}

/// The defaults of `--form pages`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagesDefaults {
    pub baseline: String,
    pub peers: Vec<String>,
    pub actions: Vec<Action>,
    pub read_back: Vec<ReadBack>,
    pub buffer_bytes: Vec<u64>,
    pub beyond_llcs: u64,
    pub most_beyond_bytes: u64,
    pub warm_up_ms: u64,
    pub sample_ms: u64,
}

reads_defaults!();

/// What is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    #[default]
    Pages,
    Fork,
}

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// pages (the routines, in user space) or fork (the fork() loop)
    #[arg(long, value_name = "FORM", default_value = "pages")]
    pub form: Form,
    /// Form pages: ways to compare with rep-b; form fork: modes to compare with temporal [default of
    /// fork: nt,nt-copy]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<String>,
    /// Form pages: clear, copy [default: both]
    #[arg(long = "action", value_name = "LIST", value_delimiter = ',')]
    pub actions: Vec<Action>,
    /// Form pages: what is read afterwards: none, some, all [default: each]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub read_back: Vec<ReadBack>,
    /// Sizes of the buffer, whole pages of 4 KiB [default: see --list]
    #[arg(long = "buffer", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub buffer_bytes: Vec<u64>,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}
