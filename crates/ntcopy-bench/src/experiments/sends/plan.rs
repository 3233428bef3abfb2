//! Plans of sends, and what they need of the kernel.

use std::time::Duration;

use ntcopy_record::ExperimentKind;

use super::{CellPlan, Form};
use crate::experiment::{Family, Mode};
use crate::plan::Sysctl;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendsPlan {
    pub experiment: ExperimentKind,
    pub cells: Vec<CellPlan>,
    /// The modes, the baseline first.
    pub modes: Vec<Mode>,
    /// Interleaved groups in each cell.
    pub pairs: u32,
    /// How long the clocked part of a sample lasts at least, where it is made of rounds or walks.
    pub round_sample: Duration,
    /// How long a mode runs before a sample of rounds, at least, without being clocked.
    pub warm_up: Duration,
    pub free_sample: Duration,
    /// The sockets of a cell on which every byte is compared before timing.
    pub verified_sockets: u32,
}

impl SendsPlan {
    pub fn samples(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.pairs) * self.modes.len() as u64
    }

    /// How long a sample of the cell lasts about; none when the user has set
    /// the number of sends, which may take as long as it likes.
    pub fn sample_time(&self, cell: &CellPlan) -> Option<Duration> {
        match cell.form {
            Form::Rounds { .. } | Form::TwoSenders { .. } | Form::Victim { .. } => {
                Some(self.round_sample)
            }
            Form::FreeRunning { iterations: None, .. } => Some(self.free_sample),
            Form::FreeRunning { iterations: Some(_), .. } => None,
        }
    }

    /// Memory in bytes that the largest cell needs: its data set, what lies in
    /// the sockets with the kernel's own part, and as much again for the
    /// pattern that is sent before timing.
    pub fn memory_bytes(&self) -> u64 {
        let cell = |cell: &CellPlan| {
            // A unix stream skb of 32 KiB payload and its head take up to half as much again.
            let in_flight = u64::from(cell.sockets()) * cell.object_bytes;
            cell.dataset_bytes + in_flight + in_flight / 2 + in_flight.max(4 * cell.object_bytes)
        };
        self.cells.iter().map(cell).max().unwrap_or(0)
    }

    /// The kernel's limits that what is in flight has to fit.
    pub fn sysctls(&self) -> Vec<Sysctl> {
        let most = |families: &[Family]| {
            let ours = self.cells.iter().filter(|cell| families.contains(&cell.family));
            ours.filter_map(CellPlan::in_flight_bytes).max()
        };
        let tcp = most(&[Family::Tcp, Family::Tcp6]).map(Sysctl::for_tcp);
        let udp = most(&[Family::Udp, Family::Udp6, Family::UdpGso, Family::Udplite]);
        tcp.into_iter().chain(udp.map(Sysctl::for_udp)).collect()
    }
}
