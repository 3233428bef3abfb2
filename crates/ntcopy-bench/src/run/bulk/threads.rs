//! The same on several threads at once, each on its CPU.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::run::{Failure, cpus};

/// Threads that start together: each spins until all are there.
pub struct Start {
    missing: AtomicUsize,
}

impl Start {
    pub fn new(threads: usize) -> Start {
        Start { missing: AtomicUsize::new(threads) }
    }

    pub fn wait(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        while self.missing.load(Ordering::Acquire) > 0 {
            std::hint::spin_loop();
        }
    }
}

/// Does it on a thread for each item, pinned to the CPU of the same number.
pub fn together<T: Send, R: Send>(
    items: Vec<T>,
    on: &[u32],
    work: impl Fn(T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    thread::scope(|scope| {
        let work = &work;
        let start = |(item, cpu): (T, &u32)| {
            let cpu = *cpu;
            // One that can't be pinned must not stay behind in a spin: pinning comes first for
            // all, and is the same call on CPUs that the plan has seen to be allowed.
            scope.spawn(move || {
                cpus::pin(cpu)?;
                work(item)
            })
        };
        let threads: Vec<_> = items.into_iter().zip(on).map(start).collect();
        threads
            .into_iter()
            .map(|thread| {
                let panicked = |_| Failure::Answer("a thread of it panicked".to_owned());
                thread.join().map_err(panicked)?
            })
            .collect()
    })
}
