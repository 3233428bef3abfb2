//! What is asked of the daemon itself.

use super::metrics::{Counters, prometheus};
use super::shared::Shared;

/// `/metrics`: content type and body.
pub fn metrics(shared: &Shared) -> (&'static str, Vec<u8>) {
    let counters: Vec<&Counters> = shared.counters.iter().collect();
    let hints = u64::from(shared.hints != ntcopy::socket::Support::None);
    let extra = [
        ("gauge", "open_objects", "Objects that are open.", shared.store.open_objects() as u64),
        ("gauge", "hints", "1 if the kernel takes MSG_NTCOPY; if 0, nt and adaptive copy.", hints),
    ];
    ("text/plain; version=0.0.4", prometheus(&counters, &extra).into_bytes())
}

/// `/_/stat`: content type and body.
pub fn stat(shared: &Shared) -> (&'static str, Vec<u8>) {
    let total = |of: &dyn Fn(&Counters) -> u64| shared.counters.iter().map(of).sum::<u64>();
    let sent: serde_json::Map<String, serde_json::Value> = crate::send::Mode::ALL
        .into_iter()
        .map(|mode| {
            let bytes = total(&|counters| {
                counters.sent_by_mode().find(|(one, _)| *one == mode).map_or(0, |(_, bytes)| bytes)
            });
            (mode.name().to_owned(), bytes.into())
        })
        .collect();
    let (_, tunables) = shared.tunables();
    let kernel = ntcopy::socket::counters().ok().flatten().map(ntcopy::socket::Counters::into_map);
    let stat = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "mode": format!("{:?}", tunables.mode).to_lowercase(),
        "hints": shared.hints.name(),
        "workers": shared.config.workers,
        "connections": total(&|counters| counters.open.get()),
        "requests": total(&Counters::requests),
        "sent_body_bytes": sent,
        "received_body_bytes": total(&|counters| counters.received.get()),
        "aborted_responses": total(&|counters| counters.aborted.get()),
        "checksum_errors": total(&|counters| counters.corrupt.get()),
        "open_objects": shared.store.open_objects(),
        "draining": shared.is_draining(),
        "kernel": kernel,
    });
    let mut json = stat.to_string();
    json.push('\n');
    ("application/json", json.into_bytes())
}
