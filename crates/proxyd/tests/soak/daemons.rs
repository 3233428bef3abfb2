//! storaged and proxyd, the programs: started, killed, and gone at the end whatever
//! happens; and what they hold, as the kernel has it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use crate::GROWTH_BYTES_MAX;
use crate::model::Random;

/// Pipes and open objects that storaged keeps on purpose, and takes up again.
const STORAGED_SPARE: usize = 150;

/// Where clients come in.
#[derive(Clone)]
pub struct Target {
    pub tcp: SocketAddr,
    pub tls: SocketAddr,
    pub unix: PathBuf,
    pub config: Arc<ClientConfig>,
}

/// A process that does not outlive this one.
struct Process(Child);

impl Process {
    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.0), signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Daemons {
    storaged: Process,
    proxyd: Process,
    target: Target,
    metrics: SocketAddr,
    mode: &'static str,
    /// Goes last, after those who write into it.
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

fn start(mut command: Command, log: &Path) -> Process {
    use std::os::unix::process::CommandExt;
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
    command.arg("--data").arg(folder.join("data"));
    command.args(["--log-level", "warn", "--workers", "2", "--open-objects", "6", "--mode", mode]);
    let mut process = start(
        {
            command.stdout(Stdio::piped());
            command
        },
        &folder.join("storaged.log"),
    );
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
    pub fn start(random: &mut Random) -> Daemons {
        let builder = || tempfile::Builder::new().prefix("ntcopy-soak-").to_owned();
        let folder = builder().tempdir_in("/dev/shm").or_else(|_| builder().tempdir()).unwrap();
        let at = |name: &str| folder.path().join(name);
        let modes = ["auto", "copy", "adaptive", "nt", "sendfile", "vmsplice"];
        let mode = modes[random.below(modes.len() as u64) as usize];
        let storaged = start_storaged(folder.path(), mode);
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(at("cert"), made.cert.pem()).unwrap();
        fs::write(at("key"), made.signing_key.serialize_pem()).unwrap();
        let port = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            listener.local_addr().unwrap()
        };
        let (tcp, tls, metrics) = (port(), port(), port());
        let text = format!(
            "listen = [\"tcp:{tcp}\", \"unix:{}\"]\ntls-listen = [\"tcp:{tls}\"]\nktls = true\n\
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
        let proxyd = start(command, &at("proxyd.log"));
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(metrics).is_err() {
            assert!(Instant::now() < until, "proxyd does not start: {}", tail(&at("proxyd.log")));
            thread::sleep(Duration::from_millis(10));
        }
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(at("cert")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
        let target = Target { tcp, tls, unix: at("p.sock"), config };
        Daemons { storaged, proxyd, target, metrics, mode, folder }
    }

    pub fn target(&self) -> Target {
        self.target.clone()
    }

    /// Ends storaged as a crash would; it is back after that time.
    pub fn kill_storaged(&mut self, pause: Duration) {
        self.storaged.signal(Signal::KILL);
        let _ = self.storaged.0.wait();
        thread::sleep(pause);
        self.storaged = start_storaged(self.folder.path(), self.mode);
    }

    pub fn logs(&self) -> String {
        let log = |name: &str| tail(&self.folder.path().join(name));
        format!("proxyd:\n{}\nstoraged:\n{}", log("proxyd.log"), log("storaged.log"))
    }

    /// What proxyd and storaged hold.
    pub fn usage(&self) -> [Usage; 2] {
        [Usage::of(&self.proxyd, 0), Usage::of(&self.storaged, STORAGED_SPARE)]
    }

    /// A sample of proxyd's metrics, summed over its labels.
    pub fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: m\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let samples = text.lines().filter_map(|line| line.strip_prefix(name));
        let samples = samples.filter(|rest| rest.starts_with(['{', ' ']));
        samples.map(|rest| rest.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    /// Both end when they are asked to, and leave no socket behind.
    pub fn stop(mut self) {
        for process in [&mut self.proxyd, &mut self.storaged] {
            process.signal(Signal::TERM);
            assert!(process.0.wait().unwrap().success());
        }
        assert!(!self.target.unix.exists());
        let log = fs::read_to_string(self.folder.path().join("proxyd.log")).unwrap();
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// Descriptors by kind, and anonymous memory that is resident.
#[derive(Debug)]
pub struct Usage {
    kinds: BTreeMap<String, usize>,
    anon_bytes: u64,
    /// How many more of each kind there may be.
    spare: usize,
}

impl Usage {
    fn of(process: &Process, spare: usize) -> Usage {
        let pid = process.0.id();
        let mut kinds = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
            // It may be gone by now.
            let Ok(target) = fs::read_link(entry.unwrap().path()) else { continue };
            let target = target.to_string_lossy();
            let kind = target.split_once(':').map_or("file", |(kind, _)| kind);
            *kinds.entry(kind.to_owned()).or_default() += 1;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        Usage { kinds, anon_bytes: kib << 10, spare }
    }

    /// What of a later usage is more than it may be; empty if nothing is.
    pub fn excess(&self, later: &Usage) -> String {
        let mut excess = String::new();
        for (kind, is) in &later.kinds {
            let was = self.kinds.get(kind).copied().unwrap_or(0);
            if *is > was + self.spare {
                excess += &format!("{is} descriptors of the kind {kind}, and there were {was}; ");
            }
        }
        if later.anon_bytes > self.anon_bytes + GROWTH_BYTES_MAX {
            excess += &format!("{later}, and there were {} bytes; ", self.anon_bytes);
        }
        excess
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} bytes", self.kinds, self.anon_bytes)
    }
}
