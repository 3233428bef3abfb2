//! A daemon of one's own, and a client that shows everything that came.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use httpd::Address;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use crate::peer::process::Process;
pub use crate::peer::{Peer, eventually, in_chunks, samples};

pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_storaged"));
    command.env_remove("STORAGED_FAULT");
    command
}

/// A folder for a daemon: in memory where there is such a place, since most tests ask what is
/// there after a crash of the process, not of the machine, and would wait for a disk for nothing.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

pub struct Daemon {
    pub process: Process,
    pub dir: PathBuf,
    pub unix: PathBuf,
    tcp: Option<Address>,
    pub metrics: Address,
    log: PathBuf,
}

impl Daemon {
    /// A daemon for `dir/data`.
    pub fn start(dir: &Path, args: &[&str]) -> Daemon {
        Daemon::start_with(dir, args, |_| {})
    }

    /// One that STORAGED_FAULT has die or fail.
    pub fn start_with_fault(dir: &Path, fault: &str) -> Daemon {
        Daemon::start_with(dir, &[], |command| {
            command.env("STORAGED_FAULT", fault);
        })
    }

    /// That, or `None` if it does not start.
    pub fn try_start_with_fault(dir: &Path, fault: &str) -> Option<Daemon> {
        Daemon::try_start_with(dir, &[], |command| {
            command.env("STORAGED_FAULT", fault);
        })
        .ok()
    }

    /// One that may have only so much of something.
    pub fn start_limited(dir: &Path, what: Resource, most: u64) -> Daemon {
        Daemon::start_with(dir, &[], |command| {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            let set = move || setrlimit(what, limit).map_err(Into::into);
            // SAFETY: between fork and exec only a system call is made.
            unsafe { command.pre_exec(set) };
        })
    }

    pub fn start_with(dir: &Path, args: &[&str], change: impl FnOnce(&mut Command)) -> Daemon {
        Daemon::try_start_with(dir, args, change)
            .unwrap_or_else(|log| panic!("the daemon did not start: {log}"))
    }

    /// That, or the log of one that does not start.
    pub fn try_start_with(
        dir: &Path,
        args: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Result<Daemon, String> {
        let unix = dir.join("socket");
        let log = dir.join("log");
        let stderr = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut command = program();
        command
            .arg("--listen")
            .arg(format!("unix:{}", unix.display()))
            .arg("--data")
            .arg(dir.join("data"))
            .args(["--log-level", "debug", "--metrics", "tcp:127.0.0.1:0"])
            .args(if args.contains(&"--workers") { &[][..] } else { &["--workers", "2"] })
            .args(args)
            .stdout(Stdio::piped())
            .stderr(stderr);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (dir, metrics) = (dir.to_owned(), Address::Unix(unix.clone()));
        let process = Process(child);
        let mut daemon = Daemon { process, dir, unix, tcp: None, metrics, log };
        let tcp = args.iter().any(|arg| arg.starts_with("tcp:"));
        for _ in 0..2 + usize::from(tcp) {
            let Some(Ok(line)) = lines.next() else {
                daemon.process.wait();
                return Err(daemon.log());
            };
            if let Some(address) = line.strip_prefix("listening on tcp:") {
                daemon.tcp = Some(address.parse().unwrap());
            }
            if let Some(address) = line.strip_prefix("metrics on ") {
                daemon.metrics = address.parse().unwrap();
            }
        }
        Ok(daemon)
    }

    /// Ticks of a CPU that it has used, a hundredth of a second each.
    pub fn cpu_ticks(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.process.0.id())).unwrap();
        let fields = text.rsplit(')').next().unwrap().split_whitespace().skip(11);
        fields.take(2).map(|field| field.parse::<u64>().unwrap()).sum()
    }

    pub fn client(&self) -> Peer {
        Peer::connect(&Address::Unix(self.unix.clone()))
    }

    pub fn tcp_client(&self) -> Peer {
        Peer::connect(self.tcp.as_ref().unwrap())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Ends it as a service manager would.
    pub fn stop(mut self) {
        self.process.signal(Signal::TERM);
        assert!(self.process.wait().success(), "{}", self.log());
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) {
        self.process.kill();
    }

    /// What it counted.
    pub fn stat(&self) -> HashMap<String, u64> {
        samples(Peer::connect(&self.metrics).get("/metrics").text(), "storaged_")
    }

    /// Waits until it has counted what is expected: an answer is counted after it was sent.
    pub fn wait_for_stat(&self, is_so: impl Fn(&HashMap<String, u64>) -> bool) {
        eventually("it counts what is expected", || is_so(&self.stat()));
    }

    /// Files of objects, those included that are on their way in.
    pub fn blobs(&self) -> usize {
        fs::read_dir(self.data().join("blobs")).unwrap().count()
    }

    /// Waits until there are so many: what is cut off is removed by a thread.
    pub fn wait_for_blobs(&self, files: usize, what: &str) {
        eventually(&format!("{what}: {files} files"), || self.blobs() == files);
    }

    /// The list of all objects.
    pub fn list(&self) -> Vec<serde_json::Value> {
        let list: serde_json::Value = serde_json::from_slice(&self.client().get("/").body).unwrap();
        list["objects"].as_array().unwrap().clone()
    }
}

/// Bytes that differ from place to place, and from seed to seed.
pub fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}
