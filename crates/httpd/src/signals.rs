//! What a daemon does about signals, and its limit of descriptors.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::server::Server;
use crate::ticket::Stop;

/// Signals that are caught from now on.
#[derive(Debug)]
pub struct Signals(signal_hook::iterator::Signals);

impl Signals {
    /// Before the server starts, so that none is lost. A peer that is gone, and a file that grows
    /// beyond the process's limit, are errors of a write from now on, not a death.
    pub fn catch() -> io::Result<Signals> {
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            // SAFETY: ignoring a signal runs no code of ours in a handler.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP]).map(Signals)
    }

    /// Until the server has ended: SIGTERM and SIGINT end it, a second one at once; SIGHUP is for
    /// `reload`.
    pub fn obey(mut self, mut server: Server, mut reload: impl FnMut()) -> io::Result<()> {
        let (threads, waiting) = (std::mem::take(&mut server.threads), self.0.handle());
        let waiter = std::thread::Builder::new().name("waiter".to_owned()).spawn(move || {
            for thread in threads {
                let _ = thread.join();
            }
            waiting.close();
        })?;
        tell(&[NotifyState::Ready]);
        let mut stopping = false;
        for signal in &mut self.0 {
            if signal == SIGHUP {
                tell(&[NotifyState::Reloading]);
                reload();
                tell(&[NotifyState::Ready]);
            } else if stopping {
                tracing::warn!("a second signal: ending at once");
                server.stop(Stop::Now);
            } else {
                tracing::info!("ending: no new connections, and what is in flight gets its time");
                stopping = true;
                tell(&[NotifyState::Stopping]);
                server.stop(Stop::Graceful);
            }
        }
        let _ = waiter.join();
        tracing::info!("ended");
        Ok(())
    }
}

/// Tells systemd, where that has started this and wants to know.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager can't be told");
    }
}

/// As many descriptors as this process may have; says how many.
pub fn raise_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(errno) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%errno, "cannot raise the limit of open files");
        return limit.current;
    }
    limit.maximum
}
