//! Connections of HTTP/3: what each may make this process hold, of one total for all of them, and
//! which of them is doing nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::bodies::PIECE_BYTES;

/// What is read from a backend for a stream, and what waits to be sent of it.
const STREAM_BYTES: u64 = 2 * PIECE_BYTES as u64;
/// Windows that a connection may have.
pub(super) const WINDOW_MIN: u64 = 64 << 10;
const WINDOW_MAX: u64 = 1 << 20;

/// A connection's share of the memory for HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) window: u64,
    /// What the connection can make this process hold: what it sends and is not read, what it
    /// asks for and does not take, and for each stream what is on its way from the backend.
    bytes: u64,
}

impl Share {
    /// A share of `total` bytes, of which `taken` are given away; the less is left, the less is
    /// given. `None` if nothing of use is left.
    fn of(total: u64, taken: u64) -> Option<Share> {
        let left = total.saturating_sub(taken);
        let window = (left / 1024).clamp(WINDOW_MIN, WINDOW_MAX);
        let bytes = 2 * window + streams(window) * STREAM_BYTES;
        (bytes <= left).then_some(Share { window, bytes })
    }
}

/// Requests that a connection with that window may have at one time.
pub(super) fn streams(window: u64) -> u64 {
    (window / (32 << 10)).max(4)
}

/// What a connection says of itself.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// Requests under way.
    exchanges: AtomicUsize,
    /// It, once its handshake is over.
    connection: OnceLock<quinn::Connection>,
    /// Whether it is to end unless it asks for something before it hears of that.
    leaves: AtomicBool,
    leave: Notify,
}

impl Presence {
    /// The handshake is over.
    pub(super) fn arrived(&self, connection: quinn::Connection) {
        let _ = self.connection.set(connection);
    }

    /// This number of requests is under way.
    pub(super) fn has(&self, exchanges: usize) {
        self.exchanges.store(exchanges, Ordering::Relaxed);
        if exchanges > 0 {
            self.leaves.store(false, Ordering::Relaxed);
        }
    }

    /// Waits until the connection is to end, or was and asked for something in time.
    pub(super) async fn told(&self) {
        self.leave.notified().await;
    }

    /// Whether it is to end.
    pub(super) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Relaxed)
    }

    fn ask_to_leave(&self) {
        self.leaves.store(true, Ordering::Relaxed);
        self.leave.notify_one();
    }

    fn is_busy(&self) -> bool {
        self.connection.get().is_none() || self.exchanges.load(Ordering::Relaxed) > 0
    }

    /// What was sent to it so far.
    fn sent(&self) -> Sent {
        let stats = self.connection.get().map(quinn::Connection::stats).unwrap_or_default();
        Sent { bytes: stats.udp_tx.bytes, pieces: stats.frame_tx.stream }
    }
}

/// What was sent to a connection: bytes of all kinds, and pieces of its streams. Who only says that
/// he is there gets bytes, and no piece.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    bytes: u64,
    pieces: u64,
}

#[derive(Debug)]
struct Seat {
    client: IpAddr,
    bytes: u64,
    presence: Arc<Presence>,
    /// What had been sent to it when that was last looked at.
    sent: Sent,
    /// Since when it asks for nothing, and takes next to nothing of what it asked for.
    quiet_since: Instant,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Seats {
    seats: HashMap<u64, Seat>,
    next: u64,
    taken: u64,
}

impl Seats {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }

    /// How many of them are that client's.
    pub(super) fn of(&self, client: IpAddr) -> usize {
        self.seats.values().filter(|seat| seat.client == client).count()
    }

    /// A share of the total for another; `None` if nothing of use is left.
    pub(super) fn share(&self, total: u64) -> Option<Share> {
        Share::of(total, self.taken)
    }

    /// Gives it.
    pub(super) fn take(
        &mut self,
        share: Share,
        client: IpAddr,
        now: Instant,
    ) -> (u64, Arc<Presence>) {
        let (number, presence) = (self.next, Arc::<Presence>::default());
        self.next += 1;
        self.taken += share.bytes;
        let (bytes, at) = (share.bytes, Arc::clone(&presence));
        let seat = Seat { client, bytes, presence: at, sent: Sent::default(), quiet_since: now };
        self.seats.insert(number, seat);
        (number, presence)
    }

    /// Takes it back.
    pub(super) fn free(&mut self, number: u64) {
        if let Some(seat) = self.seats.remove(&number) {
            self.taken -= seat.bytes;
        }
    }

    /// Looks at all of them, and asks those to leave that have been quiet for `patience`. One that
    /// was sent `least` bytes since the last look is not: what it asked for last is on its way.
    pub(super) fn look(&mut self, now: Instant, least: u64, patience: Duration) {
        for seat in self.seats.values_mut() {
            let sent = seat.presence.sent();
            let takes = sent.pieces > seat.sent.pieces && sent.bytes >= seat.sent.bytes + least;
            if seat.presence.is_busy() || takes {
                seat.quiet_since = now;
            } else if now.saturating_duration_since(seat.quiet_since) >= patience {
                seat.presence.ask_to_leave();
            }
            seat.sent = sent;
        }
    }

    /// Asks the one to leave that has been quiet longest; false if there is none.
    pub(super) fn make_room(&self) -> bool {
        let stays = |seat: &&Seat| !seat.presence.leaves() && !seat.presence.is_busy();
        let longest = self.seats.values().filter(stays).min_by_key(|seat| seat.quiet_since);
        longest.inspect(|seat| seat.presence.ask_to_leave()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_smaller_and_never_add_up_to_more_than_there_is() {
        let total = 64 << 20;
        let (mut seats, mut windows) = (Seats::default(), Vec::new());
        let (client, now) = (IpAddr::from([192, 0, 2, 1]), Instant::now());
        let mut numbers = Vec::new();
        while let Some(share) = seats.share(total) {
            windows.push(share.window);
            numbers.push(seats.take(share, client, now).0);
        }
        assert!(seats.taken <= total && seats.len() >= 100, "{} of {}", seats.len(), seats.taken);
        assert!(windows.is_sorted_by(|one, two| one >= two));
        assert_eq!(seats.of(client), windows.len());
        assert_eq!(Share::of(1 << 30, 0).unwrap().window, WINDOW_MAX);
        assert_eq!(Share::of(100 << 10, 0), None);
        assert!(!seats.make_room(), "all are in their handshakes");
        numbers.into_iter().for_each(|number| seats.free(number));
        assert_eq!((seats.taken, seats.len()), (0, 0));
    }
}
