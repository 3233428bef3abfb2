//! What `ntcopy set --json` prints.

use std::collections::BTreeMap;
use std::ffi::c_int;

use ntcopy_inflight::Pid;
use serde::Serialize;

use super::off::Restored;
use super::setter::Setter;
use super::show::ShownSocket;
use super::sockets::Looks;
use super::way::Way;

/// What every answer has.
#[derive(Serialize)]
pub struct Answer<'a, T> {
    pid: Pid,
    by: &'static str,
    #[serde(flatten)]
    what: T,
    /// Processes that could not be looked into, and why.
    refused: Vec<&'a str>,
}

impl<'a, T> Answer<'a, T> {
    fn new(pid: Pid, way: &Way, what: T, looks: &'a Looks) -> Answer<'a, T> {
        let refused = looks.refused.values().map(String::as_str).collect();
        Answer { pid, by: way.name(), what, refused }
    }
}

#[derive(Serialize)]
pub struct Done<'a> {
    stream_min_bytes: c_int,
    datagram_min_bytes: Option<c_int>,
    watch: bool,
    set: Vec<Set>,
    had_it: usize,
    other_families: BTreeMap<&'static str, usize>,
    not_taken: usize,
    failed: Vec<Failed<'a>>,
}

#[derive(Serialize)]
struct Set {
    family: &'static str,
    listening: bool,
    sockets: usize,
}

#[derive(Serialize)]
struct Failed<'a> {
    sockets: usize,
    why: &'a str,
}

pub fn done(pid: Pid, setter: &Setter, watch: bool) -> Answer<'_, Done<'_>> {
    let Setter { way, numbers, done, looks, .. } = setter;
    let set = done.set.iter().map(|((family, listening), sockets)| Set {
        family: family.name(),
        listening: *listening,
        sockets: *sockets,
    });
    let failed = done.failed.iter().map(|(why, sockets)| Failed { sockets: *sockets, why });
    let others = done.other_families.iter().map(|(family, sockets)| (family.name(), *sockets));
    let what = Done {
        stream_min_bytes: numbers.stream,
        datagram_min_bytes: numbers.datagram,
        watch,
        set: set.collect(),
        had_it: done.had,
        other_families: others.collect(),
        not_taken: done.not_taken,
        failed: failed.collect(),
    };
    Answer::new(pid, way, what, looks)
}

pub fn restored<'a>(
    pid: Pid,
    way: &Way,
    restored: &'a Restored,
    looks: &'a Looks,
) -> Answer<'a, &'a Restored> {
    Answer::new(pid, way, restored, looks)
}

#[derive(Serialize)]
pub struct Shown<'a> {
    sockets: &'a [ShownSocket],
}

pub fn shown<'a>(
    pid: Pid,
    way: &Way,
    sockets: &'a [ShownSocket],
    looks: &'a Looks,
) -> Answer<'a, Shown<'a>> {
    Answer::new(pid, way, Shown { sockets }, looks)
}
