//! What is asked of the daemon itself.

use httpd::Counts;
use httpd::metrics::{Counter, Text};
use ntcopy::socket::Support;

use crate::counters::{Counters, Plain, STATUSES};
use crate::send::{Mode, Reason};
use crate::shared::Shared;

/// `/metrics`.
pub fn metrics(shared: &Shared) -> String {
    let mut text = Text::new("storaged");
    let workers = &shared.counters;
    let sum = |of: &dyn Fn(&Counters) -> u64| workers.iter().map(of).sum::<u64>();
    text.family(("counter", "requests_total", "Answered requests."));
    for (worker, counters) in workers.iter().enumerate() {
        for (status, count) in STATUSES.iter().zip(&counters.statuses) {
            if count.get() > 0 {
                let labels = format!("worker=\"{worker}\",status=\"{status}\"");
                text.sample("requests_total", &labels, count.get());
            }
        }
    }
    text.family(("counter", "sent_body_bytes_total", "Body bytes by the way they went."));
    for mode in Mode::ALL {
        let labels = format!("mode=\"{}\"", mode.name());
        text.sample("sent_body_bytes_total", &labels, sum(&|c| c.sent[mode as usize].get()));
    }
    text.family(("counter", "choices_total", "Responses with a body, by why it went its way."));
    for reason in Reason::ALL {
        let labels = format!("reason=\"{}\"", reason.name());
        text.sample("choices_total", &labels, sum(&|c| c.reasons[reason as usize].get()));
    }
    let durations: Vec<_> = workers.iter().map(|one| &one.durations).collect();
    let help = "Time from the whole head of a request to its answer's end.";
    text.histogram("request_duration_seconds", help, &durations);
    let plain: Vec<_> = workers.iter().map(|one| one.plain.all()).collect();
    text.workers(Plain::FAMILIES, &plain);
    let server = shared.server();
    let counts: Vec<_> = server.counts().into_iter().map(Counts::all).collect();
    text.workers(Counts::FAMILIES, &counts);
    let open = shared.store.open_objects();
    text.single(("gauge", "open_objects", "Objects that are open."), open);
    let hints = u64::from(shared.hints != Support::None);
    let help = "1 if the kernel takes MSG_NTCOPY; if 0, nt and adaptive copy.";
    text.single(("gauge", "hints", help), hints);
    text.end()
}

/// `/_/stat`.
pub fn stat(shared: &Shared) -> Vec<u8> {
    let total = |of: &dyn Fn(&Counters) -> u64| shared.counters.iter().map(of).sum::<u64>();
    let sent: serde_json::Map<String, serde_json::Value> = Mode::ALL
        .into_iter()
        .map(|mode| (mode.name().to_owned(), total(&|c| c.sent[mode as usize].get()).into()))
        .collect();
    let server = shared.server();
    let open: u64 = server.counts().iter().map(|counts| counts.open.get()).sum();
    let kernel = ntcopy::socket::counters().ok().flatten().map(ntcopy::socket::Counters::into_map);
    let stat = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "mode": format!("{:?}", shared.tunables().mode).to_lowercase(),
        "hints": shared.hints.name(),
        "workers": shared.counters.len(),
        "connections": open,
        "requests": total(&|c| c.statuses.iter().map(Counter::get).sum()),
        "sent_body_bytes": sent,
        "received_body_bytes": total(&|c| c.plain.received.get()),
        "aborted_responses": total(&|c| c.plain.aborted.get()),
        "damaged": total(&|c| c.plain.damaged.get()),
        "open_objects": shared.store.open_objects(),
        "draining": server.is_draining(),
        "kernel": kernel,
    });
    let mut json = stat.to_string().into_bytes();
    json.push(b'\n');
    json
}
