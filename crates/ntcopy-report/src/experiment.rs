//! What each experiment has to show, a row an experiment.

use ntcopy_record::{ExperimentKind, Record};
use serde_json::Value;

use crate::plot::curves::{self, Built};
use crate::versus::Grid;
use crate::{app, bulk, footprint, http, net, retention, turns};

pub(crate) struct Shown {
    /// The question that it answers; none where this version does not know the experiment.
    pub question: Option<&'static str>,
    pub figures: Figures,
    pub json: Json,
    /// The modes whose best win and worst loss are printed; none where throughput was not asked.
    pub is_told: Option<fn(&str) -> bool>,
    /// What a page says of how it was measured.
    pub caveat: Option<&'static str>,
}

pub(crate) enum Figures {
    /// By bytes in flight; many cells as a sweep.
    Sends,
    HotSets,
    /// Tables of ways, and charts.
    Ways {
        grids: fn(&Record) -> Vec<Grid>,
        charts: fn(&Record) -> Vec<Built>,
    },
}

pub(crate) enum Json {
    /// The results, and something under a name of its own where the record has it.
    Also(&'static str, fn(&Record) -> Option<Value>),
    /// An object with results of another kind.
    Whole(fn(&Record) -> Value),
}

/// What a record has whose experiment is not known.
const SENDS: Shown = Shown {
    question: None,
    figures: Figures::Sends,
    // What copies leave of a hot set is known by its cells, whatever the experiment is called.
    json: Json::Also("retention", retention::json),
    // `vmsplice` copies nothing, and asks of the sender what a hint does not.
    is_told: Some(|mode| mode != "vmsplice"),
    caveat: None,
};

/// The row of a record's experiment.
pub(crate) fn of(record: &Record) -> Shown {
    use ExperimentKind::*;
    match record.header.experiment {
        Unix => {
            Shown { question: Some("From how much in flight does a hinted send pay?"), ..SENDS }
        }
        Retention => Shown {
            question: Some("What is left of a hot set?"),
            figures: Figures::HotSets,
            is_told: None,
            ..SENDS
        },
        App => Shown {
            json: Json::Also("app", |record| Some(app::json(record))),
            caveat: Some(
                "The client drops large values in its socket and never looks at them; of each \
                 multiget it looks at one value. Where program and client are on one CPU, a \
                 latency holds the client's own work, too.",
            ),
            ..ways("Does a real program keep its cache?", app::grids, curves::of_app)
        },
        Try => Shown {
            json: Json::Whole(turns::json),
            ..ways("What does the hint do for a program of one's own?", turns::grids, |_| vec![])
        },
        Footprint => Shown {
            json: Json::Whole(footprint::json),
            ..ways("How much of the cache does a call displace?", footprint::grids, |_| vec![])
        },
        Http => Shown {
            json: Json::Also("http", |record| Some(http::json(record))),
            caveat: Some(
                "The client throws bodies away in its socket and never looks at them; through TLS \
                 it has to decipher them. All three processes are on one machine: what the \
                 loopback does for the client is in the proxy's CPU time.",
            ),
            ..ways("What does a proxy gain?", http::grids, curves::of_http)
        },
        Net => Shown {
            json: Json::Also("net", |record| Some(net::json(record))),
            caveat: Some(ONE_MACHINE),
            ..ways(
                "What do requests and responses over a network gain?",
                net::grids,
                curves::of_net,
            )
        },
        Pingpong => Shown {
            json: Json::Also("pingpong", |record| Some(net::pingpong::json(record))),
            is_told: None,
            caveat: Some(ONE_MACHINE),
            ..ways("What does the hint do to latency?", net::pingpong::grids, curves::of_pingpong)
        },
        Memcpy => peers("Which copy is the fastest in user space?", bulk::side_by_side, is_ours),
        Memset => peers("Which fill is the fastest?", bulk::one_a_row, is_ours),
        Pages => peers("How should pages be cleared and copied?", bulk::one_a_row, is_nt),
        Order => {
            peers("What does the order of a walk through memory cost?", bulk::one_a_row, is_nt)
        }
        Other(_) => SENDS,
    }
}

const ONE_MACHINE: &str = "Client and server are on one machine. Over the loopback and between \
                           namespaces alike, who sends does the receiver's part of the network \
                           stack too, and it is in the sender's CPU time.";

/// A row of tables and charts.
fn ways(
    question: &'static str,
    grids: fn(&Record) -> Vec<Grid>,
    charts: fn(&Record) -> Vec<Built>,
) -> Shown {
    Shown { question: Some(question), figures: Figures::Ways { grids, charts }, ..SENDS }
}

/// A row of ways in user space beside each other.
fn peers(
    question: &'static str,
    grids: fn(&Record) -> Vec<Grid>,
    is_told: fn(&str) -> bool,
) -> Shown {
    Shown {
        json: Json::Also("peers", bulk::json),
        is_told: Some(is_told),
        ..ways(question, grids, curves::by_size)
    }
}

fn is_ours(mode: &str) -> bool {
    mode == "ours"
}

fn is_nt(mode: &str) -> bool {
    mode.contains("nt") || mode.starts_with("mov")
}
