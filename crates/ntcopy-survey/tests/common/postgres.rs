//! A PostgreSQL server for one test: from the distribution's packages, in a folder of its own,
//! stopped and removed in the end.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Set where its absence is a failure: `make test-survey`.
const NEEDED: &str = "NTCOPY_NEED_POSTGRES";
/// The user that it runs as where the test is root, which it refuses: nobody.
const NOBODY: u32 = 65534;
/// How long it may take to begin and to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server.
pub struct Server {
    child: Child,
    folder: tempfile::TempDir,
    bin: PathBuf,
    port: u16,
}

/// The folder with the newest version's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let number = path.file_name()?.to_str()?.parse().ok()?;
            path.join("bin/initdb").exists().then(|| (number, path.join("bin")))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

impl Server {
    /// Starts one; none, with a word about it, where the packages are not installed.
    pub fn start() -> Option<Server> {
        let Some(bin) = programs() else {
            let why = "skipped: no /usr/lib/postgresql/*/bin/initdb; scripts/setup.sh survey \
                       installs PostgreSQL";
            assert!(std::env::var_os(NEEDED).is_none(), "{why}");
            eprintln!("{why}");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("ntcopy-pg-").tempdir().unwrap();
        hand_over(folder.path());
        let data = folder.path().join("data");
        let made = user(&bin.join("initdb"))
            .args(["--auth=trust", "--username=ntcopy", "--encoding=UTF8", "--no-sync"])
            // Not the C locale: another order of letters must not matter.
            .args(["--no-instructions", "--locale=C.UTF-8", "--pgdata"])
            .arg(&data)
            .stdout(Stdio::null())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        certify(folder.path(), &data);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = user(&bin.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-c", "fsync=off", "-c", "max_connections=40", "-c", "ssl=on"])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", &format!("port={port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Server { child, folder, bin, port };
        server.wait();
        Some(server)
    }

    fn wait(&self) {
        let until = Instant::now() + PATIENCE;
        while !self.psql("postgres", "SELECT 1") {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "the server does not answer: {}", log());
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn psql(&self, database: &str, sql: &str) -> bool {
        let mut command = Command::new(self.bin.join("psql"));
        command.args(["--username=ntcopy", "--no-psqlrc", "--quiet", "--dbname", database, "-h"]);
        command.arg(self.folder.path()).args(["-p", &self.port.to_string(), "-c", sql]);
        command.output().is_ok_and(|output| output.status.success())
    }

    /// Makes a database: its URL, by the socket in the server's folder.
    pub fn database(&self, name: &str) -> String {
        assert!(self.psql("postgres", &format!("CREATE DATABASE {name}")));
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgresql://ntcopy@{folder}:{}/{name}", self.port)
    }

    /// A database's URL by TCP, with more parameters.
    #[allow(dead_code, reason = "not every test that has a server speaks TCP")]
    pub fn tcp(&self, name: &str, rest: &str) -> String {
        format!("postgresql://ntcopy@localhost:{}/{name}?{rest}", self.port)
    }

    /// The server's certificate, which is its own authority.
    #[allow(dead_code, reason = "not every test that has a server speaks TLS")]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.crt")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT: it throws clients out and ends; only by the folder's own file of its id.
        let stop = |mode: &str| {
            let mut command = user(&self.bin.join("pg_ctl"));
            command.args(["stop", "--silent", "--mode", mode, "--timeout=30", "--pgdata"]);
            command.arg(self.folder.path().join("data")).stdout(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        if !stop("fast") && !stop("immediate") {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// A program of the server's, as a user that it accepts.
fn user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let id = NOBODY.to_string();
    command.args([&format!("--reuid={id}"), &format!("--regid={id}"), "--clear-groups", "--"]);
    command.arg(program).current_dir("/");
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a path to the server's user.
fn hand_over(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

/// A certificate for `localhost`, and its key where the server looks for it.
fn certify(folder: &Path, data: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(folder.join("server.crt"), made.cert.pem()).unwrap();
    for (name, text) in
        [("server.crt", made.cert.pem()), ("server.key", made.signing_key.serialize_pem())]
    {
        let file = data.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        hand_over(&file);
    }
}
