//! What plans of messages between a client and a server have in common: experiments `net` and
//! `pingpong`.

use ntcopy_record::units::Bytes;

use super::error::check_cpus;
use super::{Cpus, PlanError, or};
use crate::experiment::{Family, LARGEST_DATAGRAM_BYTES};

pub(crate) const TWO_CPUS: &str = "one CPU for both, or those of client and server";

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

/// The families that were asked for, or the defaults.
pub(crate) fn families_of(
    asked: &[Family],
    defaults: &[Family],
    known: &[Family],
) -> Result<Vec<Family>, PlanError> {
    if let Some(family) = asked.iter().copied().find(|family| !known.contains(family)) {
        let what = "not in this experiment; `--help` has the families that are";
        return Err(PlanError::family(family, what));
    }
    Ok(or(asked, defaults))
}

/// Whether a message goes into one datagram, where it has to.
pub(crate) fn fits_datagram(family: Family, bytes: u64) -> Result<(), PlanError> {
    if family.is_datagram() && bytes > LARGEST_DATAGRAM_BYTES {
        let (bytes, most) = (Bytes(bytes), Bytes(LARGEST_DATAGRAM_BYTES));
        let what = format!("a message of {bytes} is more than a datagram holds, at most {most}");
        return Err(PlanError::family(family, &what));
    }
    Ok(())
}

/// Where client and server run.
pub(crate) fn two_places(asked: &[u32], cpus: &Cpus) -> Result<Option<TwoPlaces>, PlanError> {
    check_cpus(asked, &cpus.allowed)?;
    match *asked {
        [] => Ok(None),
        [both] => Ok(Some(TwoPlaces { client: both, server: both })),
        [client, server] => Ok(Some(TwoPlaces { client, server })),
        _ => Err(PlanError::cpu_count(TWO_CPUS, asked.len())),
    }
}
