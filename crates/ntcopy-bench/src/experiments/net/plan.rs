//! The plan of experiment `net`.

use serde_json::Value;

use ntcopy_record::Params;

use super::{FAMILIES, Settings, defaults};
use crate::experiment::{Family, Lengths, LoadForm, NetMode, Rate, with_baseline};
use crate::plan::error::{check_connections, check_pairs, check_sizes};
use crate::plan::messages::{Between, TwoPlaces, families_of, fits_datagram, two_places};
use crate::plan::{Cpus, PlanError, Sysctl, or};

/// More would measure the descriptor tables of two processes.
const MOST_CONNECTIONS: u32 = 2048;
/// What the processes of one mode take beside their messages.
const MODE_BYTES: u64 = 16 << 20;
/// What one connection's sockets hold beside the messages, at most.
const SOCKETS_BYTES: u64 = 512 << 10;
const WITH_VETH: &str = "say --veth too";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetCell {
    /// What the messages go through.
    pub family: Family,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub connections: u32,
    pub form: LoadForm,
}

impl NetCell {
    /// Bytes of a request and its response.
    #[must_use]
    pub fn transaction_bytes(&self) -> u64 {
        self.request_bytes + self.response_bytes
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetPlan {
    pub cells: Vec<NetCell>,
    /// The modes, the baseline first.
    pub modes: Vec<NetMode>,
    pub between: Between,
    pub rate: Rate,
    /// Where the processes run; none: wherever the system likes.
    pub places: Option<TwoPlaces>,
    /// Interleaved groups in each cell.
    pub pairs: u32,
    pub lengths: Lengths,
}

impl NetPlan {
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.pairs) * self.modes.len() as u64
    }

    /// Connections of the cell that has the most.
    #[must_use]
    pub fn most_connections(&self) -> u32 {
        self.cells.iter().map(|cell| cell.connections).max().unwrap_or(0)
    }

    /// The families of its cells, each once.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let mut families: Vec<Family> = self.cells.iter().map(|cell| cell.family).collect();
        families.sort_unstable();
        families.dedup();
        families
    }

    /// The mode that the others are compared with.
    #[must_use]
    pub fn baseline(&self) -> NetMode {
        self.modes.first().copied().unwrap_or(NetMode::Copy)
    }

    /// A cell's parameters as the record has them; an open one's with what is offered.
    #[must_use]
    pub fn params(&self, cell: &NetCell, offered_per_1000_s: Option<u64>) -> Params {
        let mut params = Params::new();
        let mut put = |name: &str, value: Value| params.insert(name.to_owned(), value);
        put("form", cell.form.as_str().into());
        put("family", cell.family.as_str().into());
        put("request_bytes", cell.request_bytes.into());
        put("response_bytes", cell.response_bytes.into());
        put("connections", cell.connections.into());
        put("between", self.between.as_str().into());
        if let Between::Veth { mtu_bytes } = self.between {
            put("mtu_bytes", mtu_bytes.into());
        }
        if let Some(offered) = offered_per_1000_s {
            put("offered_requests_per_1000_s", offered.into());
        }
        if let Some(TwoPlaces { client, server }) = self.places {
            put("client_cpu", client.into());
            put("server_cpu", server.into());
        }
        params
    }

    /// Memory in bytes that the largest cell needs of a kernel that is booted for it: each mode
    /// has its own connections, and each end of one a message to send and room for another.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let one = |cell: &NetCell| {
            let each = 4 * cell.transaction_bytes() + SOCKETS_BYTES;
            self.modes.len() as u64 * u64::from(cell.connections) * each
        };
        let cells = self.cells.iter().map(one).max().unwrap_or(0);
        cells + self.modes.len() as u64 * MODE_BYTES
    }

    /// Limits to set in a kernel that is booted for it.
    #[must_use]
    pub fn sysctls(&self) -> Vec<Sysctl> {
        let one = |cell: &NetCell| u64::from(cell.connections) * cell.transaction_bytes();
        vec![Sysctl::for_tcp(self.cells.iter().map(one).max().unwrap_or(0))]
    }
}

pub fn plan(settings: &Settings, cpus: &Cpus) -> Result<NetPlan, PlanError> {
    let defaults = defaults();
    let pairs = if settings.quick { defaults.quick_pairs } else { defaults.pairs };
    let pairs = check_pairs(settings.pairs.unwrap_or(pairs))?;
    let rate = settings.rate.unwrap_or(Rate::OfBaseline(defaults.open.rate_percent * 100));
    Ok(NetPlan {
        cells: cells(settings, rate)?,
        modes: modes(settings)?,
        between: match settings.veth {
            true => Between::Veth { mtu_bytes: defaults.mtu_bytes },
            false => Between::Loopback,
        },
        rate,
        places: two_places(&settings.cpus, cpus)?,
        pairs,
        lengths: Lengths::new(&defaults.closed, &defaults.open, settings.quick),
    })
}

/// The baseline, and what was asked for or is measured by default.
fn modes(settings: &Settings) -> Result<Vec<NetMode>, PlanError> {
    let defaults = defaults();
    let usual = if settings.veth { &defaults.veth_modes } else { &defaults.modes };
    let asked = or(&settings.modes, usual);
    if asked.contains(&NetMode::Nocache) && !settings.veth {
        return Err(PlanError::no_device(WITH_VETH));
    }
    Ok(with_baseline(NetMode::Copy, &asked))
}

fn cells(settings: &Settings, rate: Rate) -> Result<Vec<NetCell>, PlanError> {
    let defaults = defaults();
    let (families, connections) = if settings.quick {
        (&defaults.quick_families, &defaults.quick_connections)
    } else {
        (&defaults.families, &defaults.connections)
    };
    let families = families_of(&settings.families, families, &FAMILIES)?;
    let requests = or(&settings.request_bytes, &defaults.request_bytes);
    let responses = or(&settings.response_bytes, &defaults.response_bytes);
    let connections = or(&settings.connections, connections);
    for (name, is_zero) in
        [("request", requests.contains(&0)), ("response", responses.contains(&0))]
    {
        if is_zero {
            return Err(PlanError::zero(name));
        }
    }
    check_connections(&connections, MOST_CONNECTIONS)?;
    check_sizes(&[], &requests)?;
    check_sizes(&[], &responses)?;
    let mut cells = Vec::new();
    for family in families {
        for (request_bytes, response_bytes) in
            requests.iter().flat_map(|one| responses.iter().map(move |other| (*one, *other)))
        {
            fits_datagram(family, request_bytes.max(response_bytes))?;
            for connections in connections.iter().copied() {
                let form = LoadForm::Closed;
                let cell = NetCell { family, request_bytes, response_bytes, connections, form };
                cells.push(cell);
                if rate != Rate::Off {
                    cells.push(NetCell { form: LoadForm::Open, ..cell });
                }
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
