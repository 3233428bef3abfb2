//! Modes that are processes, and what is connected to each.

use super::{Halt, failed};
use crate::run::net::Lane;
use crate::run::{Failure, Stop};
use crate::sample::Writer;

/// A mode and its connections.
pub struct Lined<'a, C> {
    /// The mode's server.
    pub lane: Lane<'a>,
    /// Gone after a failure.
    pub client: Option<C>,
}

impl<'a, C> Lined<'a, C> {
    /// Nothing is connected yet.
    pub fn new(lane: Lane<'a>) -> Lined<'a, C> {
        Lined { lane, client: None }
    }

    /// A failure becomes an error row, and nothing is left of the mode in this cell.
    pub fn keep<T>(
        &mut self,
        cell: u32,
        result: Result<T, Failure>,
        stop: &Stop,
        writer: &mut Writer,
    ) -> Result<Option<T>, Halt> {
        match result {
            Ok(value) => Ok(Some(value)),
            // Calls that wait are interrupted by a signal, and then fail.
            Err(_) if stop.signal().is_some() => Err(Halt::Stopped),
            Err(failure) => {
                self.end();
                writer.line(&failed(cell, self.lane.mode(), &failure))?;
                Ok(None)
            }
        }
    }

    fn end(&mut self) {
        self.client = None;
        self.lane.reset();
    }
}

/// Before another group: the servers and connections of the modes that have not failed end, and
/// those modes, in the group's order, are to be connected anew. Which memory processes got makes
/// them faster or slower for as long as they live.
///
/// All go before the first one comes: it must not get what another one had.
pub fn end_all<C>(lanes: &mut [Lined<'_, C>], order: Vec<usize>) -> Vec<usize> {
    let is_alive = |index: &usize| lanes[*index].client.is_some();
    let alive: Vec<usize> = order.into_iter().filter(is_alive).collect();
    alive.iter().for_each(|index| lanes[*index].end());
    alive
}
