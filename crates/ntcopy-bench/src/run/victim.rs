//! The clocked form with a victim on the sender's own CPU.

use std::collections::BTreeMap;

use super::clock::Stopwatch;
use super::form::drain_order;
use super::hot_set::HotSet;
use super::rig::Rig;
use super::{Clocked, Failure};
use crate::experiment::Mode;

impl Rig {
    /// So many times: one send, then one walk of the victim. In mode `idle`
    /// only the walks.
    pub(super) fn victim(
        &mut self,
        mode: Mode,
        walks: u64,
        hot_set_bytes: u64,
    ) -> Result<Clocked, Failure> {
        let hot_set = match self.hot_set.take() {
            Some(hot_set) => hot_set,
            None => HotSet::new(hot_set_bytes)?,
        };
        let mut took = Vec::with_capacity(usize::try_from(walks).unwrap_or(0));
        let (mut send_ns, mut drain_ns) = (0, 0);
        let clock = Stopwatch::start();
        let mut filled = 0;
        for walk in 0..walks {
            self.stop.check()?;
            if mode != Mode::Idle {
                let start = clock.ns();
                self.send_next(filled, mode)?;
                filled += 1;
                let sent = clock.ns();
                send_ns += sent - start;
                if filled == self.sockets.len() || walk + 1 == walks {
                    self.drain(&drain_order(filled, self.cell.object_bytes), filled)?;
                    filled = 0;
                    drain_ns += clock.ns() - sent;
                }
            }
            took.push(hot_set.walk());
        }
        let elapsed_ns = clock.ns().max(1);
        self.hot_set = Some(hot_set);
        let walk_ns = took.iter().sum();
        let phases = [("send", send_ns), ("drain", drain_ns), ("walk", walk_ns)];
        Ok(Clocked {
            bytes: if mode == Mode::Idle { 0 } else { walks * self.cell.object_bytes },
            elapsed_ns,
            phases_ns: phases.map(|(name, ns)| (name.to_owned(), ns)).into(),
            counters: BTreeMap::new(),
            series: [("walk_ns".to_owned(), took)].into(),
        })
    }
}
