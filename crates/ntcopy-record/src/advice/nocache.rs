//! `tx-nocache-copy`: the network devices' own copies.

use super::points::{Gain, Point, Question, cells, figure, ids, points, tally};
use super::{Advice, Decision, Target, Topic};
use crate::record::{ExperimentKind, Record};
use crate::stats::{THROUGHPUT, Verdict};

/// The published alternative: the network stack's own non-temporal copy, a device at a time.
pub fn nocache(records: &[&Record], target: &Target) -> Advice {
    let topic = Topic::NocacheCopy;
    let found = points(
        records,
        &Question {
            experiment: ExperimentKind::Net,
            mode: "nocache",
            other: "copy",
            metric: THROUGHPUT,
            size: "response_bytes",
            is_about: &|_, _| true,
        },
    );
    let device = match target.devices.as_slice() {
        [only] => only.as_str(),
        _ => "DEV",
    };
    let used: Vec<&Point<'_>> = found.iter().collect();
    let Some(gain) = Gain::of(&found) else {
        let why = "No record of experiment net with mode nocache.";
        let run = ["ntcopy", "bench", "net", "--veth", "--modes", "nocache"];
        return Advice::no_evidence(topic, why, &run);
    };
    let is_win = found.iter().all(|point| point.verdict() == Verdict::Win);
    let is_loss = found.iter().any(|point| point.verdict() == Verdict::Loss);
    let (decision, setting) = match (is_win, is_loss) {
        (true, _) => (Decision::Set, format!("ethtool -K {device} tx-nocache-copy on")),
        (_, true) => (Decision::Leave, format!("ethtool -K {device} tx-nocache-copy off")),
        _ => (gain.without_setting(), "tx-nocache-copy".to_owned()),
    };
    let why = format!(
        "Over {} tx-nocache-copy is at {} of plain copies: {}. It is a switch of the whole device, \
         so it has to win in every cell.",
        cells(used.len()),
        figure(gain.ratio, gain.ci),
        tally(&used, "a response")
    );
    Advice {
        setting: Some(setting),
        gain: Some(gain),
        records: ids(&used),
        ..Advice::bare(topic, decision, why)
    }
}
