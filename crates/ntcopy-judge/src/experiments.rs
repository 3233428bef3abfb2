//! The experiments: a row for each, with what is to be said of it. What it shows is the report's; what
//! it is advised on, the topics'.

use ntcopy_record::ExperimentKind;

/// What its figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Modes in cells.
    Cells,
    /// A program's turns.
    Turns,
    /// What calls displace of a cache.
    Calls,
}

pub struct Experiment {
    /// The question that it answers; none where this version does not know it.
    pub question: Option<&'static str>,
    pub of: Of,
    /// What a size is of, behind the size.
    pub size_of: &'static str,
    /// How it was measured, where a reader has to know.
    pub caveat: Option<&'static str>,
}

const BLIND_READER: &str = "The reader never looks at the bytes. A reader that does may find them in \
                            cache after a normal copy, and not after a non-temporal one.";
const APP: &str = "The client drops large values in its socket and never looks at them; of each \
                   multiget it looks at one value. Where program and client are on one CPU, a latency \
                   holds the client's own work, too.";
const HTTP: &str = "The client throws bodies away in its socket and never looks at them. All three \
                    processes are on one machine: what the loopback does for the client is in the \
                    proxy's CPU time.";
const ONE_MACHINE: &str = "Client and server are on one machine. Over the loopback and between \
                           namespaces alike, who sends does the receiver's part of the network \
                           stack too, and it is in the sender's CPU time.";

pub const IN_FLIGHT: &str = "in flight";
pub const ASKED: &str = "asked for";
const CALL: &str = "per call";

/// The row of an experiment.
#[must_use]
pub fn experiment(kind: &ExperimentKind) -> Experiment {
    use ExperimentKind::*;
    let (question, size_of, caveat) = match kind {
        Unix => ("From how much in flight does a hinted send pay?", IN_FLIGHT, Some(BLIND_READER)),
        Retention => ("What is left of a hot set?", IN_FLIGHT, None),
        App => ("Does a real program keep its cache?", CALL, Some(APP)),
        Http => ("What does a proxy gain?", ASKED, Some(HTTP)),
        Net => ("What do requests and responses over a network gain?", CALL, Some(ONE_MACHINE)),
        Pingpong => ("What does the hint do to latency?", CALL, Some(ONE_MACHINE)),
        Memcpy => ("Which copy is the fastest in user space?", CALL, None),
        Memset => ("Which fill is the fastest?", CALL, None),
        Pages => ("How should pages be cleared and copied?", CALL, None),
        Order => ("What does the order of a walk through memory cost?", CALL, None),
        Try => ("What does the hint do for a program of one's own?", CALL, None),
        Footprint => ("How much of the cache does a call displace?", CALL, None),
        Other(_) => {
            return Experiment { question: None, of: Of::Cells, size_of: CALL, caveat: None };
        }
    };
    let of = match kind {
        Try => Of::Turns,
        Footprint => Of::Calls,
        _ => Of::Cells,
    };
    Experiment { question: Some(question), of, size_of, caveat }
}
