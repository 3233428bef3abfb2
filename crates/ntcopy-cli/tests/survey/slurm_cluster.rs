//! A Slurm cluster for one test: real `munged`, `slurmctld` and `slurmd` of the distribution's
//! packages, two node names on this machine and a third that no daemon answers for; in a folder of
//! its own, ended and removed in the end.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long the daemons may take to begin.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running cluster; its name is `ntcopytest`, its nodes `n1`, `n2`, and `n3`, which is not there.
pub struct Cluster {
    folder: tempfile::TempDir,
    /// In the order in which they were started.
    daemons: Vec<Child>,
}

/// A port that is free now.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Cluster {
    /// Starts it. Takes root: the daemons start tasks as other users.
    pub fn start() -> Cluster {
        for program in ["/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd"] {
            assert!(Path::new(program).exists(), "no {program}: scripts/setup.sh survey");
        }
        assert!(rustix::process::geteuid().is_root(), "slurmctld and slurmd take root");
        let folder = tempfile::Builder::new().prefix("ntcopy-slurm-").tempdir().unwrap();
        let mut cluster = Cluster { folder, daemons: Vec::new() };
        cluster.munge();
        cluster.configure();
        cluster.daemon("/usr/sbin/slurmctld", &["-D", "-c"]);
        for node in ["n1", "n2"] {
            cluster.daemon("/usr/sbin/slurmd", &["-D", "-N", node]);
        }
        cluster.wait();
        cluster
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// With a key and a socket of its own: no job of another cluster gets in.
    fn munge(&mut self) {
        let folder = self.path("munge");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let random = fs::File::open("/dev/urandom").unwrap();
        let mut key = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(random, 128), &mut key).unwrap();
        fs::write(format!("{folder}/key"), key).unwrap();
        fs::set_permissions(format!("{folder}/key"), fs::Permissions::from_mode(0o400)).unwrap();
        let files: Vec<String> = [("key-file", "key"), ("socket", "socket"), ("pid-file", "pid")]
            .into_iter()
            .chain([("log-file", "log"), ("seed-file", "seed")])
            .map(|(option, name)| format!("--{option}={folder}/{name}"))
            .collect();
        let mut words = vec!["--foreground", "--force"];
        words.extend(files.iter().map(String::as_str));
        self.daemon("/usr/sbin/munged", &words);
        let until = Instant::now() + PATIENCE;
        while !Path::new(&format!("{folder}/socket")).exists() {
            assert!(Instant::now() < until, "munged: {}", self.log("munged"));
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn configure(&self) {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host = host.split('.').next().unwrap_or("localhost");
        let mut text = format!(
            "ClusterName=ntcopytest\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\n\
             SlurmdUser=root\nAuthType=auth/munge\nAuthInfo=socket={}\nSlurmctldPort={}\n\
             StateSaveLocation={}\nSlurmdSpoolDir={}\nSlurmctldPidFile={}\nSlurmdPidFile={}\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_Core_Memory\nReturnToService=2\nMpiDefault=none\n",
            self.path("munge/socket"),
            port(),
            self.path("state"),
            self.path("spool.%n"),
            self.path("slurmctld.pid"),
            self.path("slurmd.%n.pid"),
        );
        for node in ["n1", "n2", "n3"] {
            text.push_str(&format!(
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=2 \
                 RealMemory=1000\n",
                port()
            ));
        }
        text.push_str("PartitionName=main Nodes=ALL Default=YES State=UP\n");
        fs::create_dir(self.path("state")).unwrap();
        fs::write(self.path("slurm.conf"), text).unwrap();
    }

    fn daemon(&mut self, program: &str, words: &[&str]) {
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        let log = fs::File::options().create(true).append(true).open(self.path(name)).unwrap();
        let mut command = Command::new(program);
        command.args(words).env("SLURM_CONF", self.conf()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(command.spawn().unwrap());
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The file that makes Slurm's programs speak to this cluster.
    pub fn conf(&self) -> String {
        self.path("slurm.conf")
    }

    /// Runs one of Slurm's programs.
    pub fn ask(&self, program: &str, words: &[&str]) -> String {
        let mut command = Command::new(program);
        let output = command.args(words).env("SLURM_CONF", self.conf()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn wait(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let states = self.ask("sinfo", &["--noheader", "--Node", "--format=%N %T"]);
            if states.contains("n1 idle\n") && states.contains("n2 idle\n") {
                return;
            }
            let logs = || format!("{}\n{}", self.log("slurmctld"), self.log("slurmd"));
            assert!(Instant::now() < until, "not two idle nodes: {states}\n{}", logs());
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nodes first: the controller would only mourn them.
        for daemon in self.daemons.iter_mut().rev() {
            if let Some(pid) = rustix::process::Pid::from_raw(daemon.id().cast_signed()) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let until = Instant::now() + Duration::from_secs(20);
            while Instant::now() < until && matches!(daemon.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(50));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
