//! `ntcopy advise --pid --json`.

use ntcopy_inflight::Percentiles;
use ntcopy_inflight::follow::{Family, Sum};
use ntcopy_inflight::share::Share;
use ntcopy_inflight::watch::Seen;
use serde_json::{Map, Value, json};

use super::Finding;
use super::sends::Sends;

pub fn object(all: &[Finding<'_>], seen: &Seen, notes: &[String]) -> Value {
    json!({
        "programs": all.iter().map(|finding| program(finding, seen)).collect::<Vec<Value>>(),
        "seconds": seen.elapsed.as_secs_f64(),
        "cpu_seconds": seen.cpu.as_secs_f64(),
        "not_available": seen.missing,
        "notes": notes,
    })
}

fn program(finding: &Finding<'_>, seen: &Seen) -> Value {
    let series = finding.series;
    let over = |of: &dyn Fn(&Sum) -> u64| Percentiles::of(series.samples.iter().map(of));
    let families: Map<String, Value> = Family::ALL
        .into_iter()
        .map(|family| {
            let value = json!({
                "in_flight_bytes": over(&|sum| sum.parts[family as usize].bytes),
                "sockets_with_bytes": over(&|sum| sum.parts[family as usize].sockets as u64),
            });
            (family.as_str().to_owned(), value)
        })
        .collect();
    let seconds = series.ended_after.unwrap_or(seen.elapsed).as_secs_f64();
    let per_second = |bytes: u64| (seconds > 0.0).then(|| (bytes as f64 / seconds).round());
    json!({
        "name": finding.program.name,
        "pids": finding.program.processes.iter().map(|process| process.pid).collect::<Vec<u32>>(),
        "samples": series.samples.len(),
        "in_flight_bytes": over(&Sum::bytes),
        "is_at_least": finding.is_at_least(),
        "on_its_sockets_bytes": over(&Sum::on_sockets),
        "most_of_a_socket_bytes": over(&|sum| sum.most_bytes),
        "sockets_with_bytes": over(&|sum| sum.with_bytes() as u64),
        "sockets": over(&|sum| sum.sockets as u64),
        "families": families,
        "beyond": super::readers(finding),
        "sockets_with_unseen_readers": over(&|sum| sum.unseen_readers as u64),
        "tcp_sent_bytes_per_s": per_second(series.tcp_sent_bytes),
        "written_bytes_per_s": series.written_bytes.and_then(per_second),
        "ended_after_s": series.ended_after.map(|time| time.as_secs_f64()),
        "send_buffers": buffers(finding),
        "touched_by": super::touchers(finding),
        "idle": finding.idle(),
        "copy": finding.share.as_ref().map(copy),
        "sends": finding.sends.as_ref().map(Sends::object),
        "advice": finding.advice.as_ref().map(ntcopy_report::advice::told),
    })
}

fn copy(share: &Result<Share, String>) -> Value {
    match share {
        Ok(share) => json!({"part_of_cpu": share.part(), "samples": share.samples}),
        Err(why) => json!({"not_available": why}),
    }
}

/// The send buffers of the family by which most is in flight.
fn buffers(finding: &Finding<'_>) -> Value {
    finding.buffers().map_or(Value::Null, |full| {
        json!({
            "family": full.family.as_str(),
            "sockets": full.largest.sockets,
            "bytes": full.largest.bytes,
            "full": full.full,
        })
    })
}
