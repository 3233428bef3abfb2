//! What a plan needs to know of the machine, why one could not be made, and what every one checks.

use ntcopy_record::units::Bytes;

use crate::experiment::Family;

/// The CPUs of a sender and a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPair {
    pub sender: u32,
    pub reader: u32,
}

/// What the plan has to know of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    pub allowed: Vec<u32>,
    /// Two of them that share their L2 cache, if any do and the kernel tells.
    pub sharing_l2: Option<CpuPair>,
}

#[cfg(test)]
impl Cpus {
    pub fn two() -> Cpus {
        Cpus { allowed: vec![0, 1], sharing_l2: None }
    }
}

/// Why a plan could not be made: the option, and what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

impl From<String> for PlanError {
    fn from(words: String) -> PlanError {
        PlanError(words)
    }
}

impl PlanError {
    pub(crate) fn zero(option: &str) -> PlanError {
        format!("--{option} 0: must be at least 1").into()
    }

    /// A family that does not do what was asked for, and what to write instead.
    pub(crate) fn family(family: Family, what: &str) -> PlanError {
        format!("--family {family}: {what}").into()
    }

    pub(crate) fn small_dataset(dataset: u64, object: u64) -> PlanError {
        let (dataset, object) = (Bytes(dataset), Bytes(object));
        format!("--dataset {dataset}: smaller than one object of {object}").into()
    }

    /// `say` is how to get a device.
    pub(crate) fn no_device(say: &str) -> PlanError {
        format!(
            "--modes nocache: tx-nocache-copy is a feature of a device, which the loopback has \
             not: {say}"
        )
        .into()
    }
}

/// Refuses the first option that asks for nothing, of those whether they do.
pub(crate) fn check_zeros(options: &[(&str, bool)]) -> Result<(), PlanError> {
    let zero = options.iter().find(|(_, is_zero)| *is_zero);
    zero.map_or(Ok(()), |(option, _)| Err(PlanError::zero(option)))
}

/// More would only measure the file-descriptor table.
const MOST_SOCKETS: u32 = 8192;
/// One send takes at most 2 GiB less a page; stay well below.
const MOST_OBJECT_BYTES: u64 = 1 << 30;

pub(crate) fn check_sizes(sockets: &[u32], objects: &[u64]) -> Result<(), PlanError> {
    if let Some(sockets) = sockets.iter().find(|sockets| **sockets > MOST_SOCKETS) {
        return Err(format!("--sockets {sockets}: at most {MOST_SOCKETS}").into());
    }
    if let Some(object) = objects.iter().find(|size| **size > MOST_OBJECT_BYTES) {
        return Err(format!("--object {}: at most 1 GiB", Bytes(*object)).into());
    }
    Ok(())
}

/// The CPUs of sender and reader: those asked for, or the first two that the process may use.
pub(crate) fn pin(asked: &[u32], cpus: &Cpus) -> Result<CpuPair, PlanError> {
    let takes = "one CPU for both processes, or the sender's and the reader's";
    let [sender, reader] = two_places(asked, cpus, takes)?;
    Ok(CpuPair { sender, reader })
}

/// What --cpus takes where a client and a server have CPUs.
pub(crate) const TWO_CPUS: &str = "one CPU for both, or those of client and server";

/// The CPUs of two processes: those asked for, or the first two that this one may use.
pub(crate) fn two_places(asked: &[u32], cpus: &Cpus, takes: &str) -> Result<[u32; 2], PlanError> {
    let first = cpus.allowed.get(..2).unwrap_or(&cpus.allowed);
    let asked = if asked.is_empty() { first } else { asked };
    places(asked, cpus, takes)?.ok_or_else(|| "this process may run on no CPU".to_owned().into())
}

/// The CPUs of so many processes: one for all, or one each; none if none are asked for. `takes` says
/// which the option takes.
pub(crate) fn places<const N: usize>(
    asked: &[u32],
    cpus: &Cpus,
    takes: &str,
) -> Result<Option<[u32; N]>, PlanError> {
    let Cpus { allowed, .. } = cpus;
    if let Some(cpu) = asked.iter().find(|cpu| !allowed.contains(cpu)) {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let allowed = allowed.join(", ");
        return Err(format!("--cpus {cpu}: this process may run on CPU {allowed}").into());
    }
    match asked {
        [] => Ok(None),
        [all] => Ok(Some([*all; N])),
        _ => {
            let got = asked.len();
            let wrong = |_| format!("--cpus takes {takes}; got {got}").into();
            asked.try_into().map(Some).map_err(wrong)
        }
    }
}

/// The number of interleaved groups, if that is enough for an interval.
pub(crate) fn check_pairs(pairs: u32) -> Result<u32, PlanError> {
    if pairs >= 5 {
        return Ok(pairs);
    }
    Err(format!("--pairs {pairs}: an interval needs at least 5 pairs").into())
}

/// Bounds of numbers of connections: `most` is the experiment's own.
pub(crate) fn check_connections(connections: &[u32], most: u32) -> Result<(), PlanError> {
    if connections.contains(&0) {
        return Err(PlanError::zero("connections"));
    }
    match connections.iter().copied().find(|count| *count > most) {
        None => Ok(()),
        Some(asked) => Err(format!("--connections {asked}: at most {most}").into()),
    }
}
