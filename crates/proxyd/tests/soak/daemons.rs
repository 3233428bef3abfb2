//! storaged and proxyd, the programs: started, killed, and gone at the end whatever happens; and
//! what they hold.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fs, thread};

use httpd::Address;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustls::{ALL_VERSIONS, ClientConfig};
use tempfile::TempDir;

use crate::over_tls::{certify, trust};
use crate::peer::process::Process;
use crate::peer::{Peer, samples};

const MODES: [&str; 4] = ["auto", "copy", "nt", "sendfile"];

/// Where clients come in.
#[derive(Clone)]
pub struct Target {
    pub tcp: SocketAddr,
    pub tls: SocketAddr,
    pub unix: PathBuf,
    pub config: Arc<ClientConfig>,
}

pub struct Daemons {
    storaged: Process,
    proxyd: Process,
    pub target: Target,
    metrics: Address,
    mode: &'static str,
    /// Goes after those who write into it.
    folder: TempDir,
}

/// storaged's program, made if it isn't there: Cargo builds only this package's own for its tests.
fn storaged_program() -> &'static Path {
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

/// It does not outlive this process.
fn start(mut command: Command, log: &Path) -> Process {
    let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
    command.stdin(Stdio::null()).stderr(log);
    // SAFETY: prctl allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    Process(command.spawn().expect("the daemon's program"))
}

fn start_storaged(folder: &Path, mode: &str) -> Process {
    let mut command = Command::new(storaged_program());
    command.arg("--listen").arg(format!("unix:{}", folder.join("b.sock").display()));
    command.arg("--data").arg(folder.join("data")).stdout(Stdio::piped());
    command.args(["--log-level", "warn", "--workers", "2", "--open-objects", "6", "--mode", mode]);
    let mut process = start(command, &folder.join("storaged.log"));
    let out = process.0.stdout.take().expect("its output is a pipe");
    let started = BufReader::new(out).lines().next().is_some_and(|line| line.is_ok());
    assert!(started, "storaged does not start: {}", tail(&folder.join("storaged.log")));
    process
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().rev().take(20).collect::<Vec<_>>().join("\n")
}

impl Daemons {
    pub fn start(random: &mut fastrand::Rng) -> Daemons {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = MODES[random.usize(..MODES.len())];
        let storaged = start_storaged(folder.path(), mode);
        certify(&at("cert"), &at("key"));
        let port = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let (tcp, tls, metrics) = (port(), port(), port());
        let text = format!(
            "listen = [\"tcp:{tcp}\", \"unix:{}\"]\ntls-listen = [\"tcp:{tls}\"]\n\
             backend = \"unix:{}\"\nworkers = 2\nmetrics = \"tcp:{metrics}\"\n\
             certificate = {:?}\nkey = {:?}\nhead-timeout = 2\nbody-timeout = 3\n\
             connect-timeout = 1\nanswer-timeout = 5\nbackend-idle-timeout = 2\npipes = 12\n",
            at("p.sock").display(),
            at("b.sock").display(),
            at("cert"),
            at("key"),
        );
        fs::write(at("p.toml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_proxyd"));
        command.arg("--config").arg(at("p.toml"));
        let mut proxyd = start(command, &at("proxyd.log"));
        while TcpStream::connect(metrics).is_err() {
            assert!(proxyd.0.try_wait().unwrap().is_none(), "{}", tail(&at("proxyd.log")));
            thread::sleep(Duration::from_millis(10));
        }
        let config = trust(&at("cert"), ALL_VERSIONS);
        let target = Target { tcp, tls, unix: at("p.sock"), config };
        let metrics = Address::Tcp(metrics);
        Daemons { storaged, proxyd, target, metrics, mode, folder }
    }

    /// Ends storaged as a crash would; it is back after that time.
    pub fn kill_storaged(&mut self, pause: Duration) {
        self.storaged.kill();
        thread::sleep(pause);
        self.storaged = start_storaged(self.folder.path(), self.mode);
    }

    pub fn logs(&self) -> String {
        let log = |name: &str| tail(&self.folder.path().join(name));
        format!("proxyd:\n{}\nstoraged:\n{}", log("proxyd.log"), log("storaged.log"))
    }

    /// Descriptors and bytes of memory of proxyd and storaged.
    pub fn held(&self) -> [(usize, u64); 2] {
        [&self.proxyd, &self.storaged].map(|one| (one.descriptors(), one.resident_bytes()))
    }

    /// One of proxyd's metrics.
    pub fn metric(&self, name: &str) -> u64 {
        samples(Peer::connect(&self.metrics).get("/metrics").text(), "proxyd_")[name]
    }

    /// Both end when they are asked to, and leave no socket behind.
    pub fn stop(mut self) {
        for process in [&mut self.proxyd, &mut self.storaged] {
            process.signal(Signal::TERM);
            assert!(process.wait().success());
        }
        assert!(!self.target.unix.exists());
        let log = fs::read_to_string(self.folder.path().join("proxyd.log")).unwrap();
        assert!(!log.contains("panicked"), "{log}");
    }
}
