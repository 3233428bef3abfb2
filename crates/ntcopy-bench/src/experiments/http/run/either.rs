//! The client, over whatever its connections are.

use std::time::Duration;

use super::QuicClient;
use super::body_reader::BodyReader;
use super::client::SocketClient;
use super::load::{Meter, Window};
use super::stack::Running;
use crate::experiments::http::plan::HttpCell;
use crate::run::schedule::Schedule;
use crate::run::{Failure, Stop};

/// A client of one proxy.
pub enum Client {
    /// Over TCP, plain or through TLS.
    Sockets(SocketClient),
    /// Over QUIC.
    Quic(QuicClient),
}

impl Client {
    /// Connects as often as the cell says.
    ///
    /// # Errors
    ///
    /// The proxy is not there, or the system refuses.
    pub fn connect(running: &Running, cell: &HttpCell, stop: &Stop) -> Result<Client, Failure> {
        match running.quic() {
            None => SocketClient::connect(running, cell, stop).map(Client::Sockets),
            Some(config) => {
                QuicClient::connect(running.target(), config, cell, stop).map(Client::Quic)
            }
        }
    }

    /// Asks for the next `objects` in turn, over all connections, and compares every byte of them.
    /// All of them are asked for where `objects` is their number.
    ///
    /// # Errors
    ///
    /// The byte that was wrong, or what else went wrong.
    pub fn check(&mut self, objects: u64, look: BodyReader) -> Result<u64, Failure> {
        match self {
            Client::Sockets(client) => client.check(objects, look),
            Client::Quic(client) => client.check(objects, look),
        }
    }

    /// Every connection asks anew as soon as it is answered. The clock runs over the middle, when
    /// all of them are busy; at the end what is under way is taken, unclocked.
    ///
    /// # Errors
    ///
    /// What went wrong.
    pub fn closed(
        &mut self,
        warm_up: Duration,
        clocked: Duration,
        meter: Meter<'_>,
    ) -> Result<Window, Failure> {
        match self {
            Client::Sockets(client) => client.closed(warm_up, clocked, meter),
            Client::Quic(client) => client.closed(warm_up, clocked, meter),
        }
    }

    /// Requests go out when they are due, on whatever connection has nothing to do, or as soon as
    /// one has; how long an answer took counts from when the request was due.
    ///
    /// # Errors
    ///
    /// What went wrong.
    pub fn open(&mut self, schedule: &Schedule, meter: Meter<'_>) -> Result<Window, Failure> {
        match self {
            Client::Sockets(client) => client.open(schedule, meter),
            Client::Quic(client) => client.open(schedule, meter),
        }
    }
}
