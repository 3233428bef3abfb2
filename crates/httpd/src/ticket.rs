//! The connections of all workers: how many there may be, and which are idle.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::task::Poll;

use rustix::fd::OwnedFd;
use rustix::net::{Shutdown, shutdown};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use crate::log::lost;
use crate::metrics::Text;
use crate::options::Options;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// No new connections, and what is in flight gets its time.
    Graceful,
    Now,
}

crate::counters! {
    /// What a worker counts of its connections.
    pub struct Counts {
        open: "gauge" "connections" "Open connections.",
        accepted: "counter" "accepted_total" "Accepted connections.",
        paused: "counter" "accept_paused_total" "Times that accepting paused for want of descriptors.",
        evicted: "counter" "evicted_total" "Idle connections closed to make room for others.",
        turned_away: "counter" "turned_away_total" "Connections turned away for want of room.",
        timeouts: "counter" "timeouts_total" "Times that a peer took too long.",
        good: "counter" "responses_good_total" "Answers below 400.",
        refusals: "counter" "responses_4xx_total" "Answers from 400 on: a client's mistake.",
        failures: "counter" "responses_5xx_total" "Answers from 500 on: a mistake or a failure here.",
    }
}

impl Counts {
    pub fn answered(&self, status: u16) {
        match status {
            ..400 => self.good.up(),
            400..500 => self.refusals.up(),
            500.. => self.failures.up(),
        }
    }
}

/// Adds what a daemon counts.
type Report = Box<dyn Fn(&mut Text) + Send + Sync>;

pub(crate) struct Core {
    pub(crate) options: Options,
    open: AtomicUsize,
    /// Connections that wait for a request, less those that were chosen to make room.
    idle: AtomicIsize,
    /// Wakes the one that has waited longest.
    evict: Notify,
    pub(crate) workers: Vec<PerWorker>,
    pub(crate) stop: watch::Sender<Option<Stop>>,
    name: &'static str,
    report: Report,
}

#[derive(Debug)]
pub(crate) struct PerWorker {
    pub(crate) counts: Counts,
    pub(crate) closed: Notify,
}

impl Core {
    pub(crate) fn new(options: Options, name: &'static str, report: Report) -> Core {
        let worker = || PerWorker { counts: Counts::default(), closed: Notify::new() };
        Core {
            open: AtomicUsize::new(0),
            idle: AtomicIsize::new(0),
            evict: Notify::new(),
            workers: (0..options.workers()).map(|_| worker()).collect(),
            stop: watch::Sender::new(None),
            name,
            report,
            options,
        }
    }

    /// What was counted, for Prometheus.
    pub(crate) fn metrics(&self) -> String {
        let mut text = Text::new(self.name);
        Counts::tell(self.workers.iter().map(|worker| &worker.counts), &mut text);
        let idle = self.idle.load(Ordering::Relaxed).max(0);
        text.family("gauge", "connections_idle", "Connections that wait for a request.", idle);
        let help = "Lines of the log that were not written: what reads it was too slow.";
        text.family("counter", "log_lines_lost_total", help, lost());
        (self.report)(&mut text);
        text.end()
    }

    /// Ends the one of all workers' connections that has been idle longest, if there is one.
    fn evict(&self) -> bool {
        let one_less = |idle| (idle > 0).then_some(idle - 1);
        let order = Ordering::Relaxed;
        let chosen = self.idle.fetch_update(order, order, one_less).is_ok();
        if chosen {
            self.evict.notify_one();
        }
        chosen
    }
}

/// A connection's place among those that are counted. The socket is closed with it.
pub struct Ticket {
    core: Arc<Core>,
    worker: usize,
    counted: bool,
    socket: Option<Arc<OwnedFd>>,
}

impl Ticket {
    /// While this waits, the connection is idle: it may be ended at any time, which its reader sees
    /// as the end of what the client sends.
    pub async fn idle<T>(&self, wait: impl Future<Output = T>) -> T {
        let mut wait = pin!(wait);
        let first = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
        if let Poll::Ready(done) = first {
            return done;
        }
        let (core, counted) = (&self.core, isize::from(self.counted));
        let mut stop = core.stop.subscribe();
        let over = async {
            tokio::select! {
                _ = stop.wait_for(Option::is_some) => {}
                () = sleep(core.options.idle_timeout) => {}
            }
        };
        let mut evicted = pin!(core.evict.notified());
        if self.counted {
            evicted.as_mut().enable();
        }
        core.idle.fetch_add(counted, Ordering::Relaxed);
        tokio::select! {
            biased;
            done = &mut wait => {
                core.idle.fetch_sub(counted, Ordering::Relaxed);
                return done;
            }
            // Who chose it has counted it out.
            () = evicted, if self.counted => self.counts().evicted.up(),
            () = over => {
                core.idle.fetch_sub(counted, Ordering::Relaxed);
            }
        }
        // Whoever reads finds the end behind what has come already.
        if let Some(socket) = &self.socket {
            let _ = shutdown(socket, Shutdown::Read);
        }
        wait.await
    }

    /// What the worker counts.
    pub fn counts(&self) -> &Counts {
        &self.core.workers[self.worker].counts
    }

    /// The server ends: no connection is kept after its answer.
    pub fn is_draining(&self) -> bool {
        self.core.stop.borrow().is_some()
    }
}

/// A place for a connection, if there is one or one can be made.
pub(crate) fn ticket(
    core: &Arc<Core>,
    worker: usize,
    counted: bool,
    socket: &Arc<OwnedFd>,
) -> Option<Ticket> {
    if counted {
        core.open.fetch_add(1, Ordering::Relaxed);
    }
    core.workers[worker].counts.open.up();
    let (core, socket) = (Arc::clone(core), Some(Arc::clone(socket)));
    let ticket = Ticket { core, worker, counted, socket };
    let too_many = counted
        && ticket.core.open.load(Ordering::Relaxed) > ticket.core.options.connections_max
        && !ticket.core.evict();
    (!too_many).then_some(ticket)
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // First, so that a descriptor is free when a connection counts as gone.
        self.socket = None;
        if self.counted {
            self.core.open.fetch_sub(1, Ordering::Relaxed);
        }
        let worker = &self.core.workers[self.worker];
        worker.counts.open.down();
        worker.closed.notify_one();
    }
}
