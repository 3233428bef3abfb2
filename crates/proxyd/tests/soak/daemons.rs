//! storaged and proxyd, the programs: started, killed, reloaded, and gone at the end whatever
//! happens.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::random::Random;
use crate::wire::Target;

/// Objects that storaged keeps open; few, so that they come and go.
pub const OPEN_OBJECTS: usize = 6;
/// Workers of each daemon.
pub const WORKERS: usize = 2;
/// Pipes of a worker of proxyd; few, so that bodies are copied at times.
pub const PIPES: usize = 12;
/// A daemon is there, or gone, long before.
const PATIENCE: Duration = Duration::from_secs(60);

/// Processes and folders that may not be left behind.
#[derive(Debug, Default)]
struct Litter {
    processes: Vec<u32>,
    folders: Vec<PathBuf>,
}

static LITTER: Mutex<Litter> = Mutex::new(Litter { processes: Vec::new(), folders: Vec::new() });

fn litter() -> MutexGuard<'static, Litter> {
    LITTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has Ctrl-C, or a TERM, take the daemons and their folders along.
pub fn clean_up_when_told_to_end() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut signals = Signals::new([SIGINT, SIGTERM]).expect("signals can be caught");
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                // Held to the end: nothing is started any more.
                let litter = litter();
                for process in &litter.processes {
                    if let Some(pid) = Pid::from_raw(*process as i32) {
                        let _ = kill_process(pid, Signal::KILL);
                    }
                }
                for folder in &litter.folders {
                    let _ = fs::remove_dir_all(folder);
                }
                process::exit(130);
            }
        });
    });
}

/// A folder for all of it, in memory where there is such a place: it is the processes that die
/// here, not the machine.
#[derive(Debug)]
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        let builder = || tempfile::Builder::new().prefix("ntcopy-soak-").to_owned();
        let folder = builder().tempdir_in("/dev/shm").or_else(|_| builder().tempdir());
        let folder = folder.expect("a temporary folder");
        litter().folders.push(folder.path().to_owned());
        Place(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        litter().folders.retain(|folder| folder != self.0.path());
    }
}

/// A process that does not outlive this one.
#[derive(Debug)]
struct Process(Child);

impl Process {
    /// `command`, in a group of its own, so that Ctrl-C is this process's affair.
    fn start(command: &mut Command, log: &Path) -> Process {
        let log = fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        command.process_group(0).stdin(Stdio::null()).stderr(log).env("NO_COLOR", "1");
        let mut litter = litter();
        let child = command.spawn().expect("the daemon's program");
        litter.processes.push(child.id());
        Process(child)
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.0), signal);
    }

    fn wait(&mut self) -> Option<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(2));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut litter = litter();
        let _ = self.0.kill();
        let _ = self.0.wait();
        litter.processes.retain(|process| *process != self.0.id());
    }
}

/// storaged's program, made if it isn't there: Cargo builds only this package's own for its tests.
pub fn storaged_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let profile = Path::new(env!("CARGO_BIN_EXE_proxyd")).parent().expect("its folder");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "-q", "--locked", "-p", "storaged", "--target-dir"]);
        cargo.arg(profile.parent().expect("the target folder"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo, which runs this test").success());
        profile.join("storaged")
    })
}

/// The object store.
#[derive(Debug)]
pub struct Storaged {
    process: Process,
    folder: PathBuf,
    tcp: SocketAddr,
}

impl Storaged {
    /// A store in that folder. The port is chosen once, and kept.
    ///
    /// # Errors
    ///
    /// It does not start; what it says.
    pub fn start(folder: &Path, tcp: SocketAddr, random: &mut Random) -> Result<Storaged, String> {
        let log = folder.join("storaged.log");
        let mut command = Command::new(storaged_program());
        command.env_remove("STORAGED_FAULT");
        command.arg("--listen").arg(format!("unix:{}", folder.join("b.sock").display()));
        command.arg("--listen").arg(format!("tcp:{tcp}"));
        command.arg("--data").arg(folder.join("data"));
        command.args(["--log-level", "warn", "--disk-threads", "3"]);
        command.args(["--workers", &WORKERS.to_string()]);
        command.args(["--open-objects", &OPEN_OBJECTS.to_string()]);
        let modes = ["auto", "auto", "copy", "adaptive", "nt", "sendfile", "vmsplice"];
        command.args(["--mode", *random.pick(&modes)]);
        if random.once_in(3) {
            command.args(["--verify", "always"]);
        }
        let mut process = Process::start(command.stdout(Stdio::piped()), &log);
        let out = process.0.stdout.take().expect("its output is a pipe");
        let lines = BufReader::new(out).lines().take(2).filter(Result::is_ok).count();
        if lines < 2 {
            return Err(format!("storaged does not start: {}", tail(&log)));
        }
        Ok(Storaged { process, folder: folder.to_owned(), tcp })
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Both ways to it.
    pub fn target(&self) -> Target {
        let unix = Some(self.folder.join("b.sock"));
        Target { tcp: Some(self.tcp), unix, tls: None }
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) {
        self.process.signal(Signal::KILL);
        let _ = self.process.wait();
    }

    /// Objects on their way in, which are none at rest.
    pub fn temporaries(&self) -> usize {
        fs::read_dir(self.folder.join("data/temporary")).map_or(0, Iterator::count)
    }

    /// What `storaged fsck` says, if it is not content.
    pub fn fsck(folder: &Path) -> Result<(), String> {
        let output = Command::new(storaged_program()).arg("fsck").arg(folder.join("data")).output();
        let output = output.map_err(|error| format!("storaged fsck: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("fsck: {}", String::from_utf8_lossy(&output.stdout))),
        }
    }
}

/// A port that no process has, below those that the kernel gives to connections: a connection to
/// a backend that is away could get the backend's own port, and be connected to itself.
pub fn free_port(random: &mut Random) -> SocketAddr {
    loop {
        let address =
            SocketAddr::from((Ipv4Addr::LOCALHOST, random.between(15_000, 32_000) as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// The proxy.
#[derive(Debug)]
pub struct Proxyd {
    process: Process,
    folder: PathBuf,
    certificate: String,
    pub target: Target,
    pub metrics: SocketAddr,
}

impl Proxyd {
    /// A proxy before that store, whether it is there or not.
    ///
    /// # Errors
    ///
    /// It does not start; what it says.
    pub fn start(folder: &Path, backend: &Storaged) -> Result<Proxyd, String> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.map_err(|error| error.to_string())?;
        let write = |name: &str, text: String| {
            fs::write(folder.join(name), text).map_err(|error| error.to_string())
        };
        let certificate = made.cert.pem();
        write("cert.pem", certificate.clone())?;
        write("key.pem", made.signing_key.serialize_pem())?;
        let backends =
            [format!("unix:{}", folder.join("b.sock").display()), format!("tcp:{}", backend.tcp)];
        write("proxyd.toml", settings(folder, &backends))?;
        let log = folder.join("proxyd.log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_proxyd"));
        command.env_remove("PROXYD_LOG").arg("--config").arg(folder.join("proxyd.toml"));
        let process = Process::start(command.stdout(Stdio::null()), &log);
        let (tcp, tls, metrics) = addresses(&log)?;
        let unix = Some(folder.join("p.sock"));
        let target = Target { tcp: Some(tcp), unix, tls: Some((tls, tls_client(folder)?)) };
        Ok(Proxyd { process, folder: folder.to_owned(), certificate, target, metrics })
    }

    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Has it read its files again; at times the certificate is none, or the log was moved away.
    pub fn reload(&self, random: &mut Random) {
        if random.once_in(3) {
            let (log, moved) = (self.folder.join("access.log"), self.folder.join("access.log.1"));
            let _ = fs::rename(log, moved);
        }
        let text = if random.once_in(6) { "none" } else { &self.certificate };
        // Never half a file.
        let new = self.folder.join("cert.pem.new");
        if fs::write(&new, text).is_ok() && fs::rename(&new, self.folder.join("cert.pem")).is_ok() {
            self.process.signal(Signal::HUP);
        }
    }

    /// Stops it gracefully.
    ///
    /// # Errors
    ///
    /// It doesn't end, or not well.
    pub fn stop(mut self) -> Result<(), String> {
        self.process.signal(Signal::TERM);
        match self.process.wait() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("proxyd ended with {status}")),
            None => Err("proxyd does not end".to_owned()),
        }
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        tail(&self.folder.join("proxyd.log"))
    }
}

/// Short time-outs, so that what misbehaves is done with within the soak; long enough for who
/// behaves on a machine that has no time. All together, over all tries, they stay below
/// [`FORGOTTEN`](crate::model::FORGOTTEN).
fn settings(folder: &Path, backends: &[String]) -> String {
    let folder = folder.display();
    format!(
        "listen = [\"tcp:127.0.0.1:0\", \"unix:{folder}/p.sock\"]\n\
         tls_listen = [\"tcp:127.0.0.1:0\"]\n\
         backends = {backends:?}\n\
         workers = {WORKERS}\n\
         metrics = \"tcp:127.0.0.1:0\"\n\
         access_log = \"{folder}/access.log\"\n\
         [tls]\ncertificate = \"{folder}/cert.pem\"\nkey = \"{folder}/key.pem\"\n\
         [timeouts]\nheader_ms = 2000\nbody_idle_ms = 5000\nconnect_ms = 1000\n\
         backend_header_ms = 5000\nbackend_idle_ms = 500\nlinger_ms = 300\n\
         [limits]\npipes = {PIPES}\npipe_bytes = 262144\nsplice_min_bytes = 16384\n\
         tries = 3\n\
         [edge]\nlists = true\n\
         [health]\ndown_ms = 100\n"
    )
}

/// Where it says that it listens: plain, TLS, metrics.
fn addresses(log: &Path) -> Result<(SocketAddr, SocketAddr, SocketAddr), String> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let text = fs::read_to_string(log).unwrap_or_default();
        let tcp: Vec<SocketAddr> = text
            .lines()
            .filter_map(|line| line.split_once("address=tcp:")?.1.trim().parse().ok())
            .collect();
        if let [plain, tls, metrics, ..] = tcp[..] {
            return Ok((plain, tls, metrics));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Err(format!("proxyd does not start: {}", tail(log)))
}

fn tls_client(folder: &Path) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem"));
    roots
        .add(certificate.map_err(|error| error.to_string())?)
        .map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
