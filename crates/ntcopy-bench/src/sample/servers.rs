//! Modes that are servers of their own, and what is connected to each.

use ntcopy_record::Sample;

use crate::experiment::NetMode;
use crate::run::net::{Lane, Setup};
use crate::run::{Failure, Stop};
use crate::sample::driver::{At, Halt, Lanes, Recording};

/// A mode's server and its connections.
pub struct Connected<'a, C> {
    /// The mode's server.
    pub lane: Lane<'a>,
    /// Gone after a failure.
    pub client: Option<C>,
}

impl<'a, C> Connected<'a, C> {
    pub fn new(lane: Lane<'a>) -> Connected<'a, C> {
        Connected { lane, client: None }
    }

    fn end(&mut self) {
        self.client = None;
        self.lane.reset();
    }
}

/// A server for each mode that is here, with the devices that were made for it.
pub fn servers<'a, C>(
    setup: &'a Setup<'a>,
    planned: &[NetMode],
    here: &[NetMode],
) -> Result<Vec<Connected<'a, C>>, Failure> {
    let numbered = (0..).zip(planned).filter(|(_, mode)| here.contains(mode));
    numbered.map(|(number, mode)| Ok(Connected::new(Lane::new(setup, *mode, number)?))).collect()
}

/// What client and server do in a cell.
pub trait Exchange {
    type Client;

    /// As [`Lanes::figure`].
    fn figure(&self, sample: &Sample) -> Option<f64>;

    /// Connects, and compares bytes.
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

pub struct Servers<'c, 'a, X: Exchange> {
    pub exchange: X,
    pub servers: &'c mut [Connected<'a, X::Client>],
    pub stop: &'c Stop,
}

impl<X: Exchange> Servers<'_, '_, X> {
    /// Each of these is connected and checked, or fails.
    pub fn connect(
        &mut self,
        cell: u32,
        which: &[usize],
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        for index in which {
            let connected = &mut self.servers[*index];
            match self.exchange.connect(&mut connected.lane) {
                Ok(client) => connected.client = Some(client),
                Err(failure) => self.give_up(cell, *index, &failure, recording)?,
            }
        }
        Ok(())
    }

    /// A failure becomes an error row, and nothing is left of the mode in this cell.
    fn give_up(
        &mut self,
        cell: u32,
        index: usize,
        failure: &Failure,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        // Calls that wait are interrupted by a signal, and then fail.
        if self.stop.signal().is_some() {
            return Err(Halt::Stopped);
        }
        let connected = &mut self.servers[index];
        connected.end();
        Ok(recording.error(cell, connected.lane.mode(), failure)?)
    }
}

impl<X: Exchange> Lanes for Servers<'_, '_, X> {
    type Mode = usize;
    type Trouble = Failure;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        self.exchange.figure(sample)
    }

    /// The servers and connections of the modes that have not failed end, and those modes are
    /// connected anew: which memory processes got makes them faster or slower for as long as they
    /// live. All go before the first one comes: it must not get what another one had.
    fn begin_group(
        &mut self,
        (cell, pair): (u32, u32),
        order: &[usize],
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        if pair == 0 {
            return Ok(());
        }
        let alive: Vec<usize> =
            order.iter().copied().filter(|index| self.is_alive(*index)).collect();
        alive.iter().for_each(|index| self.servers[*index].end());
        self.connect(cell, &alive, recording)
    }

    fn is_alive(&self, index: usize) -> bool {
        self.servers[index].client.is_some()
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

    fn failed(
        &mut self,
        index: usize,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        self.give_up(at.cell, index, &failure, recording)
    }
}
