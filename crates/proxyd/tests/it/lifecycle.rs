//! Start, files read anew, stop; logs and metrics; the program itself.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use httpd::{Address, Stop};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::common::{Backend, Peer, connect, eventually, pattern, proxy};
use crate::peer::process::Process;

#[test]
fn answers_at_a_stop_say_that_the_connection_ends_and_have_only_so_much_time() {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = std::sync::Mutex::new(gone);
    let backend = Backend::new(move |peer, _| {
        let head = peer.head().unwrap();
        if head.starts_with("GET /never") {
            return drop(peer.rest());
        }
        gone.lock().unwrap().recv().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let mut server =
        proxy(&backend, |config| config.options.drain_timeout = Duration::from_millis(1000));
    let (mut client, mut never) = (connect(&server), connect(&server));
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    never.send("GET /never HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("they are in flight", || backend.connections() == 2);
    server.http.stop(Stop::Graceful);
    std::thread::sleep(Duration::from_millis(50));
    go.send(()).unwrap();
    let answer = client.answer().unwrap();
    assert_eq!((answer.header("connection"), answer.body.as_slice()), (Some("close"), &b"ok"[..]));
    server.http.join();
    assert_eq!(never.rest(), b"");
}

pub fn start(mut command: Command, socket: &PathBuf) -> Process {
    let program = Process(command.spawn().unwrap());
    eventually("it listens", || UnixStream::connect(socket).is_ok());
    program
}

pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proxyd"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What it needs to listen on a socket before that backend.
pub fn before(backend: &Backend) -> (TempDir, PathBuf, Command) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("p.sock");
    let (listen, to) = (socket.to_str().unwrap().to_owned(), backend.address.to_string());
    let command = program(&["--listen", &listen, "--backend", &to]);
    (folder, socket, command)
}

/// The program is stopped while requests come, so that all of them have come before it hears of
/// its end, and none of them is known to it.
#[test]
fn a_graceful_stop_answers_what_had_come_before_it() {
    let backend = Backend::standard();
    let (_folder, socket, mut command) = before(&backend);
    command.args(["--drain-timeout", "60"]);
    let mut program = start(command, &socket);
    let connect = || Peer::connect(&Address::Unix(socket.clone()));
    let mut kept = connect();
    kept.get("/length/1");
    program.signal(Signal::STOP);
    let state = format!("/proc/{}/stat", program.0.id());
    eventually("it stands still", || std::fs::read_to_string(&state).unwrap().contains(") T "));
    let mut waiting: Vec<Peer> = (0..300).map(|_| connect()).collect();
    for client in waiting.iter_mut().chain([&mut kept]) {
        client.send("GET /length/2 HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    program.signal(Signal::TERM);
    program.signal(Signal::CONT);
    for (at, client) in waiting.iter_mut().chain([&mut kept]).enumerate() {
        let answer = client.answer().unwrap_or_else(|| panic!("{at} is dropped"));
        assert_eq!((answer.status, answer.body), (200, pattern(2)), "{at}");
    }
    assert!(program.wait().success());
}

/// As where another takes its place before it has ended.
#[test]
fn a_new_process_serves_while_the_old_one_ends() {
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let gone = std::sync::Mutex::new(gone);
    let backend = Backend::new(move |peer, _| {
        let head = peer.head().unwrap();
        if head.starts_with("GET /slow") {
            gone.lock().unwrap().recv().unwrap();
        }
        peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    });
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_folder, socket, mut command) = before(&backend);
    command.args(["--drain-timeout", "60", "--listen", &port.to_string()]);
    let mut again =
        program(&command.get_args().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>());
    let mut old = start(command, &socket);
    let mut slow = Peer::connect(&Address::Tcp(port));
    slow.send("GET /slow HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("it is in flight", || backend.connections() == 1);
    let new = Process(again.spawn().unwrap());
    // It finds the address in use.
    std::thread::sleep(Duration::from_millis(300));
    old.signal(Signal::TERM);
    for address in [Address::Tcp(port), Address::Unix(socket)] {
        eventually("the new one answers", || {
            Peer::try_connect(&address).is_some_and(|mut peer| {
                peer.try_request("GET", "/", "", b"").is_some_and(|answer| answer.body == b"ok")
            })
        });
    }
    assert!(old.0.try_wait().unwrap().is_none());
    go.send(()).unwrap();
    assert_eq!(slow.answer().unwrap().body, b"ok");
    assert!(old.wait().success());
    drop(new);
}

#[test]
fn a_second_signal_stops_at_once_and_the_log_says_so_without_colours() {
    let backend = Backend::new(|peer, _| drop(peer.rest()));
    let (_folder, socket, mut command) = before(&backend);
    command.env("TERM", "xterm").args(["--log-level", "debug", "--drain-timeout", "60"]);
    let mut program = start(command, &socket);
    let mut client = Peer::connect(&Address::Unix(socket.clone()));
    client.send("GET /a\"%1b HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("it is in flight", || backend.connections() == 1);
    program.signal(Signal::HUP);
    program.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    assert!(program.0.try_wait().unwrap().is_none(), "it waits for the exchange");
    program.signal(Signal::TERM);
    assert!(program.wait().success());
    let mut log = String::new();
    program.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("a second signal") && !log.contains('\x1b'), "{log}");
    let line = r#"request="GET /a\"%1b" status=499 "#;
    assert!(log.contains(line) && log.contains("error=proxy: the proxy stops"), "{log}");
}

#[test]
fn buffers_that_the_system_cuts_are_said_with_the_setting() {
    let backend = Backend::standard();
    // So much is had by nobody; so much by everybody.
    for (sizes, lines) in [(["2047MiB", "4GiB"], 1), (["64KiB", "64KiB"], 0)] {
        let (_folder, socket, mut command) = before(&backend);
        command.args(["--sndbuf", sizes[0], "--pipe-size", sizes[1], "--workers", "2"]);
        let mut program = start(command, &socket);
        let answer = Peer::connect(&Address::Unix(socket.clone())).get("/length/9");
        assert_eq!((answer.status, answer.body), (200, pattern(9)));
        program.signal(Signal::TERM);
        assert!(program.wait().success());
        let mut log = String::new();
        program.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        for setting in ["net.core.wmem_max=", "fs.pipe-max-size"] {
            assert_eq!(log.matches(setting).count(), lines, "{setting}: {log}");
        }
    }
}

/// As at boot, when there is no resolver yet: that is no mistake in the settings, and may be over soon.
#[test]
fn a_backend_whose_name_is_not_known_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let listen = format!("unix:{}", folder.path().join("p.sock").display());
    let mut command = program(&["--listen", &listen, "--backend", "tcp:backend.invalid:80"]);
    let mut program = Process(command.spawn().unwrap());
    let mut log = BufReader::new(program.0.stderr.take().unwrap()).lines();
    let line = log.next().unwrap().unwrap();
    assert!(line.contains("can't be looked up: trying again"), "{line}");
    assert!(program.0.try_wait().unwrap().is_none());
    program.signal(Signal::TERM);
    assert_eq!(program.wait().signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn the_programs_exit_status_tells_what_was_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let (live, bad) = (folder.path().join("p.sock"), folder.path().join("bad.toml"));
    let _listener = UnixListener::bind(&live).unwrap();
    std::fs::write(&bad, "listen = []\nspeed = 3\n").unwrap();
    let few = folder.path().join("few.toml");
    std::fs::write(&few, "workers = 1\n").unwrap();
    let (live, bad) = (live.to_str().unwrap(), bad.to_str().unwrap());
    let few = few.to_str().unwrap();
    for (words, status, said) in [
        ("--speed".to_owned(), 2, "--speed"),
        (format!("--config {bad}"), 2, "bad.toml:2: there is no setting speed"),
        ("--listen /l".to_owned(), 2, "--backend"),
        ("--backend /b".to_owned(), 2, "--listen"),
        ("--listen /l --backend /b --path pub".to_owned(), 2, "/pub"),
        ("--tls-listen /t --backend /b --certificate c".to_owned(), 2, "--key"),
        (format!("--listen {live} --backend unix:/b"), 1, "a process listens there"),
        ("--listen tcp:backend.invalid:1 --backend unix:/b".to_owned(), 1, "backend.invalid"),
        ("--listen tcp:192.0.2.1:1 --backend unix:/b".to_owned(), 1, "192.0.2.1:1"),
        ("--check --listen tcp:127.0.0.1:0 --backend unix:/b".to_owned(), 0, ""),
        (format!("--backend /b --config {few}"), 2, few),
        (format!("--check --tls-listen /t --backend /b --certificate {bad} --key {bad}"), 2, bad),
    ] {
        let output = program(&words.split(' ').collect::<Vec<_>>()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words}: {text}");
        assert!(text.contains(said), "{words}: {text}");
    }
}
