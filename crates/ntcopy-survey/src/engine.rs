//! The schedulers that take experiments to machines and bring records back.
//!
//! None of them is ours. [`slurm`] starts a task a node by `srun`; [`kubernetes`] describes a Job
//! with a pod a node. On the node [`node`] measures and prints what came of it ([`frame`]), so that
//! standard output is all the transport there is: no shared file system, no agent, no port.
//! [`fleet`] drives an engine over many nodes, stores records as they come, and tries again.

pub mod fleet;
pub mod frame;
pub mod kubernetes;
mod lines;
pub mod node;
pub mod slurm;

use serde::{Deserialize, Serialize};

use crate::summary::{Dimms, MachineId};

/// The experiments that a survey can ask for: those that a machine answers by itself. The first
/// three need no kernel of ours, and are asked where nothing else is.
pub const EXPERIMENTS: [&str; 10] =
    ["memcpy", "memset", "retention", "pages", "order", "unix", "pingpong", "net", "http", "app"];

/// How many of [`EXPERIMENTS`] are asked by default.
pub const DEFAULT_EXPERIMENTS: usize = 3;

/// What is asked of every node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The experiments, some of [`EXPERIMENTS`].
    pub experiments: Vec<String>,
    /// Fewer and shorter samples.
    pub quick: bool,
    /// The kernel to measure in, where it is not the node's own.
    pub kernel: Option<String>,
}

impl Ask {
    /// The words behind `ntcopy bench` for an experiment.
    #[must_use]
    pub fn words(&self, experiment: &str) -> Vec<String> {
        let mut words = vec![experiment.to_owned()];
        words.extend(self.quick.then(|| "--quick".to_owned()));
        if let Some(kernel) = &self.kernel {
            words.extend(["--kernel".to_owned(), kernel.clone()]);
        }
        words
    }

    /// What a record in the store was asked for by: the same words, in one line.
    #[must_use]
    pub fn key(&self, experiment: &str) -> String {
        self.words(experiment).join(" ")
    }

    /// The same ask with some of its experiments.
    #[must_use]
    pub fn only(&self, experiments: Vec<String>) -> Ask {
        Ask { experiments, ..self.clone() }
    }

    /// The words behind the program's name that have a node measure.
    #[must_use]
    pub fn command(&self, fleet: &str, node: &str) -> Vec<String> {
        let mut words: Vec<String> =
            ["survey", "measure", "--fleet", fleet, "--node", node, "--experiments"]
                .map(str::to_owned)
                .into();
        words.push(self.experiments.join(","));
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
    /// The fleet that it is in.
    pub fleet: String,
    /// Its name there.
    pub node: String,
    /// Its memory modules, where it may read the firmware's tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimms: Option<Dimms>,
}

/// The id of a fleet's node.
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
        /// Why, in words.
        why: String,
    },
    /// The node is done.
    Done,
}

/// A record from a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The node.
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

/// Why a node did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeError {
    /// In words.
    pub why: String,
    /// Whether trying again is in vain.
    pub is_final: bool,
}

/// Something that runs the asked experiments on a node and passes on what comes.
pub trait Engine: Sync {
    /// Measures on one node; returns when it is done, with or without success.
    ///
    /// # Errors
    ///
    /// When the node could not be brought to do it, or fell silent before it was done.
    fn measure(
        &self,
        node: &str,
        ask: &Ask,
        cancelled: &dyn Fn() -> bool,
        each: &mut dyn FnMut(Piece),
    ) -> Result<(), NodeError>;
}
