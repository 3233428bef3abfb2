//! `ntcopy advise --pid`: programs of our own, with a known number of bytes in flight, are looked
//! at from outside. The programs are this test program, started again for one of its ignored tests.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};
use serde_json::Value;

use crate::common::{PROGRAM, at_home, ends, good, in_home, json};

/// Where the sender listens.
const PATH: &str = "NTCOPY_TEST_PATH";
/// How many connections it waits for.
const CONNECTIONS: usize = 16;
/// What has not moved for as long does not move any more.
const STILL: Duration = Duration::from_millis(500);
const NOBODY: u32 = 65534;

/// A process that ends with its test.
struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A role of this program; it ends when its standard input does.
struct Role {
    child: Ours,
    _stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Role {
    fn start(name: &str, path: &Path) -> Role {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", &format!("advise_running::{name}")])
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Role { child: Ours(child), _stdin: stdin, lines }
    }

    /// The number that it says behind this word.
    fn says(&mut self, word: &str) -> u64 {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some((_, number)) = line.split_once(word) {
                return number.trim().parse().unwrap();
            }
            line.clear();
        }
        panic!("it ended without saying {word}");
    }

    fn pid(&self) -> String {
        self.child.0.id().to_string()
    }
}

fn path() -> PathBuf {
    std::env::var_os(PATH).expect("a role has a path").into()
}

fn wait_for_end_of_input() {
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Sends on each connection until nothing more goes in, and says how much went.
fn fill(mut sockets: Vec<UnixStream>) {
    let chunk = vec![7; 16 << 10];
    let (mut sent, mut still) = (0, Duration::ZERO);
    while still < STILL {
        let before = sent;
        for socket in &mut sockets {
            loop {
                match socket.write(&chunk) {
                    Ok(count) => sent += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let pause = Duration::from_millis(20);
        sleep(pause);
        still = if sent == before { still + pause } else { Duration::ZERO };
    }
    println!("sent {sent}");
    wait_for_end_of_input();
}

fn accept(connections: usize) -> Vec<UnixStream> {
    let listener = UnixListener::bind(path()).unwrap();
    println!("listens 0");
    let sockets: Vec<UnixStream> = (0..connections).map(|_| listener.accept().unwrap().0).collect();
    sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
    sockets
}

#[test]
#[ignore = "a role: the tests start it"]
fn sends_to_many() {
    fill(accept(CONNECTIONS));
}

#[test]
#[ignore = "a role: the tests start it"]
fn sends_to_one() {
    fill(accept(1));
}

#[test]
#[ignore = "a role: the tests start it"]
fn splices_to_a_client() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    let (client, _) = listener.accept().unwrap();
    client.set_nonblocking(true).unwrap();
    let backend = UnixStream::connect(path()).unwrap();
    backend.set_nonblocking(true).unwrap();
    let (out, into) = pipe().unwrap();
    // One buffer: what lies in a pipe cannot be seen.
    fcntl_setpipe_size(&into, 4096).unwrap();
    let mut still = Duration::ZERO;
    while still < 4 * STILL {
        let step = |from: &dyn AsFd, to: &dyn AsFd| {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            splice(from.as_fd(), None, to.as_fd(), None, 1 << 20, flags).unwrap_or(0)
        };
        let moved = step(&backend, &into) + step(&out, &client);
        let pause = Duration::from_millis(u64::from(moved == 0) * 5);
        sleep(pause);
        still = if moved == 0 { still + pause } else { Duration::ZERO };
    }
    println!("stuck 0");
    wait_for_end_of_input();
}

fn ntcopy(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("advise").args(arguments).current_dir("/");
    command
}

fn advise(home: &Path, arguments: &[&str]) -> Output {
    in_home(home, &[&["advise"], arguments].concat())
}

fn assert_within_5_percent(found: &Value, known: u64) {
    let found = found.as_u64().unwrap();
    assert!(found.abs_diff(known) * 20 <= known, "{found} of {known} bytes");
}

#[test]
fn a_known_amount_on_unix_sockets_is_measured() {
    let home = tempfile::tempdir().unwrap();
    let mut sender = Role::start("sends_to_many", &home.path().join("backend"));
    sender.says("listens");
    let connect = |_| UnixStream::connect(home.path().join("backend")).unwrap();
    let readers: Vec<UnixStream> = (0..CONNECTIONS).map(connect).collect();
    let known = sender.says("sent");
    let arguments = ["--pid", &sender.pid(), "--seconds", "1"];
    let object = json(&good(&advise(home.path(), &[&arguments[..], &["--json"]].concat())));
    let program = &object["programs"][0];
    assert_within_5_percent(&program["families"]["unix"]["in_flight_bytes"]["p50"], known);
    let most = &program["most_of_a_socket_bytes"]["max"];
    assert_within_5_percent(most, known / CONNECTIONS as u64);
    assert_eq!(program["sockets_with_bytes"]["p50"], CONNECTIONS, "{program}");
    assert!(program["in_flight_bytes"]["p99"].is_null(), "so few samples have no p99: {program}");
    let buffers = &program["send_buffers"];
    assert_eq!(
        (&buffers["sockets"], &buffers["full"]["p50"]),
        (&16.into(), &16.into()),
        "{program}"
    );
    assert!(buffers["bytes"].as_u64().unwrap() > known * 3 / 4, "{program}");
    // This process reads, or would.
    let touchers = program["touched_by"].as_array().unwrap();
    assert!(touchers.iter().all(|one| one["pid"] == std::process::id()), "{program}");
    let advice = &program["advice"];
    assert_eq!(advice["decision"], "no evidence", "the store is empty: {advice}");
    assert!(advice["measure"].to_string().contains("bench"), "{advice}");

    let text = advise(home.path(), &arguments);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("in flight (p50) on 16 of its"), "{text}");
    assert!(text.contains("ntcopy bench unix --kernel um --family unix"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    for words in [
        "16 send buffers of ",
        "16 of them are full (p50)",
        "by SO_SNDBUF within",
        "Back: without SO_SNDBUF",
    ] {
        assert!(flat.contains(words), "{words}: {text}");
    }
    assert!(text.contains("most\n") && !text.contains("p99"), "{text}");
    drop(readers);
}

#[test]
fn what_a_reader_spliced_on_is_followed_into_its_queues() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("backend");
    let mut sender = Role::start("sends_to_one", &path);
    sender.says("listens");
    let mut proxy = Role::start("splices_to_a_client", &path);
    let port = u16::try_from(proxy.says("port")).unwrap();
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let known = sender.says("sent");
    proxy.says("stuck");
    let arguments = ["--pid", &sender.pid(), "--seconds", "1", "--json"];
    let program = json(&good(&advise(home.path(), &arguments)))["programs"][0].clone();
    assert_within_5_percent(&program["in_flight_bytes"]["p50"], known);
    assert_eq!(program["is_at_least"], true, "{program}");
    let beyond = &program["beyond"][0];
    assert_eq!(beyond["pid"].to_string(), proxy.pid(), "{program}");
    let own = program["on_its_sockets_bytes"]["p50"].as_u64().unwrap();
    assert!(own < known / 2, "most of it was passed on: {program}");
    drop(client);
}

#[test]
fn a_process_that_ends_is_told_of_with_what_was_seen() {
    let home = tempfile::tempdir().unwrap();
    let mut child = Command::new("sleep").arg("1").spawn().unwrap();
    let arguments = ["--pid", &child.id().to_string(), "--seconds", "600", "--json"];
    let program = json(&good(&advise(home.path(), &arguments)))["programs"][0].clone();
    assert!(program["ended_after_s"].is_f64(), "{program}");
    assert!(program["advice"].is_null(), "nothing was in flight: {program}");
    assert!(program["idle"].to_string().contains("ask again under load"), "{program}");
    child.wait().unwrap();
    let output = advise(home.path(), &["--pid", &child.id().to_string()]);
    ends(&output, 3, &["there is no process"]);
    ends(
        &advise(home.path(), &["--service", "no-such-service-of-anybody"]),
        3,
        &["no process is in"],
    );
}

#[test]
fn watching_prints_a_line_each_time_until_the_process_ends() {
    let home = tempfile::tempdir().unwrap();
    let watched = Ours(Command::new("sleep").arg("600").spawn().unwrap());
    let arguments = ["advise", "--pid", &watched.0.id().to_string(), "--watch", "--seconds", "1"];
    let mut advise = at_home(home.path(), &arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(advise.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains("sleep (pid "), "{line}");
    }
    drop(watched);
    assert!(lines.all(|line| line.unwrap().contains("sleep (pid ")));
    assert!(advise.wait().unwrap().success());
}

#[test]
fn a_user_with_nothing_to_look_at_is_told_so() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be a user without any other process");
        return;
    }
    let lonely = 64_321;
    let mut command = ntcopy(&["--all", "--seconds", "1"]);
    match command.uid(lonely).gid(lonely).env("HOME", "/nonexistent").output() {
        Err(error) => eprintln!("skipped: another user may not start the program: {error}"),
        Ok(output) => {
            let said = ends(&output, 3, &["has a socket", "sudo ntcopy advise --all"]);
            assert!(!said.contains("ended"), "{said}");
        }
    }
}

/// As somebody else where the tests are root's; none where that one may not start the program.
fn as_nobody(command: &mut Command) -> Option<Output> {
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    match command.env("HOME", "/nonexistent").output() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            eprintln!("skipped: another user may not start the program: {error}");
            None
        }
        output => Some(output.unwrap()),
    }
}

#[test]
fn what_another_user_runs_is_refused_with_the_reason() {
    let ours = Ours(Command::new("sleep").arg("60").spawn().unwrap());
    let pid = if rustix::process::geteuid().is_root() { ours.0.id() } else { 1 };
    if let Some(output) = as_nobody(&mut ntcopy(&["--pid", &pid.to_string()])) {
        ends(&output, 3, &["sudo ntcopy advise --pid"]);
    }
}

#[test]
fn root_that_may_not_look_is_told_why_and_not_to_use_sudo() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a capability up and stay root");
        return;
    }
    let other = Ours(Command::new("sleep").arg("60").uid(NOBODY).spawn().unwrap());
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-sys_ptrace", PROGRAM, "advise", "--pid"]);
    let output = command.arg(other.0.id().to_string()).output().unwrap();
    let said = ends(&output, 3, &["lacks a capability"]);
    assert!(!said.contains("sudo"), "{said}");
}

#[test]
fn a_namespace_that_one_may_not_enter_is_said() {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--", "sh", "-c", "echo there; exec sleep 60"]);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = Ours(command.current_dir("/").stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid = child.0.id().to_string();
    if line != "there\n" {
        eprintln!("skipped: no namespaces for users here");
    } else if let Some(output) = as_nobody(&mut ntcopy(&["--pid", &pid])) {
        ends(&output, 3, &["network namespace of its own"]);
    }
    if line == "there\n" && rustix::process::geteuid().is_root() {
        let home = tempfile::tempdir().unwrap();
        let object =
            json(&good(&advise(home.path(), &["--pid", &pid, "--seconds", "1", "--json"])));
        assert_eq!(object["programs"][0]["in_flight_bytes"]["max"], 0, "{object}");
    }
}

#[test]
fn all_processes_are_listed_and_options_that_mean_nothing_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let object = json(&good(&advise(home.path(), &["--all", "--seconds", "1", "--json"])));
    let programs = object["programs"].as_array().unwrap();
    assert!(programs.iter().all(|program| program["pids"].as_array().unwrap().len() == 1));
    for arguments in [
        &["--seconds", "5"][..],
        &["--watch"],
        &["--all", "--pid", "1"],
        &["--all", "--for", "AuthenticAMD-26-2-1"],
        &["--pid", "abc"],
    ] {
        let said = ends(&advise(home.path(), arguments), 2, &[]);
        // What is no PID is told what one is.
        assert_eq!(said.contains("--pid 4711"), arguments.contains(&"abc"), "{said}");
    }
}
