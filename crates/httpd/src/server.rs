//! Workers: where connections are accepted, how many, and how all of it ends.

mod accept;

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task;

use crate::address::Address;
use crate::conn::Conn;
use crate::handed;
use crate::listen::{SocketFile, listen};
use crate::metrics::Text;
use crate::options::Options;
use crate::ticket::{Core, Stop};
use accept::{Accepting, Listener};

pub trait Service: Send + Sync + 'static {
    /// What the sessions of one worker share.
    type Worker: 'static;

    /// What the names of its metrics begin with.
    const NAME: &'static str;

    /// Called in the worker's own thread.
    fn worker(self: &Arc<Self>, index: usize) -> Self::Worker;

    /// A session, from a connection's first byte to its end.
    fn serve(worker: Rc<Self::Worker>, conn: Conn) -> impl Future<Output = ()> + 'static;

    /// What a client hears for which there is no room; nothing if it is empty.
    fn no_room(&self, _door: usize) -> Vec<u8> {
        Vec::new()
    }

    /// Adds what it counts of its own.
    fn report(&self, text: &mut Text);
}

/// A running server. Dropped, it stops at once.
pub struct Server {
    core: Arc<Core>,
    /// Where it listens, in the order of its doors, with the ports that were found.
    pub addresses: Vec<Address>,
    pub metrics_address: Option<Address>,
    files: Mutex<Vec<SocketFile>>,
    pub(crate) threads: Vec<JoinHandle<()>>,
}

impl Server {
    pub fn start<S: Service>(
        service: Arc<S>,
        doors: &[Address],
        options: Options,
    ) -> anyhow::Result<Server> {
        let reporter = Arc::clone(&service);
        let report = Box::new(move |text: &mut Text| reporter.report(text));
        let core = Arc::new(Core::new(options, S::NAME, report));
        let mut listeners: Vec<Vec<Listener>> = core.workers.iter().map(|_| Vec::new()).collect();
        let (mut addresses, mut files) = (Vec::new(), Vec::new());
        let all: Vec<_> = doors.iter().cloned().chain(core.options.metrics()?).collect();
        handed::all_are_among(&all)?;
        for (at, door) in all.iter().enumerate() {
            // That of the metrics is one worker's, and no connection of it counts.
            let counted = at < doors.len();
            let workers = if counted { core.workers.len() } else { 1 };
            let listening = listen(door, workers)?;
            for (listeners, socket) in listeners.iter_mut().zip(listening.sockets) {
                let tcp = matches!(door, Address::Tcp(_));
                let outlives = listening.outlives;
                listeners.push(Listener { door: at, tcp, counted, outlives, socket });
            }
            addresses.push(listening.address);
            files.extend(listening.file);
        }
        let metrics_address = addresses.get(doors.len()).cloned();
        addresses.truncate(doors.len());
        let (files, threads) = (Mutex::new(files), Vec::new());
        let mut server = Server { core, addresses, metrics_address, files, threads };
        server.start_workers(&service, listeners)?;
        Ok(server)
    }

    fn start_workers<S: Service>(
        &mut self,
        service: &Arc<S>,
        listeners: Vec<Vec<Listener>>,
    ) -> anyhow::Result<()> {
        let (started, starts) = channel();
        let workers = listeners.len();
        for (index, listeners) in listeners.into_iter().enumerate() {
            let (core, service) = (Arc::clone(&self.core), Arc::clone(service));
            let worker = WorkerThread { core, index, service, started: started.clone() };
            let thread = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || worker.run(listeners))
                .context("cannot start a worker's thread")?;
            self.threads.push(thread);
        }
        for result in starts.iter().take(workers) {
            result.context("cannot set up a worker")?;
        }
        Ok(())
    }

    pub fn metrics(&self) -> String {
        self.core.metrics()
    }

    pub fn stop(&self, stop: Stop) {
        // A socket that has no name can't be connected to.
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.core.stop.send_replace(Some(stop));
    }

    pub fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Stop::Now);
        self.join();
    }
}

/// A worker's thread.
struct WorkerThread<S> {
    core: Arc<Core>,
    index: usize,
    service: Arc<S>,
    /// Hears whether the worker could be set up.
    started: Sender<io::Result<()>>,
}

impl<S: Service> WorkerThread<S> {
    fn run(&self, listeners: Vec<Listener>) {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(self.core.options.blocking_threads.max(1))
            .thread_name(format!("blocking-{}", self.index))
            .build_local(LocalOptions::default());
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(self.started.send(Err(error))),
        };
        runtime.block_on(async {
            match self.accept(listeners) {
                Ok(accepting) => {
                    let _ = self.started.send(Ok(()));
                    self.until_stopped(accepting).await;
                }
                Err(error) => drop(self.started.send(Err(error))),
            }
        });
        // What a disk does not answer is not waited for.
        runtime.shutdown_background();
    }

    /// Has tasks of this thread accept connections.
    fn accept(&self, listeners: Vec<Listener>) -> io::Result<Vec<task::JoinHandle<()>>> {
        let worker = Rc::new(self.service.worker(self.index));
        let mut tasks = Vec::new();
        for listener in listeners {
            let (shared, interest) = (Arc::clone(&listener.socket), Interest::READABLE);
            // SAFETY: the descriptor is the one that the shared owner keeps open.
            let watched = unsafe { AsyncFd::register_with_interest(shared, interest) }?;
            let accepting = Accepting {
                core: Arc::clone(&self.core),
                index: self.index,
                service: Arc::clone(&self.service),
                worker: Rc::clone(&worker),
                listener,
            };
            tasks.push(task::spawn_local(accepting.accept(watched)));
        }
        Ok(tasks)
    }

    /// Serves until it is asked to end, and what is in flight is done or its time is over.
    async fn until_stopped(&self, accepting: Vec<task::JoinHandle<()>>) {
        let mut stop = self.core.stop.subscribe();
        let _ = stop.wait_for(Option::is_some).await;
        let until = tokio::time::Instant::now() + self.core.options.drain_timeout;
        for task in accepting {
            let _ = task.await;
        }
        let worker = &self.core.workers[self.index];
        let all_closed = async {
            while worker.counts.open.get() > 0 {
                worker.closed.notified().await;
            }
        };
        tokio::select! {
            () = all_closed => {}
            _ = stop.wait_for(|stop| *stop == Some(Stop::Now)) => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }
}
