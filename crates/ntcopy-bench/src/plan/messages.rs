//! What plans of messages between a client and a server have in common: experiments `net` and
//! `pingpong`.

use ntcopy_record::units::Bytes;

use super::{Cpus, PlanError};
use crate::experiment::{Family, LARGEST_DATAGRAM_BYTES, NetMode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// The loopback of the network namespace that this program was started in.
    Loopback,
    /// A pair of devices, with client and server in a network namespace each.
    Veth {
        /// The devices' largest packet in bytes.
        mtu_bytes: u32,
    },
}

impl Between {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Between::Loopback => "loopback",
            Between::Veth { .. } => "veth",
        }
    }
}

/// Where the two processes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoPlaces {
    /// The client's CPU: this program's.
    pub client: u32,
    pub server: u32,
}

/// The modes, each once, with the baseline before them.
pub(crate) fn with_baseline(asked: &[NetMode]) -> Vec<NetMode> {
    let mut modes = vec![NetMode::Copy];
    for mode in asked {
        if !modes.contains(mode) {
            modes.push(*mode);
        }
    }
    modes
}

/// The families that were asked for, or the defaults.
pub(crate) fn families_of(
    asked: &[Family],
    defaults: &[String],
    known: &[Family],
) -> Result<Vec<Family>, PlanError> {
    if let Some(family) = asked.iter().copied().find(|family| !known.contains(family)) {
        let what = "not in this experiment; `--help` has the families that are";
        return Err(PlanError::Family { family, what });
    }
    Ok(if asked.is_empty() {
        defaults.iter().map(|name| name.parse().expect("the defaults parse")).collect()
    } else {
        asked.to_vec()
    })
}

/// Whether a message goes into one datagram, where it has to.
pub(crate) fn fits_datagram(family: Family, bytes: u64) -> Result<(), PlanError> {
    if family.is_datagram() && bytes > LARGEST_DATAGRAM_BYTES {
        let (bytes, most) = (Bytes(bytes), Bytes(LARGEST_DATAGRAM_BYTES));
        return Err(PlanError::TooLargeForDatagram { family, bytes, most });
    }
    Ok(())
}

/// Where client and server run.
pub(crate) fn two_places(asked: &[u32], cpus: &Cpus) -> Result<Option<TwoPlaces>, PlanError> {
    if let Some(cpu) = asked.iter().find(|cpu| !cpus.allowed.contains(cpu)) {
        return Err(PlanError::NoSuchCpu { cpu: *cpu, allowed: cpus.allowed.clone() });
    }
    match *asked {
        [] => Ok(None),
        [both] => Ok(Some(TwoPlaces { client: both, server: both })),
        [client, server] => Ok(Some(TwoPlaces { client, server })),
        _ => Err(PlanError::NotTwoCpus(asked.len())),
    }
}
