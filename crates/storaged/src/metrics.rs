//! What was counted, for Prometheus and for whoever asks for `/_/stat`.

use httpd::Counts;
use httpd::metrics::{Answers, Text};
use ntcopy::socket::Support;
use serde_json::{Map, Value};

use crate::counters::Counters;
use crate::shared::Shared;

/// `/metrics`.
pub fn metrics(shared: &Shared) -> String {
    let mut text = Text::new("storaged");
    text.answers(shared.counters.iter().map(|(_, answers)| answers));
    let counters: Vec<_> = shared.counters.iter().map(|(counters, _)| counters.all()).collect();
    text.counters(Counters::FAMILIES, &counters);
    let counts: Vec<_> = shared.server.wait().counts().into_iter().map(Counts::all).collect();
    text.counters(Counts::FAMILIES, &counts);
    let hints = u64::from(shared.hints != Support::None);
    let help = "1 if the kernel takes MSG_NTCOPY; if 0, nt and adaptive copy.";
    text.family(("gauge", "hints", help));
    text.sample("hints", "", hints);
    text.end()
}

/// `/_/stat`.
pub fn stat(shared: &Shared) -> Vec<u8> {
    let mut stat = Map::new();
    let server = shared.server.wait();
    for (at, (_, family, _)) in Counters::FAMILIES.iter().enumerate() {
        let workers = shared.counters.iter().map(|(counters, _)| counters.all()[at].get());
        let name = family.trim_end_matches("_total").to_owned();
        stat.insert(name, workers.sum::<u64>().into());
    }
    let kernel = ntcopy::socket::counters().ok().flatten().map(ntcopy::socket::Counters::into_map);
    let requests: u64 = shared.counters.iter().map(|(_, answers)| Answers::all(answers)).sum();
    let open: u64 = server.counts().iter().map(|counts| counts.open.get()).sum();
    let more: [(&str, Value); 8] = [
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("mode", format!("{:?}", shared.config.mode).to_lowercase().into()),
        ("hints", shared.hints.name().into()),
        ("connections", open.into()),
        ("requests", requests.into()),
        ("open_objects", shared.store.open_objects().into()),
        ("draining", server.is_draining().into()),
        ("kernel", serde_json::json!(kernel)),
    ];
    stat.extend(more.map(|(name, value)| (name.to_owned(), value)));
    let mut json = Value::Object(stat).to_string().into_bytes();
    json.push(b'\n');
    json
}
