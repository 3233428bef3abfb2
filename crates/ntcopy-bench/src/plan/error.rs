//! What a plan needs to know of the machine, why one could not be made, and what every one checks.

use ntcopy_record::units::Bytes;

use super::CpuPair;
use crate::experiment::Family;

/// What the plan has to know of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs that this process may run on, in order.
    pub allowed: Vec<u32>,
    /// Two of them that share their L2 cache, if any do and the kernel tells.
    pub sharing_l2: Option<CpuPair>,
}

/// Why a plan could not be made. Each says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("--pairs {0}: a 95 % interval needs at least 5 pairs")]
    TooFewPairs(u32),
    /// What no congestion control can be called.
    #[error(
        "--congestion {0:?}: a name such as reno or cubic, at most 15 letters, digits, - and _"
    )]
    NoCongestionName(String),
    /// A size or count of nothing.
    #[error("--{0} 0: must be at least 1")]
    Zero(&'static str),
    /// A CPU that is not there, or that the process may not use.
    #[error("--cpus {cpu}: this process may run on {}", list(allowed))]
    NoSuchCpu {
        /// The CPU asked for.
        cpu: u32,
        /// The CPUs that it may use.
        allowed: Vec<u32>,
    },
    /// Neither one nor two CPUs.
    #[error("--cpus takes one CPU for both processes, or the sender's and the reader's; got {0}")]
    CpuCount(usize),
    /// More sockets than a process can hold.
    #[error("--sockets {0}: at most {MOST_SOCKETS}")]
    TooManySockets(u32),
    /// A data set with no room for an object.
    #[error("--dataset {dataset}: smaller than one object of {object}")]
    DatasetTooSmall { dataset: Bytes, object: Bytes },
    /// A family that does not do what was asked for.
    #[error("--family {family}: {what}")]
    Family {
        family: Family,
        /// What it does not do, and what to write instead.
        what: &'static str,
    },
    /// Pieces that cannot be sent like that.
    #[error("--pieces {pieces}: {what}")]
    Pieces {
        pieces: u32,
        /// What is wrong with them, and what to write instead.
        what: &'static str,
    },
    /// Senders that cannot run at the same time like that.
    #[error("--senders {senders}: {what}")]
    Senders {
        senders: u32,
        /// What is wrong with them, and what to write instead.
        what: String,
    },
    #[error("--cpus takes one CPU for all, or those of client, proxy and backend; got {0}")]
    NotThreeCpus(usize),
    #[error("--cpus takes one CPU for both, or those of client and server; got {0}")]
    NotTwoCpus(usize),
    /// A datagram of more than a packet of IP holds.
    #[error(
        "--family {family}: a message of {bytes} is more than a datagram holds, at most {most}"
    )]
    TooLargeForDatagram { family: Family, bytes: Bytes, most: Bytes },
    /// A message with no room for its number.
    #[error("--message {0}: a message begins with its number, which takes 8 bytes")]
    MessageTooSmall(Bytes),
    #[error("--duration {0}: seconds, from 0.05 to 86400")]
    Duration(String),
    #[error(
        "--modes nocache: tx-nocache-copy is a feature of a device, which the loopback has \
             not: {say}"
    )]
    NoDevice { say: &'static str },
    /// More connections than a client should have.
    #[error("--connections {asked}: at most {most}")]
    TooManyConnections {
        /// Those asked for.
        asked: u32,
        most: u32,
    },
    /// A stack that clients cannot talk to like that.
    #[error("--scheme {scheme}: {stack} does not speak it; storaged+proxyd does")]
    NotSpoken {
        stack: &'static str,
        /// What it does not speak.
        scheme: &'static str,
    },
    /// A mode that none of the stacks has.
    #[error("--modes {mode}: none of the stacks asked for sends like that; storaged+proxyd does")]
    NoSuchMode { mode: &'static str },
    /// A baseline that the first stack has not.
    #[error("--baseline {mode}: {stack}, the first stack, does not send like that")]
    NoSuchBaseline { mode: &'static str, stack: &'static str },
    #[error("--hot-set: at least two cache lines, 128 bytes")]
    HotSetTooSmall,
    /// An object that one send cannot take.
    #[error("--object {0}: at most 1 GiB")]
    ObjectTooLarge(Bytes),
}

/// More would only measure the file-descriptor table.
const MOST_SOCKETS: u32 = 8192;
/// One send takes at most 2 GiB less a page; stay well below.
const MOST_OBJECT_BYTES: u64 = 1 << 30;

pub(crate) fn check_sizes(sockets: &[u32], objects: &[u64]) -> Result<(), PlanError> {
    if let Some(sockets) = sockets.iter().find(|sockets| **sockets > MOST_SOCKETS) {
        return Err(PlanError::TooManySockets(*sockets));
    }
    if let Some(object) = objects.iter().find(|size| **size > MOST_OBJECT_BYTES) {
        return Err(PlanError::ObjectTooLarge(Bytes(*object)));
    }
    Ok(())
}

/// The CPUs asked for, or the first two that the process may use.
pub(crate) fn pin(asked: &[u32], cpus: &Cpus) -> Result<CpuPair, PlanError> {
    if let Some(cpu) = asked.iter().find(|cpu| !cpus.allowed.contains(cpu)) {
        return Err(PlanError::NoSuchCpu { cpu: *cpu, allowed: cpus.allowed.clone() });
    }
    let asked =
        if asked.is_empty() { cpus.allowed.get(..2).unwrap_or(&cpus.allowed) } else { asked };
    match *asked {
        [both] => Ok(CpuPair { sender: both, reader: both }),
        [sender, reader] => Ok(CpuPair { sender, reader }),
        _ => Err(PlanError::CpuCount(asked.len())),
    }
}

fn list(cpus: &[u32]) -> String {
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    format!("CPU {}", cpus.join(", "))
}

/// The number of interleaved groups, if that is enough for an interval.
pub(crate) fn check_pairs(pairs: u32) -> Result<u32, PlanError> {
    if pairs < 5 { Err(PlanError::TooFewPairs(pairs)) } else { Ok(pairs) }
}

/// Bounds of numbers of connections: `most` is the experiment's own.
pub(crate) fn check_connections(connections: &[u32], most: u32) -> Result<(), PlanError> {
    if connections.contains(&0) {
        return Err(PlanError::Zero("connections"));
    }
    match connections.iter().copied().find(|count| *count > most) {
        None => Ok(()),
        Some(asked) => Err(PlanError::TooManyConnections { asked, most }),
    }
}
