//! Modes that are servers of their own, and what is connected to each.

use ntcopy_record::Sample;

use crate::plan::messages::Sides;
use crate::run::meter::open_events;
use crate::run::net::{self, Lane, Network, Setup};
use crate::run::{Failure, stay_on};
use crate::sample::driver::{At, Context, Experiment, Halt, Lanes, Recording, available, index};
use crate::sample::{MeasureError, Outcome, in_this_namespace};

pub struct Connected<'a, C> {
    pub lane: Lane<'a>,
    /// Gone after a failure.
    client: Option<C>,
}

impl<C> Connected<'_, C> {
    fn end(&mut self) {
        self.client = None;
        self.lane.reset();
    }
}

/// Starts a server for each mode that is here, and measures so many cells. With devices, this thread
/// is in another network namespace afterwards.
pub fn measure<C>(
    plan: &impl Experiment,
    (sides, cells): (&Sides, usize),
    context: Context<'_>,
    mut cell: impl FnMut(usize, &mut [Connected<'_, C>], &mut Recording<'_>) -> Result<(), Halt>,
) -> Result<Outcome, MeasureError> {
    net::allow_files(sides.connections, sides.modes.len())?;
    stay_on(sides.places.map(|[client, _]| client))?;
    // Before the namespaces: the first one alone shows the kernel's settings.
    let (modes, missing) = available(&sides.modes, net::unavailable)?;
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
        patience: recording.options.patience,
        stop: recording.stop,
    };
    let mut servers = Vec::new();
    for (number, mode) in (0..).zip(&sides.modes).filter(|(_, mode)| modes.contains(mode)) {
        servers.push(Connected { lane: Lane::new(&setup, *mode, number)?, client: None });
    }
    recording.cells(0..cells, |recording, number| cell(number, &mut servers, recording))?;
    recording.end()
}

pub trait Exchange {
    type Client;

    fn figure(&self, sample: &Sample) -> Option<f64>;

    fn connect(&self, lane: &mut Lane<'_>) -> Result<Self::Client, Failure>;

    /// Takes a sample. Without a client afterwards, the lane is connected anew.
    fn sample(
        &mut self,
        lane: &mut Lane<'_>,
        client: &mut Self::Client,
        at: At,
    ) -> Result<Taken, Failure>;
}

/// A sample, and what is left of the connections.
pub struct Taken {
    pub sample: Sample,
    /// Requests are under way that are no longer waited for: the next sample wants new connections.
    pub wants_new_connections: bool,
}

/// The servers of one cell, which take part by their numbers.
struct Servers<'c, 'a, X: Exchange> {
    exchange: X,
    servers: &'c mut [Connected<'a, X::Client>],
}

/// Connects and checks each of these servers in a cell whose line is in the record, and takes the
/// samples; gives back what they did.
pub fn measure_cell<X: Exchange>(
    exchange: X,
    (number, what): (usize, &str),
    sides: &Sides,
    (servers, measured): (&mut [Connected<'_, X::Client>], &[usize]),
    recording: &mut Recording<'_>,
) -> Result<X, Halt> {
    let cell = index(number);
    recording.at(&format!("{what}: checking every byte"));
    let (mut lanes, mut alive) = (Servers { exchange, servers }, measured.to_vec());
    lanes.connect(cell, &mut alive, recording)?;
    recording.groups(&mut lanes, (measured, alive), (cell, sides.pairs), what)?;
    // The next cell has other connections.
    lanes.servers.iter_mut().for_each(|connected| connected.client = None);
    Ok(lanes.exchange)
}

impl<X: Exchange> Servers<'_, '_, X> {
    /// Each of these is connected and checked, or fails and is taken out.
    fn connect(
        &mut self,
        cell: u32,
        which: &mut Vec<usize>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        for index in std::mem::take(which) {
            let connected = &mut self.servers[index];
            match self.exchange.connect(&mut connected.lane) {
                Ok(client) => {
                    connected.client = Some(client);
                    which.push(index);
                }
                Err(failure) => {
                    let at = At { cell, ..At::default() };
                    self.failed(index, at, failure, recording)?;
                }
            }
        }
        Ok(())
    }
}

impl<X: Exchange> Lanes for Servers<'_, '_, X> {
    type Mode = usize;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        self.exchange.figure(sample)
    }

    /// The servers and connections of the modes that have not failed end, and those modes are
    /// connected anew: which memory processes got makes them faster or slower for as long as they
    /// live. All go before the first one comes: it must not get what another one had.
    fn begin_group(
        &mut self,
        (cell, pair): (u32, u32),
        order: &mut Vec<usize>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        if pair == 0 {
            return Ok(());
        }
        order.iter().for_each(|index| self.servers[*index].end());
        self.connect(cell, order, recording)
    }

    fn sample(&mut self, index: usize, at: At) -> Result<Sample, Failure> {
        let Connected { lane, client } = &mut self.servers[index];
        let gone = || Failure::Answer("the client is gone".to_owned());
        let taken = self.exchange.sample(lane, client.as_mut().ok_or_else(gone)?, at)?;
        if taken.wants_new_connections {
            *client = Some(self.exchange.connect(lane)?);
        }
        Ok(taken.sample)
    }

    /// A failure becomes an error row, and nothing is left of the mode in this cell.
    fn failed(
        &mut self,
        index: usize,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        // Calls that wait are interrupted by a signal, and then fail.
        recording.stop.check()?;
        let connected = &mut self.servers[index];
        connected.end();
        recording.error(at.cell, connected.lane.mode(), &failure)?;
        Ok(false)
    }
}
