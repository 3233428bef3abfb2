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

/// What is a figure of a sample that has latencies of single answers as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BesideLatencies {
    /// Nothing: its requests came on a schedule. What that offers is no throughput, and the CPU time is
    /// that of waiting.
    Nothing,
    /// CPU time: requests came without a pause.
    CpuTime,
    /// Throughput and CPU time: of what goes on beside the answers.
    All,
}

pub struct Experiment {
    /// The question that it answers; none where this version does not know it.
    pub question: Option<&'static str>,
    pub of: Of,
    /// The processes whose CPU time is what serving costs.
    pub serving: &'static [&'static str],
    pub beside_latencies: BesideLatencies,
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
    match kind {
        Unix => Experiment {
            size_of: IN_FLIGHT,
            caveat: Some(BLIND_READER),
            ..asks("From how much in flight does a hinted send pay?")
        },
        Retention => Experiment { size_of: IN_FLIGHT, ..asks("What is left of a hot set?") },
        App => Experiment {
            serving: &["server_cpu"],
            beside_latencies: BesideLatencies::All,
            caveat: Some(APP),
            ..asks("Does a real program keep its cache?")
        },
        Http => Experiment {
            serving: &["proxy_cpu", "backend_cpu"],
            size_of: ASKED,
            caveat: Some(HTTP),
            ..asks("What does a proxy gain?")
        },
        Net => Experiment {
            caveat: Some(ONE_MACHINE),
            ..asks("What do requests and responses over a network gain?")
        },
        Pingpong => Experiment {
            beside_latencies: BesideLatencies::CpuTime,
            caveat: Some(ONE_MACHINE),
            ..asks("What does the hint do to latency?")
        },
        Memcpy => asks("Which copy is the fastest in user space?"),
        Memset => asks("Which fill is the fastest?"),
        Pages => asks("How should pages be cleared and copied?"),
        Order => asks("What does the order of a walk through memory cost?"),
        Try => Experiment {
            of: Of::Turns,
            ..asks("What does the hint do for a program of one's own?")
        },
        Footprint => {
            Experiment { of: Of::Calls, ..asks("How much of the cache does a call displace?") }
        }
        Other(_) => USUAL,
    }
}

const USUAL: Experiment = Experiment {
    question: None,
    of: Of::Cells,
    serving: &["client_cpu", "server_cpu"],
    beside_latencies: BesideLatencies::Nothing,
    size_of: CALL,
    caveat: None,
};

/// What most experiments have, and a question.
const fn asks(question: &'static str) -> Experiment {
    Experiment { question: Some(question), ..USUAL }
}
