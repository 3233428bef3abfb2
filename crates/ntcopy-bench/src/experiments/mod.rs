//! Experiments that are whole in a folder each: what can be asked, how it is measured, and what a
//! record of it says. The last part of each is a pure function of records.

pub mod app;
pub mod footprint;
pub mod turns;

use ntcopy_record::{FORMAT, Header};

use crate::run::unix_now_ns;
use crate::sample::new_id;

/// The first line of a record that begins now.
fn header(name: &str, baseline: &str, command: &[String], not_a_timing: Option<&String>) -> Header {
    Header {
        format: FORMAT,
        id: new_id(name, command),
        experiment: name.to_owned(),
        command: command.to_vec(),
        ntcopy: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: unix_now_ns(),
        baseline: baseline.to_owned(),
        not_a_timing: not_a_timing.cloned(),
    }
}
