//! `ntcopy advise --pid --json`.

use ntcopy_inflight::follow::{Family, Sum};
use ntcopy_inflight::share::Share;
use ntcopy_inflight::watch::Seen;
use ntcopy_inflight::{Percentiles, Pid};
use ntcopy_report::advice::{Told, told};
use serde::Serialize;

use super::sends::Heard;
use super::{Finding, Full, Reader, readers, touchers};
use crate::cmd::advise::ceiling::Ceiling;

#[derive(Serialize)]
pub struct Object<'a> {
    programs: Vec<Program<'a>>,
    seconds: f64,
    cpu_seconds: f64,
    not_available: &'a [&'static str],
    notes: &'a [String],
    /// What a chain with as much in flight gains at most, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Vec<Ceiling>>,
}

#[derive(Serialize)]
struct Program<'a> {
    name: &'a str,
    pids: Vec<Pid>,
    samples: usize,
    in_flight_bytes: Option<Percentiles>,
    is_at_least: bool,
    on_its_sockets_bytes: Option<Percentiles>,
    most_of_a_socket_bytes: Option<Percentiles>,
    sockets_with_bytes: Option<Percentiles>,
    sockets: Option<Percentiles>,
    families: Families,
    beyond: Vec<Reader>,
    sockets_with_unseen_readers: Option<Percentiles>,
    tcp_sent_bytes_per_s: Option<f64>,
    written_bytes_per_s: Option<f64>,
    ended_after_s: Option<f64>,
    send_buffers: Option<SendBuffers>,
    touched_by: Vec<Reader>,
    idle: Option<&'static str>,
    copy: Option<Copy<'a>>,
    sends: Option<Heard<'a>>,
    advice: Option<Told<'a>>,
}

#[derive(Serialize)]
struct Families {
    unix: OfFamily,
    tcp: OfFamily,
    udp: OfFamily,
}

#[derive(Serialize)]
struct OfFamily {
    in_flight_bytes: Option<Percentiles>,
    sockets_with_bytes: Option<Percentiles>,
}

/// The send buffers of the family by which most is in flight.
#[derive(Serialize)]
struct SendBuffers {
    family: &'static str,
    sockets: usize,
    bytes: u64,
    full: Percentiles,
}

/// What part of its CPU time is the copy of its sends.
#[derive(Serialize)]
#[serde(untagged)]
enum Copy<'a> {
    Seen { part_of_cpu: Option<f64>, samples: u64 },
    Unseen { not_available: &'a str },
}

pub fn object<'a>(all: &'a [Finding<'_>], seen: &'a Seen, notes: &'a [String]) -> Object<'a> {
    Object {
        programs: all.iter().map(|finding| program(finding, seen)).collect(),
        seconds: seen.elapsed.as_secs_f64(),
        cpu_seconds: seen.cpu.as_secs_f64(),
        not_available: &seen.missing,
        notes,
        ceiling: None,
    }
}

fn program<'a>(finding: &'a Finding<'_>, seen: &Seen) -> Program<'a> {
    let series = finding.series;
    let over = |of: &dyn Fn(&Sum) -> u64| Percentiles::of(series.samples.iter().map(of));
    let family = |family: Family| OfFamily {
        in_flight_bytes: over(&|sum| sum.parts[family as usize].bytes),
        sockets_with_bytes: over(&|sum| sum.parts[family as usize].sockets as u64),
    };
    let seconds = series.ended_after.unwrap_or(seen.elapsed).as_secs_f64();
    let per_second = |bytes: u64| (seconds > 0.0).then(|| (bytes as f64 / seconds).round());
    Program {
        name: &finding.program.name,
        pids: finding.program.processes.iter().map(|process| process.pid).collect(),
        samples: series.samples.len(),
        in_flight_bytes: over(&Sum::bytes),
        is_at_least: finding.is_at_least(),
        on_its_sockets_bytes: over(&Sum::on_sockets),
        most_of_a_socket_bytes: over(&|sum| sum.most_bytes),
        sockets_with_bytes: over(&|sum| sum.with_bytes() as u64),
        sockets: over(&|sum| sum.sockets as u64),
        families: Families {
            unix: family(Family::Unix),
            tcp: family(Family::Tcp),
            udp: family(Family::Udp),
        },
        beyond: readers(finding),
        sockets_with_unseen_readers: over(&|sum| sum.unseen_readers as u64),
        tcp_sent_bytes_per_s: per_second(series.tcp_sent_bytes),
        written_bytes_per_s: series.written_bytes.and_then(per_second),
        ended_after_s: series.ended_after.map(|time| time.as_secs_f64()),
        send_buffers: finding.buffers().map(buffers),
        touched_by: touchers(finding),
        idle: finding.idle(),
        copy: finding.share.as_ref().map(copy),
        sends: finding.sends.as_ref().map(Heard::of),
        advice: finding.advice.as_ref().map(told),
    }
}

fn copy(share: &Result<Share, String>) -> Copy<'_> {
    match share {
        Ok(share) => Copy::Seen { part_of_cpu: share.part(), samples: share.samples },
        Err(not_available) => Copy::Unseen { not_available },
    }
}

fn buffers(full: Full) -> SendBuffers {
    SendBuffers {
        family: full.family.as_str(),
        sockets: full.largest.sockets,
        bytes: full.largest.bytes,
        full: full.full,
    }
}
