//! What takes experiments to machines and brings records back.
//!
//! The site's own tool does ([`tool`]): `srun`, `kubectl`, `ssh`, called once for each node. On the
//! node [`node`] measures and prints what came of it ([`frame`]), so that standard output is all
//! the transport there is: no shared file system, no agent, no port. [`fleet`] calls the tool for
//! many nodes, stores records as they come, and tries again.

pub mod fleet;
pub mod frame;
pub mod lines;
pub mod node;
pub mod tool;

use serde::{Deserialize, Serialize};

use crate::summary::MachineId;

/// The experiments that a survey can ask for: those that a machine answers by itself. The first
/// two need no kernel of ours, and are asked where nothing else is.
pub const EXPERIMENTS: [&str; 10] =
    ["memcpy", "memset", "pages", "order", "unix", "retention", "pingpong", "net", "http", "app"];

/// How many of [`EXPERIMENTS`] are asked by default.
pub const DEFAULT_EXPERIMENTS: usize = 2;

/// What is asked of every node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Some of [`EXPERIMENTS`].
    pub experiments: Vec<String>,
    pub quick: bool,
    /// The kernel to measure in, where it is not the node's own.
    pub kernel: Option<String>,
}

impl Ask {
    /// The words behind `ntcopy bench` for an experiment.
    #[must_use]
    pub fn words(&self, experiment: &str) -> Vec<String> {
        [vec![experiment.to_owned()], self.options()].concat()
    }

    /// What a record in the store was asked for by: the same words, in one line.
    #[must_use]
    pub fn key(&self, experiment: &str) -> String {
        self.words(experiment).join(" ")
    }

    /// The words behind the program's name that have a node measure.
    #[must_use]
    pub fn command(&self, fleet: &str, node: &str) -> Vec<String> {
        let words = ["survey", "measure", "--fleet", fleet, "--node", node, "--experiments"];
        [words.map(str::to_owned).to_vec(), vec![self.experiments.join(",")], self.options()]
            .concat()
    }

    fn options(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.quick.then(|| "--quick".to_owned()));
        if let Some(kernel) = &self.kernel {
            words.extend(["--kernel".to_owned(), kernel.clone()]);
        }
        words
    }
}

/// What a node says about itself with every record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    pub fleet: String,
    /// Its name in the fleet.
    pub node: String,
}

#[must_use]
pub fn machine_id(fleet: &str, node: &str) -> MachineId {
    MachineId::of("node", &format!("{fleet}/{node}"))
}

/// What came from a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A record, whole and as it was sent.
    Record(Received),
    /// An experiment that gave no record, or a record that did not arrive.
    Failed {
        /// What was asked, if that is known.
        asked: Option<String>,
        why: String,
    },
    /// The node is done.
    Done,
}

/// A record from a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub facts: NodeFacts,
    /// What was asked, as [`Ask::key`] has it.
    pub asked: String,
    /// The exit code of the measurement: 0 done; 3 some modes were not to be had; 4 a byte was
    /// wrong; else it failed, and the record is what there was until then.
    pub code: i32,
    /// The bytes of the record's file.
    pub raw: Vec<u8>,
}

impl Received {
    /// Whether the question is answered: the record need not be measured again.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        matches!(self.code, 0 | 3)
    }
}
