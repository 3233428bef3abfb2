//! One combination of parameters of sends, and how its bytes are put in flight.

use ntcopy_record::Params;

use crate::experiment::{DATAGRAM_BYTES, Family};
use crate::plan::{CpuPair, SURELY_IN_PAGES_BYTES, params};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Fill every socket with one object, then drain them all.
    Rounds { sockets: u32 },
    /// Rounds, and a second sender on the same CPU, whose sends are small and drained at once: after
    /// each object 0 to twice as many of them as it says, at random.
    TwoSenders { sockets: u32, small: Small },
    /// One socket; sender and reader run freely.
    FreeRunning {
        /// Exactly this many sends, or as many as fill the sample's time.
        iterations: Option<u64>,
        most_iterations: u64,
    },
    /// A victim walks through its hot set after every send; every socket is
    /// filled with one object before all are drained.
    Victim {
        /// Sockets filled before one is drained.
        sockets: u32,
        hot_set_bytes: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Small {
    pub bytes: u64,
    /// Sends per object of the bulk sender, on average.
    pub per_object: u32,
    /// Whether its sends are clocked, or else those of the bulk sender.
    pub is_clocked: bool,
}

impl Form {
    pub fn as_str(&self) -> &'static str {
        match self {
            Form::Rounds { .. } => "rounds",
            Form::TwoSenders { .. } => "two-senders",
            Form::FreeRunning { .. } => "free-running",
            Form::Victim { .. } => "victim",
        }
    }

    /// Whether a socket has to take a whole object before the reader takes any of it.
    pub fn holds_objects(&self) -> bool {
        !matches!(self, Form::FreeRunning { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellPlan {
    pub family: Family,
    pub form: Form,
    pub object_bytes: u64,
    /// Size of the data set in bytes: a whole number of objects, at least one.
    pub dataset_bytes: u64,
    /// The reader's pipe in bytes; none: one object, as far as the system allows.
    pub pipe_bytes: Option<u64>,
    /// The send buffer asked for in bytes; none: so that a whole object fits.
    pub sndbuf_bytes: Option<u64>,
    pub cpus: CpuPair,
    pub published: Option<String>,
    pub note: Option<String>,
}

impl CellPlan {
    pub fn sockets(&self) -> u32 {
        match self.form {
            Form::Rounds { sockets }
            | Form::TwoSenders { sockets, .. }
            | Form::Victim { sockets, .. } => sockets,
            Form::FreeRunning { .. } => 1,
        }
    }

    /// The second sender's cell, if there is one.
    pub fn small(&self) -> Option<CellPlan> {
        let Form::TwoSenders { small, .. } = self.form else { return None };
        let (form, bytes) = (Form::Rounds { sockets: 1 }, small.bytes);
        let (pipe_bytes, sndbuf_bytes) = (None, None);
        let sizes = CellPlan { object_bytes: bytes, dataset_bytes: bytes, ..self.clone() };
        Some(CellPlan { form, pipe_bytes, sndbuf_bytes, ..sizes })
    }

    /// Bytes in flight when every socket is full; none in the free-running
    /// form, where the send buffer bounds them and they are not set.
    pub fn in_flight_bytes(&self) -> Option<u64> {
        self.form.holds_objects().then(|| u64::from(self.sockets()) * self.object_bytes)
    }

    /// Bytes of an object that go past the caches if it is hinted: all of one that is large enough
    /// for pieces of a page, but for a last datagram that is small; of a smaller one maybe none.
    pub fn bypassing_bytes(&self) -> u64 {
        if self.object_bytes < SURELY_IN_PAGES_BYTES {
            return 0;
        }
        let last = self.object_bytes % DATAGRAM_BYTES;
        let is_short = self.family.is_datagram() && last < SURELY_IN_PAGES_BYTES;
        self.object_bytes - if is_short { last } else { 0 }
    }

    /// The parameters as the record has them. `iterations` is the number of
    /// sends that a free-running sample makes, once that is known.
    pub fn params(&self, iterations: Option<u64>) -> Params {
        let hot_set_bytes = match self.form {
            Form::Victim { hot_set_bytes, .. } => Some(hot_set_bytes),
            _ => None,
        };
        let small = match self.form {
            Form::TwoSenders { small, .. } => Some(small),
            _ => None,
        };
        let clocked = small.map(|small| if small.is_clocked { "small" } else { "bulk" });
        params([
            ("family", self.family.as_str().into()),
            ("object_bytes", self.object_bytes.into()),
            ("dataset_bytes", self.dataset_bytes.into()),
            ("sockets", self.sockets().into()),
            ("sender_cpu", self.cpus.sender.into()),
            ("reader_cpu", self.cpus.reader.into()),
            ("form", self.form.as_str().into()),
            ("small_bytes", small.map(|small| small.bytes).into()),
            ("small_per_object", small.map(|small| small.per_object).into()),
            ("clocked", clocked.into()),
            ("iterations", iterations.filter(|_| !self.form.holds_objects()).into()),
            ("hot_set_bytes", hot_set_bytes.into()),
            ("in_flight_bytes", self.in_flight_bytes().into()),
            ("pipe_bytes", self.pipe_bytes.into()),
            ("sndbuf_bytes", self.sndbuf_bytes.into()),
            ("published", self.published.clone().into()),
            ("note", self.note.clone().into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_object_and_a_short_last_datagram_may_bypass_nothing() {
        let bypassing = |family, object_bytes| {
            let form = Form::Rounds { sockets: 1 };
            let cpus = CpuPair { sender: 0, reader: 0 };
            let cell = CellPlan {
                family,
                form,
                object_bytes,
                dataset_bytes: object_bytes,
                pipe_bytes: None,
                sndbuf_bytes: None,
                cpus,
                published: None,
                note: None,
            };
            cell.bypassing_bytes()
        };
        let large = 10 * DATAGRAM_BYTES;
        for family in [Family::Unix, Family::Tcp, Family::Udp] {
            assert_eq!(bypassing(family, SURELY_IN_PAGES_BYTES - 1), 0);
            assert_eq!(bypassing(family, large), large);
        }
        assert_eq!(bypassing(Family::Udp, large + 4095), large);
        assert_eq!(bypassing(Family::Unix, large + 4095), large + 4095);
    }
}
