//! What plans of messages have in common.

use ntcopy_record::units::Bytes;

use super::NetMode;
use crate::experiment::{Family, LARGEST_DATAGRAM_BYTES};
use crate::plan::PlanError;

/// What the processes of one mode take beside their messages.
const MODE_BYTES: u64 = 16 << 20;

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

/// Client and server: how they send, where they run, and what is between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sides {
    /// The modes, the baseline first.
    pub modes: Vec<NetMode>,
    pub between: Between,
    pub families: Vec<Family>,
    /// Connections of the cell that has the most.
    pub connections: u32,
    /// The CPUs of the client, which is this program, and of the server; none: wherever the system
    /// likes.
    pub places: Option<[u32; 2]>,
    pub pairs: u32,
}

impl Sides {
    pub(crate) fn samples(&self, cells: usize) -> u64 {
        cells as u64 * u64::from(self.pairs) * self.modes.len() as u64
    }

    /// Memory in bytes of all modes, where the messages of one take so much.
    pub(crate) fn memory_bytes(&self, messages: u64) -> u64 {
        self.modes.len() as u64 * (MODE_BYTES + messages)
    }

    /// Those of client and server, if any are asked for.
    pub(crate) fn cpus(&self) -> [Option<u32>; 2] {
        self.places.map_or([None; 2], |places| places.map(Some))
    }
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
