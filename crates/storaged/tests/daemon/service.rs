//! What a service manager does: it hands sockets over, and is told how things stand.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;

use crate::common::{Daemon, Peer, program, scratch};

/// Hands a socket over, by its own number. `LISTEN_PID` is left out, as by whoever can't know it
/// before.
fn hand_over(command: &mut Command, socket: &UnixListener) {
    fcntl_setfd(socket, FdFlags::empty()).unwrap();
    let number = socket.as_raw_fd().to_string();
    command.env("LISTEN_FDS", "1").env("LISTEN_FDS_FIRST_FD", number).env_remove("LISTEN_PID");
}

#[test]
fn a_socket_that_was_handed_over_outlives_the_daemon() {
    let dir = scratch();
    let socket = UnixListener::bind(dir.path().join("socket")).unwrap();
    let start = || Daemon::start_with(dir.path(), &[], |command| hand_over(command, &socket));
    let mut daemon = start();
    assert_eq!(daemon.client().put("/o", b"x").status, 201);
    let mut idle = daemon.client();
    assert_eq!(idle.get("/o").status, 200);
    let unix = daemon.unix.clone();
    daemon.process.signal(Signal::TERM);
    assert!(daemon.process.wait().success());
    idle.assert_ended();
    // Nobody is there, and who comes waits for the next.
    let mut waiting = Peer::new(UnixStream::connect(&unix).unwrap());
    waiting.send("GET /o HTTP/1.1\r\nHost: t\r\n\r\n");
    let daemon = start();
    assert_eq!(waiting.answer().unwrap().body, b"x");
    daemon.stop();
    assert!(unix.exists());
}

#[test]
fn without_addresses_of_its_own_it_listens_where_it_was_told_to_and_nowhere_else() {
    let dir = scratch();
    let (path, data) = (dir.path().join("s"), dir.path().join("data"));
    Daemon::start(dir.path(), &[]).stop();
    let socket = UnixListener::bind(&path).unwrap();
    let mut command = program();
    command.arg("--data").arg(&data);
    hand_over(&mut command, &socket);
    let mut daemon = crate::peer::process::Process(command.spawn().unwrap());
    let mut client = Peer::new(UnixStream::connect(&path).unwrap());
    assert_eq!(client.get("/none").status, 404);
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success());

    let refused = |command: &mut Command| {
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let other = format!("unix:{}", dir.path().join("other").display());
    let mut elsewhere = program();
    hand_over(elsewhere.arg("--data").arg(&data).args(["--listen", &other]), &socket);
    let (code, words) = refused(&mut elsewhere);
    assert!(code == Some(1) && words.contains("LISTEN_FDS has a socket for"), "{words}");
    let (code, words) = refused(elsewhere.env("LISTEN_FDS_FIRST_FD", "99"));
    assert!(code == Some(2) && words.contains("LISTEN_FDS: "), "{words}");
}

#[test]
fn the_service_manager_is_told() {
    let dir = scratch();
    let path = dir.path().join("notify");
    let told = UnixDatagram::bind(&path).unwrap();
    told.set_read_timeout(Some(crate::peer::PATIENCE)).unwrap();
    let next = || {
        let mut text = [0; 4096];
        let bytes = told.recv(&mut text).expect("a message");
        String::from_utf8_lossy(&text[..bytes]).trim_end().to_owned()
    };
    let mut daemon = Daemon::start_with(dir.path(), &[], |command| {
        command.env("NOTIFY_SOCKET", &path);
    });
    assert_eq!(next(), "READY=1");
    assert_eq!(daemon.client().get("/none").status, 404);
    daemon.process.signal(Signal::HUP);
    assert_eq!([next(), next()], ["RELOADING=1", "READY=1"]);
    daemon.process.signal(Signal::TERM);
    assert_eq!(next(), "STOPPING=1");
    assert!(daemon.process.wait().success());
    // One that does not listen says nothing.
    fs::write(dir.path().join("socket"), "in the way").unwrap();
    let mut refused = program();
    refused.arg("--data").arg(daemon.data()).arg("--listen").arg(dir.path().join("socket"));
    assert_eq!(refused.env("NOTIFY_SOCKET", &path).output().unwrap().status.code(), Some(1));
    told.set_nonblocking(true).unwrap();
    assert!(told.recv(&mut [0; 16]).is_err());
}
