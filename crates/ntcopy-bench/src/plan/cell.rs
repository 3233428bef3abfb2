//! One combination of parameters, and how its bytes are put in flight.

use std::time::Duration;

use serde_json::Value;

use crate::experiment::Family;
use crate::record::Params;

/// CPUs of the two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPair {
    /// Where the parent sends.
    pub sender: u32,
    /// Where the child reads.
    pub reader: u32,
}

/// How bytes are put in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Fill every socket with one object, then drain them all.
    Rounds {
        /// Sockets filled before one is drained.
        sockets: u32,
    },
    /// One socket; sender and reader run freely.
    FreeRunning {
        /// Exactly this many sends, or as many as fill the sample's time.
        iterations: Option<u64>,
        /// At most this many.
        most_iterations: u64,
    },
    /// Rounds over one socket, then over all, then over one again.
    Phases {
        /// Sockets of the middle phase.
        sockets: u32,
        /// How long a phase lasts at least.
        phase: Duration,
        /// How long a window lasts at least.
        window: Duration,
    },
    /// A victim walks through its hot set after every send; every socket is
    /// filled with one object before all are drained.
    Victim {
        /// Sockets filled before one is drained.
        sockets: u32,
        /// Size of the hot set in bytes.
        hot_set_bytes: u64,
    },
}

impl Form {
    /// The form's name in records.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Form::Rounds { .. } => "rounds",
            Form::FreeRunning { .. } => "free-running",
            Form::Phases { .. } => "phases",
            Form::Victim { .. } => "victim",
        }
    }

    /// Whether a socket has to take a whole object before the reader takes any of it.
    #[must_use]
    pub fn holds_objects(&self) -> bool {
        !matches!(self, Form::FreeRunning { .. })
    }
}

/// One combination of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellPlan {
    /// What the bytes go through.
    pub family: Family,
    /// How bytes are put in flight.
    pub form: Form,
    /// Size of an object in bytes.
    pub object_bytes: u64,
    /// Size of the data set in bytes: a whole number of objects, at least one.
    pub dataset_bytes: u64,
    /// The reader's pipe in bytes; none: one object, as far as the system allows.
    pub pipe_bytes: Option<u64>,
    /// The send buffer asked for in bytes; none: so that a whole object fits.
    pub sndbuf_bytes: Option<u64>,
    /// CPUs of the two processes.
    pub cpus: CpuPair,
    /// The published configuration that this cell repeats.
    pub published: Option<String>,
    /// What is different here from that configuration.
    pub note: Option<String>,
}

impl CellPlan {
    /// Sockets in use.
    #[must_use]
    pub fn sockets(&self) -> u32 {
        match self.form {
            Form::Rounds { sockets }
            | Form::Phases { sockets, .. }
            | Form::Victim { sockets, .. } => sockets,
            Form::FreeRunning { .. } => 1,
        }
    }

    /// Bytes in flight when every socket is full; none in the free-running
    /// form, where the send buffer bounds them and nobody sets them.
    #[must_use]
    pub fn in_flight_bytes(&self) -> Option<u64> {
        self.form.holds_objects().then(|| u64::from(self.sockets()) * self.object_bytes)
    }

    /// The parameters as the record has them. `iterations` is the number of
    /// sends that a free-running sample makes, once that is known.
    #[must_use]
    pub fn params(&self, iterations: Option<u64>) -> Params {
        let mut params = Params::new();
        let mut put = |name: &str, value: Value| params.insert(name.to_owned(), value);
        put("family", self.family.as_str().into());
        put("object_bytes", self.object_bytes.into());
        put("dataset_bytes", self.dataset_bytes.into());
        put("sockets", self.sockets().into());
        put("sender_cpu", self.cpus.sender.into());
        put("reader_cpu", self.cpus.reader.into());
        put("form", self.form.as_str().into());
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (phase, hot_set) = match self.form {
            Form::Phases { phase, .. } => (Some(millis(phase)), None),
            Form::Victim { hot_set_bytes, .. } => (None, Some(hot_set_bytes)),
            Form::Rounds { .. } | Form::FreeRunning { .. } => (None, None),
        };
        let numbers = [
            ("iterations", iterations.filter(|_| !self.form.holds_objects())),
            ("phase_ms", phase),
            ("hot_set_bytes", hot_set),
            ("in_flight_bytes", self.in_flight_bytes()),
            ("pipe_bytes", self.pipe_bytes),
            ("sndbuf_bytes", self.sndbuf_bytes),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                put(name, value.into());
            }
        }
        for (name, value) in [("published", &self.published), ("note", &self.note)] {
            if let Some(value) = value {
                put(name, value.as_str().into());
            }
        }
        params
    }
}
