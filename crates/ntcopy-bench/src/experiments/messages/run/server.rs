//! The server's process: takes requests, sends responses.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::end::{End, Got, Side};
use super::message::{NAME, Order, Reply, Shape};
use super::pingpong::echo;
use crate::run::link::{self, Received};
use crate::run::process;
use crate::run::{Failure, cpus};

/// Events that are taken at a time.
const EVENTS: usize = 256;
const LINE: u64 = u64::MAX;
/// A wait ends after this long for nothing.
const TURN: Duration = Duration::from_secs(1);

/// Runs the server until its line is closed.
///
/// Meant to be all that a hidden verb of the program does.
pub fn main() -> ExitCode {
    let mut sockets = Vec::new();
    process::serve(NAME, |line, order, carried| Ok(carry_out(line, &mut sockets, order, carried)?))
}

fn carry_out(
    line: BorrowedFd<'_>,
    sockets: &mut Vec<OwnedFd>,
    order: Order,
    carried: Vec<OwnedFd>,
) -> Result<Reply, Failure> {
    match order {
        Order::Place { cpu } => cpus::pin(cpu)?,
        Order::Forget => sockets.clear(),
        Order::Sockets { count } if carried.len() == count as usize => sockets.extend(carried),
        Order::Sockets { count } => {
            return Err(Failure::Limit(format!(
                "{} of {count} sockets arrived: the limit of open files (ulimit -n) is too low",
                carried.len()
            )));
        }
        Order::Serve { shape, compares } => {
            let mut serving = Serving::new(line, std::mem::take(sockets), &shape, compares)?;
            // The client may ask as soon as it knows.
            say(line, &Reply::Done)?;
            let done = serving.run();
            *sockets = serving.into_sockets();
            return done;
        }
        Order::Echo { shape } => {
            let Some(socket) = sockets.first() else {
                return Err(Failure::Answer("there is no socket yet".to_owned()));
            };
            say(line, &Reply::Done)?;
            let responses = echo(socket.as_fd(), &shape)?;
            return Ok(Reply::Answered { responses });
        }
        Order::Pause => return Err(Failure::Answer("it was not serving".to_owned())),
    }
    Ok(Reply::Done)
}

fn say(line: BorrowedFd<'_>, reply: &Reply) -> Result<(), Failure> {
    process::answer(line, &Ok(reply)).map_err(Failure::os("cannot answer"))
}

struct Serving<'a> {
    line: BorrowedFd<'a>,
    epoll: OwnedFd,
    ends: Vec<End>,
    compares: bool,
    responses: u64,
}

impl<'a> Serving<'a> {
    fn new(
        line: BorrowedFd<'a>,
        sockets: Vec<OwnedFd>,
        shape: &Shape,
        compares: bool,
    ) -> Result<Serving<'a>, Failure> {
        let epoll =
            epoll::create(CreateFlags::CLOEXEC).map_err(Failure::os("cannot make an epoll"))?;
        epoll::add(&epoll, line, EventData::new_u64(LINE), EventFlags::IN)
            .map_err(Failure::os("cannot watch the line"))?;
        let mut ends = Vec::with_capacity(sockets.len());
        for (number, socket) in (0..).zip(sockets) {
            epoll::add(&epoll, &socket, EventData::new_u64(u64::from(number)), EventFlags::IN)
                .map_err(Failure::os("cannot watch a connection"))?;
            ends.push(End::new(socket, number, Side::Server, shape));
        }
        Ok(Serving { line, epoll, ends, compares, responses: 0 })
    }

    fn into_sockets(self) -> Vec<OwnedFd> {
        self.ends.into_iter().map(End::into_socket).collect()
    }

    /// Answers until the client says otherwise.
    fn run(&mut self) -> Result<Reply, Failure> {
        let mut events =
            vec![Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        let turn = Timespec::try_from(TURN).ok();
        loop {
            let ready = match epoll::wait(&self.epoll, &mut events[..], turn.as_ref()) {
                Ok(ready) => ready,
                Err(Errno::INTR) => 0,
                Err(errno) => return Err(Failure::os("cannot wait for a request")(errno)),
            };
            let mut is_over = false;
            for event in &events[..ready] {
                let (flags, data) = (event.flags, event.data.u64());
                if data == LINE {
                    is_over = true;
                } else {
                    self.answer(data as usize, flags)?;
                }
            }
            if is_over {
                return self.paused();
            }
        }
    }

    /// The order that came has to be that to stop.
    fn paused(&self) -> Result<Reply, Failure> {
        match link::receive::<Order>(self.line).map_err(Failure::os("the line"))? {
            Received::Message(Order::Pause, _) => Ok(Reply::Answered { responses: self.responses }),
            Received::Message(other, _) => {
                Err(Failure::Answer(format!("an order while it was serving: {other:?}")))
            }
            Received::Closed | Received::Nothing(_) => {
                // The answer is not heard; the next receive ends the process.
                Ok(Reply::Done)
            }
        }
    }

    /// Goes on with a connection that is ready to be read from, or to be written to.
    fn answer(&mut self, number: usize, flags: EventFlags) -> Result<(), Failure> {
        let end = &mut self.ends[number];
        let refused = || Failure::os("cannot send a response");
        if flags.contains(EventFlags::OUT) {
            if end.go_on().map_err(refused())? {
                self.responses += 1;
                self.watch(number, EventFlags::IN)?;
            }
            return Ok(());
        }
        let got = end.receive().map_err(Failure::os("cannot receive a request"))?;
        if got == Got::Part {
            return Ok(());
        }
        if self.compares {
            end.compare(false)?;
        }
        if end.begin().map_err(refused())? {
            self.responses += 1;
            return Ok(());
        }
        // The rest goes when there is room; until then no request can come.
        self.watch(number, EventFlags::OUT)
    }

    fn watch(&self, number: usize, flags: EventFlags) -> Result<(), Failure> {
        let data = EventData::new_u64(number as u64);
        epoll::modify(&self.epoll, &self.ends[number], data, flags)
            .map_err(Failure::os("cannot watch a connection"))
    }
}
