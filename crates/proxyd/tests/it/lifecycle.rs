//! Start, files read anew, stop; logs and metrics; the program itself.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use proxyd::config::Config;
use proxyd::net::{Address, Place};
use proxyd::server::Server;
use proxyd::worker::Stop;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Backend, Peer, config, connect, counters, eventually, pattern, proxy};

#[test]
fn a_graceful_stop_finishes_what_is_in_flight_and_takes_nothing_new() {
    let backend = Backend::standard();
    let mut server = proxy(&backend, |_| {});
    let (mut idle, mut busy) = (connect(&server), connect(&server));
    idle.get("/length/1");
    busy.send("GET /length/20000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    let head = busy.head().unwrap();
    server.stop(Stop::Graceful);
    assert_eq!(idle.rest(), b"");
    let Address::Tcp(address) = server.addresses().plain[0].clone() else { panic!() };
    eventually("the door is shut", || std::net::TcpStream::connect(address).is_err());
    assert!(busy.body(&head) == pattern(20_000_000));
    assert_eq!(busy.rest(), b"");
    server.join();
    assert_eq!(counters(&server)["proxyd_connections_open"], 0);
}

#[test]
fn a_graceful_stop_ends_after_its_time() {
    let backend = Backend::new(|peer, _| {
        peer.rest();
    });
    let mut server = proxy(&backend, |config| config.timeouts.shutdown_ms = 200);
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("it is in flight", || backend.connections() == 1);
    server.stop(Stop::Graceful);
    server.join();
    assert_eq!(client.rest(), b"");
}

#[test]
fn answers_in_flight_at_a_stop_say_that_the_connection_ends() {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = std::sync::Mutex::new(gone);
    let backend = Backend::new(move |peer, _| {
        peer.head().unwrap();
        gone.lock().unwrap().recv().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("it is in flight", || backend.connections() == 1);
    server.stop(Stop::Graceful);
    std::thread::sleep(Duration::from_millis(50));
    go.send(()).unwrap();
    let answer = client.answer().unwrap();
    assert_eq!((answer.header("connection"), answer.body.as_slice()), (Some("close"), &b"ok"[..]));
}

#[test]
fn exchanges_are_logged_and_the_log_is_opened_again() {
    let backend = Backend::standard();
    let folder = tempfile::tempdir().unwrap();
    let (log, moved) = (folder.path().join("log"), folder.path().join("log.1"));
    let settings = |config: &mut Config| config.access_log = Some(log.clone());
    let server = proxy(&backend, settings);
    connect(&server).get("/length/100000/?q=\"");
    std::fs::rename(&log, &moved).unwrap();
    server.reload().unwrap();
    eventually("the new file is there", || log.exists());
    connect(&server).send("BAD\r\n\r\n");
    eventually("two requests", || counters(&server)["proxyd_responses_total"] == 2);
    drop(server);
    let text = std::fs::read_to_string(&moved).unwrap();
    assert!(text.contains(" 127.0.0.1 \"GET /length/100000/?q=%22\" 200 100000 "), "{text}");
    assert!(text.trim_end().ends_with("b.sock spliced"), "{text}");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains(" \"-\" 400 0 ") && text.contains("client: malformed: "), "{text}");
}

#[test]
fn metrics_are_served() {
    let backend = Backend::standard();
    let server = proxy(&backend, |config| {
        config.metrics = Some("tcp:127.0.0.1:0".parse().unwrap());
        config.workers = 2;
    });
    connect(&server).get("/length/5");
    let metrics = server.addresses().metrics[0].clone();
    eventually("it is counted", || {
        let text = String::from_utf8(Peer::tcp(&metrics).get("/metrics").body).unwrap();
        text.contains("proxyd_responses_total{class=\"2xx\"} 1\n")
    });
    let text = String::from_utf8(Peer::tcp(&metrics).get("/metrics").body).unwrap();
    for line in ["proxyd_requests_total{worker=\"1\"} ", "proxyd_mode_info{mode=\"copy\""] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(Peer::tcp(&metrics).get("/").status, 404);
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let backend = Backend::standard();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let _live = UnixListener::bind(&path).unwrap();
    let settings = Config { listen: vec![Address::Unix(path).into()], ..config(&backend) };
    let error = Server::start(settings).unwrap_err().to_string();
    assert!(error.contains("p.sock: another process answers"), "{error}");
}

/// The program, killed if the test fails.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proxyd"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn the_program_serves_opens_its_log_again_and_stops_by_signals() {
    let (backend, other) = (Backend::standard(), Backend::standard());
    let folder = tempfile::tempdir().unwrap();
    let [socket, file, log, moved] =
        ["p.sock", "p.toml", "log", "log.1"].map(|name| folder.path().join(name));
    let write = |backend: &Backend| {
        let text = format!(
            "listen = [\"unix:{}\"]\nbackends = [\"{}\"]\naccess_log = {log:?}\n",
            socket.display(),
            backend.address
        );
        std::fs::write(&file, text).unwrap();
    };
    write(&backend);
    let child = program(&["--config", file.to_str().unwrap()]).spawn().unwrap();
    let mut program = Program(child);
    let connect = || std::os::unix::net::UnixStream::connect(&socket).map(Peer::new);
    eventually("it listens", || connect().is_ok());
    let mut kept = connect().unwrap();
    assert_eq!(kept.get("/length/5").body, pattern(5));
    write(&other);
    std::fs::rename(&log, moved).unwrap();
    program.signal(Signal::HUP);
    eventually("the log is there again", || log.exists());
    assert_eq!(kept.get("/length/6").body, pattern(6));
    assert_eq!(connect().unwrap().get("/length/7").body, pattern(7));
    assert!(other.heads().is_empty(), "other settings take a restart");
    program.signal(Signal::TERM);
    assert!(program.0.wait().unwrap().success());
    assert!(!socket.exists(), "the socket is removed");
}

/// The program is stopped while requests come, so that all of them have come before it hears of
/// its end, and none of them is known to it.
#[test]
fn a_graceful_stop_answers_what_had_come_before_it() {
    let backend = Backend::standard();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("p.sock");
    let (listen, to) = (socket.to_str().unwrap().to_owned(), backend.address.to_string());
    let child = program(&["--listen", &listen, "--backend", &to, "--workers", "1"]).spawn();
    let mut program = Program(child.unwrap());
    let connect = || std::os::unix::net::UnixStream::connect(&socket).map(Peer::new);
    eventually("it listens", || connect().is_ok());
    let mut kept = connect().unwrap();
    kept.get("/length/1");
    program.signal(Signal::STOP);
    let state = format!("/proc/{}/stat", program.0.id());
    eventually("it stands still", || std::fs::read_to_string(&state).unwrap().contains(") T "));
    let mut waiting: Vec<Peer> = (0..300).map(|_| connect().unwrap()).collect();
    for client in waiting.iter_mut().chain([&mut kept]) {
        client.send("GET /length/2 HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    program.signal(Signal::TERM);
    program.signal(Signal::CONT);
    for (at, client) in waiting.iter_mut().chain([&mut kept]).enumerate() {
        let answer = client.answer().unwrap_or_else(|| panic!("{at} is dropped"));
        assert_eq!((answer.status, answer.body), (200, pattern(2)), "{at}");
    }
    assert!(program.0.wait().unwrap().success());
}

#[test]
fn the_programs_exit_status_tells_what_was_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let live = folder.path().join("p.sock");
    let _listener = UnixListener::bind(&live).unwrap();
    let bad = folder.path().join("bad.toml");
    std::fs::write(&bad, "listen = []\nspeed = 3\n").unwrap();
    let (live, bad) = (live.to_str().unwrap(), bad.to_str().unwrap());
    for (arguments, status, word) in [
        (vec!["--speed"], 2, "--speed"),
        (vec!["--quic", "127.0.0.1:1"], 2, "--quic went: offer TLS by --tls-listen"),
        (vec!["--listen", "tcp:127.0.0.1:0"], 2, "--backend"),
        (vec!["--config", bad], 2, "line 2"),
        (vec!["--config", "/nonexistent"], 2, "/nonexistent"),
        (vec!["--listen", live, "--backend", "unix:/b"], 3, "another process"),
        (vec!["--listen", "tcp:192.0.2.1:1", "--backend", "unix:/b"], 1, "bind"),
    ] {
        let output = program(&arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(word), "{arguments:?}: {text}");
    }
    let output = program(&["--capabilities"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.lines().any(|line| line == "splice"), "{text}");
    let output = program(&["--check", "--listen", "tcp:127.0.0.1:0", "--backend", "unix:/b"])
        .output()
        .unwrap();
    assert!(output.status.success());
}

#[test]
fn a_reader_that_is_gone_and_a_full_disk() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for arguments in
        [&["--capabilities"][..], &["--capabilities", "--json"], &["--help"], &["--version"]]
    {
        let run = |out: Stdio| {
            let output = program(arguments).stdout(out).output().unwrap();
            (output.status, String::from_utf8(output.stderr).unwrap())
        };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (status, words) = run(writer.into());
        assert_eq!((status.signal(), &*words), (Some(Signal::PIPE.as_raw()), ""), "{arguments:?}");
        let (status, words) = run(full().into());
        assert_eq!(status.code(), Some(1), "{arguments:?}: {words}");
        assert!(words.contains("No space left") && words.lines().count() == 1, "{words}");
    }
    let output = program(&["--none"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    // A log that can't be written costs lines, and nothing else.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("p.sock");
    let mut command = program(&["--listen", socket.to_str().unwrap(), "--backend", "unix:/b"]);
    let mut program = Program(command.stderr(full()).spawn().unwrap());
    eventually("it listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    program.signal(Signal::TERM);
    assert!(program.0.wait().unwrap().success());
}

/// A host's name of two addresses, in a hosts file of the program's own.
#[test]
fn every_address_of_a_name_is_listened_on_and_tried() {
    let alone = ["--map-root-user", "--mount"];
    if !Command::new("unshare").args(alone).arg("true").status().is_ok_and(|it| it.success()) {
        println!("skipped: a mount namespace is not to be had here");
        return;
    }
    let backend = Backend::standard();
    let mut last = config(&backend);
    last.listen = vec!["tcp:127.0.0.2:0".parse().unwrap()];
    let last = Server::start(last).unwrap();
    let Address::Tcp(at) = &last.addresses().plain[0] else { panic!() };
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.1 twice\n127.0.0.2 twice\n").unwrap();
    let to = format!("tcp:twice:{}", at.port());
    let script = "mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(alone).args(["sh", "-c", script, "sh"]).arg(&hosts);
    command.args([env!("CARGO_BIN_EXE_proxyd"), "--listen", "tcp:twice:0", "--backend", &to]);
    command.args(["--metrics", "tcp:twice:0"]).stderr(Stdio::piped());
    let mut program = Program(command.spawn().unwrap());
    let log = BufReader::new(program.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let places = log.filter_map(|line| line.rsplit_once("address=")?.1.parse::<Place>().ok());
    let places: Vec<Place> = places.take(4).collect();
    let host = |place: &Place| place.to_string().rsplit_once(':').unwrap().0.to_owned();
    let hosts: Vec<String> = places.iter().map(host).collect();
    let both = ["tcp:127.0.0.1", "tcp:127.0.0.2"];
    assert_eq!(hosts, [both, both].concat());
    for (place, path) in places.iter().zip(["/length/5", "/length/6", "/metrics", "/metrics"]) {
        assert_eq!(Peer::tcp(&place.addresses()[0]).get(path).status, 200, "{place}");
    }
}

#[test]
fn the_log_has_no_colours() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("p.sock");
    let mut command = program(&["--listen", socket.to_str().unwrap(), "--backend", "unix:/b"]);
    let mut program = Program(command.env("TERM", "xterm").spawn().unwrap());
    eventually("it listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    program.signal(Signal::TERM);
    assert!(program.0.wait().unwrap().success());
    let mut log = String::new();
    program.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("listening") && !log.contains('\x1b'), "{log:?}");
}

#[test]
fn a_second_signal_stops_at_once() {
    let backend = Backend::new(|peer, _| {
        peer.rest();
    });
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("p.sock");
    let listen = socket.to_str().unwrap().to_owned();
    let child =
        program(&["--listen", &listen, "--backend", &backend.address.to_string()]).spawn().unwrap();
    let mut program = Program(child);
    eventually("it listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    let mut client = Peer::new(std::os::unix::net::UnixStream::connect(&socket).unwrap());
    client.send("GET /a HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("it is in flight", || backend.connections() == 1);
    program.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    assert!(program.0.try_wait().unwrap().is_none(), "it waits for the exchange");
    program.signal(Signal::TERM);
    assert!(program.0.wait().unwrap().success());
    let mut log = String::new();
    program.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("a second signal stops at once"), "{log}");
}
