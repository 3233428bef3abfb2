//! The daemon: what its workers share, and how it begins and ends.

use std::future::Future;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use httpd::metrics::Text;
use httpd::{Conn, Server, Service, Signals, raise_file_limit};
use ntcopy::socket::Support;
use rustix::fs::Access;

use crate::answer::Asked;
use crate::config::Config;
use crate::send::Mode;
use crate::session::session;
use crate::shared::{Counters, DISK, LISTS, Shared, Worker};
use crate::store::{self, INDEX, Store};

/// Descriptors for everything but connections and open objects.
const OTHER_FILES: u64 = 512;

impl Service for Shared {
    type Worker = Worker;
    const NAME: &'static str = "storaged";

    fn worker(self: &Arc<Shared>, index: usize) -> Worker {
        Worker { shared: Arc::clone(self), index }
    }

    fn serve(worker: Rc<Worker>, conn: Conn) -> impl Future<Output = ()> + 'static {
        session(worker, conn)
    }

    fn no_room(&self, _: usize) -> Vec<u8> {
        let asked = Asked { is_head: false, keep_alive: false };
        asked.error(503, "no room for another connection; try again").head
    }

    fn report(&self, text: &mut Text) {
        Counters::tell(self.counters.iter(), text);
        let hints = u8::from(self.hints != Support::None);
        let help = "1 if the kernel takes MSG_NTCOPY; if 0, nt copies.";
        text.family("gauge", "hints", help, hints);
    }
}

/// Whether the folder that the settings name holds a store that this user may write.
pub fn check(config: &Config) -> anyhow::Result<()> {
    let index = config.data.join(INDEX);
    let found = rustix::fs::access(&index, Access::READ_OK | Access::WRITE_OK);
    found.with_context(|| {
        format!("{} holds no store that this user may write: {INDEX}", config.data.display())
    })
}

/// Makes an empty store; nothing is done to one that is there.
pub fn create(config: &Config) -> anyhow::Result<()> {
    let is_new = store::create(&config.data)?;
    let word = if is_new { "made" } else { "there already" };
    writeln!(io::stdout(), "{}: {word}", config.data.display())
        .context("cannot write to standard output")
}

/// Makes an index anew, and says what it does not name.
pub fn rebuild(config: &Config) -> anyhow::Result<()> {
    let rebuilt = store::rebuild(&config.data)?;
    let lines =
        rebuilt.unnamed.iter().map(|(file, why)| format!("lost/{}: {why}\n", file.display()));
    let text = format!(
        "{}the index of {} names {} objects\n",
        lines.collect::<String>(),
        config.data.display(),
        rebuilt.objects
    );
    io::stdout().write_all(text.as_bytes()).context("cannot write to standard output")?;
    match rebuilt.unnamed.len() {
        0 => Ok(()),
        files => bail!("{files} files could not be named, and are in lost/"),
    }
}

/// Serves until a signal comes, then ends what is in flight; a second one ends it at once.
///
/// When every address is listened on they are printed on standard output, a line each:
/// `listening on …`, `metrics on …`.
pub fn serve(config: Config) -> anyhow::Result<()> {
    let signals = Signals::catch().context("cannot catch signals")?;
    // A folder that a file names is a service's: if it isn't there, a disk is not mounted.
    if config.options.config.is_none() && !config.data.exists() {
        store::create(&config.data)?;
    }
    let store = Store::open(&config.data, open_objects(&config))?;
    let shared = Arc::new(Shared::new(config, store));
    say_what_is_missing(&shared);
    let config = &shared.config;
    let doors = config.options.doors()?;
    let mut options = config.options.clone();
    options.blocking_threads = 3 * DISK + LISTS;
    let server = Server::start(Arc::clone(&shared), &doors, options)?;
    announce(&server).context("cannot write to standard output")?;
    signals.obey(server, || {}).context("cannot wait for signals")
}

fn announce(server: &Server) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for address in &server.addresses {
        writeln!(out, "listening on {address}")?;
    }
    if let Some(address) = &server.metrics_address {
        writeln!(out, "metrics on {address}")?;
    }
    out.flush()
}

fn say_what_is_missing(shared: &Shared) {
    let mode = shared.config.mode;
    let hinted = mode == Mode::Nt;
    match (shared.hints, hinted) {
        (Support::None, true) => {
            let why = ntcopy::socket::other_series().map_or_else(
                || "this kernel does not know MSG_NTCOPY".to_owned(),
                |other| other.to_string(),
            );
            tracing::warn!("--mode {mode:?}: {why}; bodies are copied normally");
        }
        (support, _) => tracing::info!(hints = support.name(), ?mode, "sending"),
    }
}

/// As many objects as may stay open where that leaves enough to others.
fn open_objects(config: &Config) -> NonZeroUsize {
    let mut objects = usize::from(config.open_objects);
    let wanted = (config.options.connections_max + objects) as u64 + OTHER_FILES;
    if let Some(maximum) = raise_file_limit().filter(|maximum| *maximum < wanted) {
        tracing::warn!(
            maximum,
            wanted,
            "fewer open files are allowed than connections and objects may take: beyond it clients \
             wait"
        );
        objects = objects.min(maximum.saturating_sub(OTHER_FILES).max(maximum / 4) as usize);
    }
    NonZeroUsize::new(objects).unwrap_or(NonZeroUsize::MIN)
}
