//! How many connections to each backend a worker has, and who waits for one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Key;
use crate::backend::Backend;

/// How soon a unix backend whose queue was full is asked again, and how late at last: by one who
/// waits, whoever many they are.
const ASK_AGAIN: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(32)];

/// One backend's.
#[derive(Debug)]
struct Gate {
    backend: Arc<Backend>,
    /// Connections, idle ones included.
    open: usize,
    waiting: VecDeque<Key>,
    /// When the backend's queue is to be asked again, and how long that took last.
    ask: Option<(Instant, Duration)>,
}

/// All backends'.
#[derive(Debug, Default)]
pub(super) struct Gates {
    gates: Vec<Gate>,
    /// Who may try now.
    called: Vec<(Key, Arc<Backend>)>,
}

impl Gates {
    fn of(&mut self, backend: &Arc<Backend>) -> &mut Gate {
        let at = self.gates.iter().position(|gate| Arc::ptr_eq(&gate.backend, backend));
        let at = at.unwrap_or_else(|| {
            let (backend, waiting) = (Arc::clone(backend), VecDeque::new());
            self.gates.push(Gate { backend, open: 0, waiting, ask: None });
            self.gates.len() - 1
        });
        &mut self.gates[at]
    }

    /// Connections to that backend.
    pub(super) fn open(&mut self, backend: &Arc<Backend>) -> usize {
        self.of(backend).open
    }

    /// Whether its queue was full when it was asked last, so that only who waits asks again.
    pub(super) fn is_full(&mut self, backend: &Arc<Backend>) -> bool {
        self.of(backend).ask.is_some()
    }

    /// There is one more.
    pub(super) fn opened(&mut self, backend: &Arc<Backend>) {
        let gate = self.of(backend);
        gate.open += 1;
        // Its queue has room: the next may try at once.
        if gate.ask.take().is_some() {
            self.call(backend);
        }
    }

    /// There is one fewer.
    pub(super) fn closed(&mut self, backend: &Arc<Backend>) {
        let gate = self.of(backend);
        gate.open -= 1;
        self.call(backend);
    }

    /// One waits: in front if it was called and found nothing.
    pub(super) fn wait(&mut self, backend: &Arc<Backend>, session: Key, again: bool) {
        let gate = self.of(backend);
        if again {
            gate.waiting.push_front(session);
        } else {
            gate.waiting.push_back(session);
        }
    }

    /// One waits no longer.
    pub(super) fn leave(&mut self, backend: &Arc<Backend>, session: Key) {
        self.of(backend).waiting.retain(|other| *other != session);
    }

    /// Its queue is full.
    pub(super) fn full(&mut self, backend: &Arc<Backend>, now: Instant) {
        let gate = self.of(backend);
        let wait = gate.ask.map_or(ASK_AGAIN[0], |(_, last)| (last * 2).min(ASK_AGAIN[1]));
        gate.ask = Some((now + wait, wait));
    }

    /// Lets the next try, if there is one.
    pub(super) fn call(&mut self, backend: &Arc<Backend>) {
        if let Some(session) = self.of(backend).waiting.pop_front() {
            self.called.push((session, Arc::clone(backend)));
        }
    }

    /// Who may try now, those whose time has come included.
    pub(super) fn called(&mut self, now: Instant) -> Vec<(Key, Arc<Backend>)> {
        for gate in &mut self.gates {
            if gate.ask.is_some_and(|(at, _)| at <= now) {
                match gate.waiting.pop_front() {
                    Some(session) => {
                        let (_, last) = gate.ask.unwrap_or((now, ASK_AGAIN[0]));
                        // Were it gone meanwhile, the next is called.
                        gate.ask = Some((now + last, last));
                        self.called.push((session, Arc::clone(&gate.backend)));
                    }
                    None => gate.ask = None,
                }
            }
        }
        std::mem::take(&mut self.called)
    }

    /// When a session may try.
    pub(super) fn wait_until(&self, now: Instant) -> Option<Instant> {
        let due = (!self.called.is_empty()).then_some(now);
        due.into_iter().chain(self.gates.iter().filter_map(|gate| gate.ask.map(|(at, _)| at))).min()
    }
}
