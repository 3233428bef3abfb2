//! What `ntcopy set --json` prints.

use ntcopy_inflight::Pid;
use serde_json::{Value, json};

use super::off::Restored;
use super::setter::Setter;
use super::sockets::Looks;
use super::way::Way;

fn why(looks: &Looks) -> Vec<&String> {
    looks.refused.values().collect()
}

pub fn done(pid: Pid, setter: &Setter, is_watch: bool) -> Value {
    let Setter { way, numbers, done, looks, .. } = setter;
    let set: Vec<Value> = done
        .set
        .iter()
        .map(|((family, listens), sockets)| {
            json!({ "family": family.name(), "listening": listens, "sockets": sockets })
        })
        .collect();
    let other_families: serde_json::Map<String, Value> = done
        .other_families
        .iter()
        .map(|(family, sockets)| (family.name().to_owned(), json!(sockets)))
        .collect();
    let failed: Vec<Value> = done
        .failed
        .iter()
        .map(|(why, sockets)| json!({ "sockets": sockets, "why": why }))
        .collect();
    json!({
        "pid": pid,
        "by": way.name(),
        "stream_min_bytes": numbers.stream,
        "datagram_min_bytes": numbers.datagram,
        "watch": is_watch,
        "set": set,
        "had_it": done.had,
        "other_families": other_families,
        "not_taken": done.not_taken,
        "failed": failed,
        "refused": why(looks),
    })
}

pub fn restored(pid: Pid, way: &Way, restored: &Restored, looks: &Looks) -> Value {
    let mut object = json!(restored);
    object["pid"] = json!(pid);
    object["by"] = json!(way.name());
    object["refused"] = json!(why(looks));
    object
}
