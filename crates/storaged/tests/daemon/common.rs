//! A daemon of one's own, and a client that shows everything that came.

#![allow(dead_code)]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes this long, on any machine; a test that would hang ends.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_storaged"));
    command.env_remove("STORAGED_FAULT");
    command
}

/// Whether this build obeys STORAGED_FAULT; where it does not, a test that wants it says so.
pub fn has_fault_points() -> bool {
    let words = program().arg("--capabilities").output().unwrap().stdout;
    let has = String::from_utf8(words).unwrap().lines().any(|word| word == "fault-points");
    if !has {
        eprintln!("skipped: this build has no fault points (feature fault-points)");
    }
    has
}

/// A folder for a daemon: in memory where there is such a place, since most tests ask what is
/// there after a crash of the process, not of the machine, and would wait for a disk for nothing.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A running daemon. Dropped, it is killed.
pub struct Daemon {
    child: Child,
    pub dir: PathBuf,
    pub unix: PathBuf,
    pub tcp: Option<String>,
    pub metrics: Option<String>,
    log: PathBuf,
}

impl Daemon {
    /// A daemon for `dir/data`.
    pub fn start(dir: &Path, args: &[&str]) -> Daemon {
        Daemon::start_with(dir, args, |_| {})
    }

    pub fn start_with(dir: &Path, args: &[&str], change: impl FnOnce(&mut Command)) -> Daemon {
        let unix = dir.join("socket");
        let log = dir.join("log");
        let stderr = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut command = program();
        command
            .arg("--listen")
            .arg(format!("unix:{}", unix.display()))
            .arg("--data")
            .arg(dir.join("data"))
            .args(["--log-level", "debug"])
            .args(if args.contains(&"--workers") { &[][..] } else { &["--workers", "2"] })
            .args(args)
            .stdout(Stdio::piped())
            .stderr(stderr);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut daemon = Daemon { child, dir: dir.to_owned(), unix, tcp: None, metrics: None, log };
        let tcp = args.iter().any(|arg| arg.starts_with("tcp:"));
        let metrics = args.contains(&"--metrics");
        let mut waits = 1 + usize::from(tcp) + usize::from(metrics);
        while waits > 0 {
            let Some(Ok(line)) = lines.next() else {
                panic!("the daemon did not start: {}", daemon.log());
            };
            if let Some(address) = line.strip_prefix("listening on tcp:") {
                daemon.tcp = Some(address.to_owned());
            }
            if let Some(address) = line.strip_prefix("metrics on tcp:") {
                daemon.metrics = Some(address.to_owned());
            }
            waits -= 1;
        }
        daemon
    }

    /// Memory that it has now.
    pub fn resident_bytes(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = text.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }

    /// Descriptors that it has open.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// Ticks of a CPU that it has used, a hundredth of a second each.
    pub fn cpu_ticks(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields = text.rsplit(')').next().unwrap().split_whitespace().skip(11);
        fields.take(2).map(|field| field.parse::<u64>().unwrap()).sum()
    }

    pub fn client(&self) -> Client {
        Client::unix(&self.unix)
    }

    pub fn tcp_client(&self) -> Client {
        Client::tcp(self.tcp.as_ref().unwrap())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The daemon's own end.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the daemon did not end: {}", self.log());
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends it as a service manager would.
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        assert!(self.wait().success(), "{}", self.log());
    }

    /// Ends it as a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.wait();
    }

    /// What `/_/stat` says.
    pub fn stat(&self) -> serde_json::Value {
        serde_json::from_slice(&self.client().get("/_/stat").body).unwrap()
    }

    /// Waits until `/_/stat` says what is expected: an answer is counted after it was sent.
    pub fn wait_for_stat(&self, is_so: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let stat = self.stat();
            if is_so(&stat) {
                return stat;
            }
            assert!(Instant::now() < until, "{stat}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Files of objects, those included that are on their way in.
    pub fn blobs(&self) -> usize {
        fs::read_dir(self.data().join("blobs")).unwrap().count()
    }

    /// The list of all objects.
    pub fn list(&self) -> Vec<serde_json::Value> {
        let list: serde_json::Value = serde_json::from_slice(&self.client().get("/").body).unwrap();
        list["objects"].as_array().unwrap().clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection.
pub struct Client {
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(one, _)| one.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn etag(&self) -> &str {
        self.header("etag").unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub fn unix(path: &Path) -> Client {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { stream: Box::new(stream), unread: Vec::new() }
    }

    pub fn tcp(address: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { stream: Box::new(stream), unread: Vec::new() }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// A head and a body with its length.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Response {
        self.try_request(method, path, headers, body).unwrap()
    }

    /// `None`: the connection ended before an answer did.
    pub fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Option<Response> {
        let length = match method {
            "PUT" => format!("Content-Length: {}\r\n", body.len()),
            _ => String::new(),
        };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{length}{headers}\r\n");
        // A daemon that refuses a body early may have hung up before its end.
        let _ = self.stream.write_all(&[head.as_bytes(), body].concat());
        self.response(method)
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, "", b"")
    }

    pub fn put(&mut self, path: &str, body: &[u8]) -> Response {
        self.request("PUT", path, "", body)
    }

    pub fn delete(&mut self, path: &str) -> Response {
        self.request("DELETE", path, "", b"")
    }

    /// The next answer; `method` tells whether it has a body.
    pub fn response(&mut self, method: &str) -> Option<Response> {
        let (status, headers, head_bytes) = loop {
            let mut slots = [httparse::EMPTY_HEADER; 32];
            let mut head = httparse::Response::new(&mut slots);
            if let httparse::Status::Complete(bytes) = head.parse(&self.unread).unwrap() {
                let headers: Vec<(String, String)> = head
                    .headers
                    .iter()
                    .map(|h| (h.name.to_owned(), String::from_utf8(h.value.to_vec()).unwrap()))
                    .collect();
                break (head.code.unwrap(), headers, bytes);
            }
            self.more()?;
        };
        self.unread.drain(..head_bytes);
        let mut response = Response { status, headers, body: Vec::new() };
        let bodiless = method == "HEAD" || matches!(status, 100 | 204 | 304);
        let length = response.header("content-length").map(|text| text.parse::<usize>().unwrap());
        let length = if bodiless { 0 } else { length.expect("a length") };
        while self.unread.len() < length {
            self.more()?;
        }
        response.body = self.unread.drain(..length).collect();
        Some(response)
    }

    /// Some bytes, whatever they are.
    pub fn more(&mut self) -> Option<usize> {
        let mut buffer = vec![0; 256 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(bytes) => {
                    self.unread.extend_from_slice(&buffer[..bytes]);
                    return Some(bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    /// Everything to the end of the connection.
    pub fn rest(mut self) -> Vec<u8> {
        while self.more().is_some() {}
        self.unread
    }

    /// The daemon has hung up, and sent nothing more.
    pub fn assert_ended(self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    }
}

/// Bytes that differ from place to place, and from seed to seed.
pub fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(count + 8);
    while out.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(count);
    out
}
