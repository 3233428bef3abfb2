//! Threads that wait for the disk, so that workers don't.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::slab::Id;

/// Results for one worker, and the eventfd that wakes it.
#[derive(Debug)]
pub struct Mailbox<T> {
    letters: Mutex<Vec<(Id, T)>>,
    bell: OwnedFd,
}

impl<T> Mailbox<T> {
    pub fn new() -> Result<Mailbox<T>, Errno> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Mailbox { letters: Mutex::default(), bell })
    }

    pub fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    pub fn post(&self, id: Id, letter: T) {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push((id, letter));
        self.ring();
    }

    pub fn ring(&self) {
        // Full (EAGAIN) is as good as rung.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub fn take(&self) -> Vec<(Id, T)> {
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// Jobs that wait, and their threads. No connection has more than one job, so the queue is as
/// bounded as the connections are.
pub struct Jobs {
    queue: Arc<(Mutex<Queue>, Condvar)>,
    threads: Vec<JoinHandle<()>>,
}

impl Jobs {
    pub fn start(name: &str, threads: usize) -> std::io::Result<Jobs> {
        let queue = Arc::new((Mutex::new(Queue::default()), Condvar::new()));
        let threads = (0..threads.max(1))
            .map(|at| {
                let queue = Arc::clone(&queue);
                thread::Builder::new().name(format!("{name}-{at}")).spawn(move || work(&queue))
            })
            .collect::<Result<_, _>>()?;
        Ok(Jobs { queue, threads })
    }

    pub fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let (queue, more) = &*self.queue;
        queue.lock().unwrap_or_else(PoisonError::into_inner).jobs.push_back(Box::new(job));
        more.notify_one();
    }
}

impl Drop for Jobs {
    /// Does what is queued, and ends the threads.
    fn drop(&mut self) {
        let (queue, more) = &*self.queue;
        queue.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        more.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(queue: &(Mutex<Queue>, Condvar)) {
    let (queue, more) = queue;
    loop {
        let mut waiting = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let job = loop {
            if let Some(job) = waiting.jobs.pop_front() {
                break job;
            }
            if waiting.closed {
                return;
            }
            waiting = more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        };
        drop(waiting);
        job();
    }
}
