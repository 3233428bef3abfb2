//! Modes that are servers, or stacks of them, of their own, and what is connected to each.

use ntcopy_record::Sample;

use super::driver::{At, Groups, Halt, Lanes, Recording};
use crate::run::Failure;

pub struct Connected<L, C> {
    /// Gone after a failure. Goes first: a server that ends does not wait for it.
    client: Option<C>,
    pub lane: L,
}

impl<L, C> Connected<L, C> {
    pub fn new(lane: L) -> Connected<L, C> {
        Connected { client: None, lane }
    }
}

/// What one cell asks of lanes of this type.
pub trait Exchange<L> {
    type Client;

    /// What the record calls it.
    fn name(&self, lane: &L) -> String;

    /// What the user is told of the cell.
    fn what(&self) -> String;

    /// Why this lane says nothing in this cell, if so.
    fn unavailable(&self, _lane: &L) -> Option<&'static str> {
        None
    }

    fn figure(&self, sample: &Sample) -> Option<f64>;

    /// Whether servers are started and connected anew before this group of a cell, which is not the
    /// first.
    fn starts_at(&self, _pair: u32) -> bool {
        true
    }

    /// Starts what is not there.
    fn start(&self, _lane: &mut L) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether a server that does not start before the first group ends the measurement.
    fn needs_every_server(&self) -> bool {
        false
    }

    fn connect(&self, lane: &mut L) -> Result<Self::Client, Failure>;

    /// What failed, in a server's own words if it is gone.
    fn blame(&self, _lane: &mut L, failure: Failure) -> Failure {
        failure
    }

    /// Ends the server, whose clients are gone.
    fn end(&self, lane: &mut L);

    /// Takes a sample. Without a client afterwards, the lane is connected anew.
    fn sample(&mut self, lane: &mut L, client: &mut Self::Client, at: At)
    -> Result<Taken, Failure>;
}

/// A sample, and what is left of the connections.
pub struct Taken {
    pub sample: Sample,
    /// Requests are under way that are no longer waited for: the next sample wants new connections.
    pub wants_new_connections: bool,
}

/// The servers of one cell, which take part by their numbers.
struct Servers<'c, L, X: Exchange<L>> {
    exchange: X,
    servers: &'c mut [Connected<L, X::Client>],
}

/// Connects and checks each of these servers in a cell whose line is in the record, and takes the
/// samples; gives back what they did.
pub fn measure_cell<L, X: Exchange<L>>(
    exchange: X,
    cell: u32,
    pairs: u32,
    servers: &mut [Connected<L, X::Client>],
    recording: &mut Recording<'_>,
) -> Result<X, Halt> {
    let mut modes = Vec::new();
    for (index, Connected { lane, .. }) in servers.iter().enumerate() {
        match exchange.unavailable(lane) {
            Some(why) => recording.unavailable(exchange.name(lane), why, Some(cell))?,
            None => modes.push(index),
        }
    }
    let what = exchange.what();
    recording.at(&format!("{what}: checking every byte"));
    let (mut lanes, mut alive) = (Servers { exchange, servers }, modes.clone());
    lanes.connect(At { cell, ..At::default() }, &mut alive, recording)?;
    let groups = Groups { modes: &modes, alive, cells: &[(cell, &what)], pairs };
    recording.groups(&mut lanes, groups)?;
    // The next cell has other connections.
    lanes.servers.iter_mut().for_each(|connected| connected.client = None);
    Ok(lanes.exchange)
}

impl<L, X: Exchange<L>> Servers<'_, L, X> {
    /// Each of these is started, then each connected and checked, or it fails and is taken out.
    fn connect(
        &mut self,
        at: At,
        which: &mut Vec<usize>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        for index in std::mem::take(which) {
            match self.exchange.start(&mut self.servers[index].lane) {
                Ok(()) => which.push(index),
                Err(failure) if at.pair == 0 && self.exchange.needs_every_server() => {
                    return Err(failure.into());
                }
                Err(failure) => {
                    self.failed(index, at, failure, recording)?;
                }
            }
        }
        for index in std::mem::take(which) {
            let connected = &mut self.servers[index];
            match self.exchange.connect(&mut connected.lane) {
                Ok(client) => {
                    connected.client = Some(client);
                    which.push(index);
                }
                Err(failure) => {
                    self.failed(index, at, failure, recording)?;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, index: usize) {
        let Connected { client, lane } = &mut self.servers[index];
        *client = None;
        self.exchange.end(lane);
    }
}

impl<L, X: Exchange<L>> Lanes for Servers<'_, L, X> {
    type Mode = usize;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        self.exchange.figure(sample)
    }

    /// The servers and connections of the modes that have not failed end, and those modes are
    /// connected anew: which memory processes got makes them faster or slower for as long as they
    /// live. All go before the first one comes: it must not get what another one had.
    fn begin_group(
        &mut self,
        at: At,
        order: &mut Vec<usize>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        if at.pair == 0 || !self.exchange.starts_at(at.pair) {
            return Ok(());
        }
        order.iter().for_each(|index| self.end(*index));
        self.connect(at, order, recording)
    }

    fn sample(&mut self, index: usize, at: At) -> Result<Sample, Failure> {
        let Connected { client, lane } = &mut self.servers[index];
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
        let lane = &mut self.servers[index].lane;
        let (name, failure) = (self.exchange.name(lane), self.exchange.blame(lane, failure));
        self.end(index);
        recording.error(at.cell, name, &failure)?;
        Ok(false)
    }
}
