//! The connections of all workers: how many there may be, and which are idle.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Resource, getrlimit};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::buffers::SendBuffer;
use crate::log::lost;
use crate::metrics::Text;
use crate::options::Options;

/// How long the descriptor of an idle connection is waited for.
const MAKE_ROOM: Duration = Duration::from_millis(250);
/// Connections of the metrics at one time.
const METRICS_CONNECTIONS: usize = 16;
/// Descriptors that clients get only while none of them is idle.
const SPARE_DESCRIPTORS: u64 = 64;

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
        asking: "gauge" "metrics_connections" "Open connections to --metrics, among the others.",
        metrics_evicted: "counter" "metrics_evicted_total" "Connections to --metrics closed to make room for others.",
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
    pub(crate) send_buffer: Option<SendBuffer>,
    open: AtomicUsize,
    /// Connections that wait for a request, less those that were chosen to make room.
    idle: AtomicIsize,
    /// Wakes the one that has waited longest.
    evict: Notify,
    /// Wakes whoever waits for the descriptor of a connection.
    closed: Notify,
    /// From which number on a descriptor is one of the last.
    last_descriptors: u64,
    /// Connections of the metrics, the oldest first.
    asking: Mutex<VecDeque<AbortHandle>>,
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
            closed: Notify::new(),
            last_descriptors: last_descriptors(),
            asking: Mutex::default(),
            workers: (0..options.workers()).map(|_| worker()).collect(),
            stop: watch::Sender::new(None),
            name,
            report,
            send_buffer: options.sndbuf.map(SendBuffer::of),
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
    pub(crate) fn evict(&self) -> bool {
        let one_less = |idle| (idle > 0).then_some(idle - 1);
        let order = Ordering::Relaxed;
        let chosen = self.idle.fetch_update(order, order, one_less).is_ok();
        if chosen {
            self.evict.notify_one();
        }
        chosen
    }

    /// Ends the longest idle, and waits for its descriptor.
    pub(crate) async fn make_room(&self) -> bool {
        let mut closed = pin!(self.closed.notified());
        closed.as_mut().enable();
        self.evict() && timeout(MAKE_ROOM, closed).await.is_ok()
    }

    /// Whether the last descriptors are in use, which backends, pipes and files need as well: the
    /// kernel gives the lowest number that is free.
    pub(crate) fn is_short_of_descriptors(&self, newest: &OwnedFd) -> bool {
        u64::try_from(newest.as_raw_fd()).is_ok_and(|number| number >= self.last_descriptors)
    }

    /// Takes in a connection of the metrics. Where there are as many as may be, the oldest goes.
    pub(crate) fn ask(&self, newest: AbortHandle) -> bool {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        asking.retain(|task| !task.is_finished());
        asking.push_back(newest);
        let oldest = if asking.len() > METRICS_CONNECTIONS { asking.pop_front() } else { None };
        oldest.inspect(AbortHandle::abort).is_some()
    }
}

/// All but an eighth, at most [`SPARE_DESCRIPTORS`], are for anything.
fn last_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    limit - (limit / 8).min(SPARE_DESCRIPTORS)
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

    /// Whether an idle connection was closed, where something else wants its descriptor.
    pub async fn make_room(&self) -> bool {
        self.core.make_room().await
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
    } else {
        core.workers[worker].counts.asking.up();
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
        if !self.counted {
            worker.counts.asking.down();
        }
        worker.counts.open.down();
        worker.closed.notify_one();
        self.core.closed.notify_waiters();
    }
}
