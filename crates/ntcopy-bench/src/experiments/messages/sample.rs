//! A server for each mode, and what is between it and the client, while its cells are measured.

use ntcopy_record::Machine;

use super::plan::Sides;
use super::run::{self, Lane, Network, Setup};
use crate::run::meter::open_events;
use crate::run::stay_on;
use crate::sample::driver::{Context, Experiment, Halt, Recording, available};
use crate::sample::servers::Connected;
use crate::sample::{MeasureError, Outcome};
use crate::tcp;

/// Starts a server for each mode that is here, and measures so many cells. With devices, this thread
/// is in another network namespace afterwards.
pub fn measure<C>(
    plan: &impl Experiment,
    sides: &Sides,
    cells: usize,
    context: Context<'_>,
    mut cell: impl FnMut(usize, &mut [NetServer<'_, C>], &mut Recording<'_>) -> Result<(), Halt>,
) -> Result<Outcome, MeasureError> {
    run::allow_files(sides.connections, sides.modes.len())?;
    stay_on(sides.places.map(|[client, _]| client))?;
    // Before the namespaces: the first one alone shows the kernel's settings.
    let (modes, missing) = available(&sides.modes, run::unavailable)?;
    let network = Network::make(sides.between, &sides.families, &sides.modes)?;
    let machine = in_this_namespace(context.machine);
    let mut recording = Recording::begin(plan, Context { machine, ..context })?;
    recording.missing(missing)?;
    recording.expect(cells as u64 * u64::from(sides.pairs) * modes.len() as u64);
    let setup = Setup {
        server_args: &recording.options.worker_args,
        network: &network,
        server_cpu: sides.places.map(|[_, server]| server),
        events: &open_events(),
        patience: recording.patience(),
    };
    let mut servers = Vec::new();
    for (number, mode) in (0..).zip(&sides.modes).filter(|(_, mode)| modes.contains(mode)) {
        servers.push(Connected::new(Lane::new(&setup, *mode, number)?));
    }
    recording.cells(0..cells, |recording, number| cell(number, &mut servers, recording))?;
    recording.end()
}

pub type NetServer<'a, C> = Connected<Lane<'a>, C>;

/// A network namespace of the measurement's own may have another congestion control than its
/// maker's.
fn in_this_namespace(machine: Machine) -> Machine {
    Machine { tcp_congestion_control: tcp::congestion_control(), ..machine }
}
