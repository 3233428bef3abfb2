//! Starting, reloading, running out of things, and ending.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::common::{Daemon, PATIENCE, bytes, folders, has_fault_points, program, scratch};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use storaged::store::format::{HASH_BYTES, TAIL_BYTES, seal, trailer_bytes};

#[test]
fn a_folder_has_one_daemon_and_a_socket_too() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let other = scratch();
    let second = |listen: &std::path::Path, data: &std::path::Path| {
        let listen = format!("unix:{}", listen.display());
        let mut command = program();
        command.args(["--listen", &listen, "--data"]).arg(data).stdout(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, words) = second(&other.path().join("s"), &daemon.data());
    assert_eq!(code, 1);
    assert!(words.contains(&format!("in use by process {}", daemon.pid())), "{words}");
    let (code, words) = second(&daemon.unix, &other.path().join("data"));
    assert_eq!(code, 1);
    assert!(words.contains("a process listens there"), "{words}");
    fs::write(other.path().join("letter"), "dear").unwrap();
    let (code, words) = second(&other.path().join("s"), other.path());
    assert_eq!(code, 1);
    assert!(words.contains("neither empty nor"), "{words}");
    assert_eq!(daemon.client().get("/x").status, 404);
}

#[test]
fn a_dead_daemon_s_socket_and_temporaries_are_cleared() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let mut client = daemon.client();
    client.write(b"PUT /half HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n");
    client.write(&bytes(1, 100_000));
    let temporaries = || fs::read_dir(dir.path().join("data/temporary")).unwrap().count();
    let until = Instant::now() + PATIENCE;
    while temporaries() == 0 {
        assert!(Instant::now() < until);
        thread::sleep(Duration::from_millis(2));
    }
    let unix = daemon.unix.clone();
    daemon.kill();
    assert!(unix.exists() && temporaries() == 1);
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(temporaries(), 0);
    assert_eq!(daemon.client().get("/half").status, 404);
    daemon.stop();
    assert!(!unix.exists());
}

#[test]
fn what_is_in_flight_is_finished_and_nothing_begins() {
    let dir = scratch();
    let mut daemon = Daemon::start(dir.path(), &[]);
    let content = bytes(2, 8 << 20);
    daemon.client().put("/o", &content);
    let mut reading = daemon.client();
    reading.write(b"GET /o HTTP/1.1\r\nHost: h\r\n\r\n");
    reading.more().unwrap();
    let mut writing = daemon.client();
    writing.write(b"PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab");
    let mut idle = daemon.client();
    assert_eq!(idle.get("/none").status, 404);
    // The daemon has to have read the upload too: its connection alone would be one that nothing
    // has begun on.
    while daemon.stat()["received_body_bytes"] != content.len() + 2 {}
    daemon.signal(Signal::TERM);
    idle.assert_ended();
    // The other worker may be a moment later to stop listening.
    let until = Instant::now() + PATIENCE;
    while UnixStream::connect(&daemon.unix).is_ok() {
        assert!(Instant::now() < until, "{}", daemon.log());
    }
    writing.write(b"cd");
    let put = writing.response("PUT").unwrap();
    assert_eq!(put.status, 201);
    assert!(reading.response("GET").unwrap().body == content);
    drop((reading, writing));
    assert!(daemon.wait().success());
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(daemon.client().get("/p").body, b"abcd");
}

/// The daemon is stopped while requests come, so that all of them have come before it hears of its
/// end, and none of them is known to it.
#[test]
fn what_had_come_before_the_end_is_answered() {
    let dir = scratch();
    let mut daemon = Daemon::start(dir.path(), &["--listen", "tcp:127.0.0.1:0"]);
    let content = bytes(4, 1000);
    daemon.client().put("/o", &content);
    let mut kept = daemon.client();
    assert_eq!(kept.get("/o").status, 200);
    daemon.signal(Signal::STOP);
    let state = format!("/proc/{}/stat", daemon.pid());
    let until = Instant::now() + PATIENCE;
    while !fs::read_to_string(&state).unwrap().contains(") T ") {
        assert!(Instant::now() < until);
    }
    let connect =
        |at: usize| if at.is_multiple_of(2) { daemon.client() } else { daemon.tcp_client() };
    let mut waiting: Vec<_> = (0..200).map(connect).collect();
    for client in waiting.iter_mut().chain([&mut kept]) {
        client.write(b"GET /o HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    daemon.signal(Signal::TERM);
    daemon.signal(Signal::CONT);
    for (at, client) in waiting.iter_mut().chain([&mut kept]).enumerate() {
        let got = client.response("GET").unwrap_or_else(|| panic!("{at} is dropped"));
        assert!(got.status == 200 && got.body == content, "{at}");
    }
    drop((waiting, kept));
    assert!(daemon.wait().success());
}

#[test]
fn patience_has_an_end_and_a_second_signal_ends_it_sooner() {
    for second in [false, true] {
        let dir = scratch();
        let patience = if second { "1000" } else { "0.4" };
        let mut daemon = Daemon::start(dir.path(), &["--drain-timeout", patience]);
        let mut stuck = daemon.client();
        stuck.write(b"PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab");
        while daemon.stat()["connections"] != 2 {}
        daemon.signal(Signal::TERM);
        if second {
            thread::sleep(Duration::from_millis(100));
            daemon.signal(Signal::INT);
        }
        assert!(daemon.wait().success());
        assert!(!daemon.unix.exists());
    }
}

#[test]
fn hup_reads_the_file_again_and_opens_the_log_anew() {
    let dir = scratch();
    let (file, log) = (dir.path().join("conf.toml"), dir.path().join("access"));
    fs::write(&file, format!("mode = \"copy\"\naccess-log = \"{}\"\n", log.display())).unwrap();
    let daemon = Daemon::start(dir.path(), &["--config", file.to_str().unwrap()]);
    daemon.client().put("/o", &bytes(3, 100_000));
    daemon.client().get("/o");
    let lines = |path: &std::path::Path| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let wait_for = |what: &dyn Fn() -> bool| {
        let until = Instant::now() + PATIENCE;
        while !what() {
            assert!(Instant::now() < until, "{}", daemon.log());
            thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(&|| lines(&log).len() == 2);
    // The lines are of two workers, which write them in no order.
    let line = lines(&log).into_iter().find(|line| line["status"] == 200).expect("the GET's line");
    assert_eq!(line["path"], "/o");
    assert_eq!((&line["mode"], &line["body_bytes"]), (&"copy".into(), &100_000.into()));
    fs::rename(&log, dir.path().join("access.1")).unwrap();
    fs::write(&file, "mode = \"sendfile\"\nreader = \"splice\"\n").unwrap();
    daemon.signal(Signal::HUP);
    wait_for(&|| daemon.stat()["mode"] == "sendfile");
    daemon.client().get("/o");
    wait_for(&|| lines(&log).iter().any(|line| line["mode"] == "sendfile"));
    // A mistake changes nothing.
    fs::write(&file, "mode = \"fast\"\n").unwrap();
    daemon.signal(Signal::HUP);
    wait_for(&|| daemon.log().contains("not reloaded"));
    assert_eq!(daemon.stat()["mode"], "sendfile");
}

#[test]
fn too_few_descriptors() {
    let dir = scratch();
    let daemon = Daemon::start_with(dir.path(), &[], |command| {
        let limit = || {
            let few = Rlimit { current: Some(60), maximum: Some(60) };
            setrlimit(Resource::Nofile, few).map_err(Into::into)
        };
        // SAFETY: between fork and exec only a system call is made.
        unsafe { command.pre_exec(limit) };
    });
    // More objects than may be open: the oldest make room.
    for at in 0..80 {
        assert_eq!(daemon.client().put(&format!("/{at}"), &bytes(at, 100)).status, 201);
        assert_eq!(daemon.client().get(&format!("/{at}")).status, 200);
    }
    // More connections than may be open: those that are too many wait in the queue, and none is
    // turned away; the daemon does not ask again and again.
    let mut clients: Vec<_> = (0..80).map(|_| daemon.client()).collect();
    let until = Instant::now() + PATIENCE;
    while !daemon.log().contains("out of descriptors") {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(10));
    }
    // It uses what it can get of two CPUs if it spins, and next to nothing if it does not: how busy
    // the machine is makes neither more.
    let before = daemon.cpu_ticks();
    std::thread::sleep(Duration::from_secs(1));
    let (ticks, open) = (daemon.cpu_ticks() - before, daemon.descriptors());
    println!("out of descriptors, {open} open: {ticks} % of a CPU");
    assert!(ticks < 20, "{ticks} ticks of a hundred");
    assert!(daemon.log().matches("out of descriptors").count() < 40, "it spins");
    while let Some(mut client) = clients.pop() {
        clients.truncate(clients.len().saturating_sub(1));
        client.write(b"GET /3 HTTP/1.1\r\nHost: t\r\n\r\n");
        // Those who went may still hold what the object would be opened with.
        if clients.is_empty() {
            let status = client.response("GET").unwrap().status;
            assert!([200, 503].contains(&status), "{status}");
        }
    }
    while daemon.client().get("/3").status != 200 {
        assert!(Instant::now() < until);
    }
    daemon.stop();
}

/// A client that asks, and asks, and reads nothing: what it sent waits in its socket.
#[test]
fn clients_that_pipeline_and_never_read_hold_little() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(daemon.client().put("/o", &bytes(1, 64 << 10)).status, 201);
    daemon.client().get("/o");
    let before = daemon.resident_bytes();
    let request = b"GET /o HTTP/1.1\r\nHost: t\r\n\r\n".repeat(8000);
    let clients: Vec<_> = (0..200)
        .map(|_| {
            let mut client = UnixStream::connect(&daemon.unix).unwrap();
            client.set_nonblocking(true).unwrap();
            // It sends what the socket takes.
            while client.write(&request).is_ok() {}
            client
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    let each = daemon.resident_bytes().saturating_sub(before) / clients.len() as u64;
    println!("each client that pipelines and does not read: {each} bytes");
    assert!(each < 64 << 10, "{each}");
}

/// A promise of much takes none of the disk from others.
#[test]
fn a_head_alone_reserves_little_of_the_disk() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let mut clients = Vec::new();
    for at in 0..10 {
        let mut client = daemon.client();
        let head = format!(
            "PUT /{at} HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            1_u64 << 30
        );
        client.write(head.as_bytes());
        assert_eq!(client.response("PUT").unwrap().status, 100);
        clients.push(client);
    }
    let held = || -> u64 {
        let files = fs::read_dir(daemon.data().join("temporary")).unwrap();
        files
            .map(|file| {
                std::os::unix::fs::MetadataExt::blocks(&file.unwrap().metadata().unwrap()) * 512
            })
            .sum()
    };
    let (promised, sent) = (held(), 1 << 20);
    for client in &mut clients {
        client.write(&bytes(1, sent));
    }
    let all = clients.len() * sent;
    let until = Instant::now() + PATIENCE;
    while daemon.stat()["received_body_bytes"] != all {
        assert!(Instant::now() < until);
    }
    let came = held();
    println!(
        "ten heads that promise 1 GiB each have reserved {promised} bytes; with {sent} bytes of each \
         body, {came}"
    );
    assert_eq!(promised, 0);
    // A block more for each.
    assert!(came <= 2 * (all as u64 + (clients.len() << 16) as u64), "{came}");
}

#[test]
fn more_connections_than_are_wanted() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &["--connections-max", "3", "--workers", "1"]);
    let mut held: Vec<_> = (0..3).map(|_| daemon.client()).collect();
    for client in &mut held {
        assert_eq!(client.get("/x").status, 404);
        // In the middle of something, so that they make no room.
        client.write(b"GET /x HTTP/1.1\r\n");
    }
    let got = daemon.client().get("/x");
    assert_eq!((got.status, got.header("retry-after")), (503, Some("1")));
    let mut last = held.pop().unwrap();
    last.write(b"Host: h\r\n\r\n");
    assert_eq!(last.response("GET").unwrap().status, 404);
    // That one is idle now.
    for _ in 0..5 {
        assert_eq!(daemon.client().get("/x").status, 404);
    }
    last.assert_ended();
    for client in &mut held {
        client.write(b"Host: h\r\n\r\n");
        assert_eq!(client.response("GET").unwrap().status, 404);
    }
}

/// A limit on the size of files stands in for a full disk: the daemon survives its signal.
#[test]
fn a_file_that_may_not_grow() {
    let dir = scratch();
    let daemon = Daemon::start_with(dir.path(), &[], |command| {
        let limit = || {
            let small = Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
            setrlimit(Resource::Fsize, small).map_err(Into::into)
        };
        // SAFETY: between fork and exec only a system call is made.
        unsafe { command.pre_exec(limit) };
    });
    let kept = bytes(1, 500_000);
    assert_eq!(daemon.client().put("/o", &kept).status, 201);
    assert_eq!(daemon.client().put("/o", &bytes(2, 2 << 20)).status, 507);
    let mut client = daemon.client();
    client.write(b"PUT /o HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n");
    let _ = client.try_write(&bytes(2, 2 << 20));
    assert_eq!(client.response("PUT").unwrap().status, 507);
    assert!(daemon.client().get("/o").body == kept);
    assert_eq!(fs::read_dir(daemon.data().join("temporary")).unwrap().count(), 0);
    daemon.stop();
}

#[test]
fn what_it_is_told_wrongly() {
    let dir = scratch();
    let run = |args: &[&str], fault: Option<&str>| {
        let mut command = program();
        command.args(args);
        if let Some(fault) = fault {
            command.env("STORAGED_FAULT", fault);
        }
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let file = dir.path().join("conf.toml");
    fs::write(&file, "listen = [\"unix:/tmp/s\"]\nmod = \"nt\"\n").unwrap();
    let file = file.to_str().unwrap();
    for (args, fault, code, word) in [
        (&["--data", "/x"][..], None, 2, "--listen"),
        (&["--listen", "unix:/s"], None, 2, "--data"),
        (&["--listen", "nowhere", "--data", "/x"], None, 2, "nowhere"),
        (&["--mode", "fast"], None, 2, "fast"),
        (&["--config", file], None, 2, "line 2"),
        (&["--config", "/none"], None, 2, "/none"),
        (&["--zstd", "3"], None, 2, "compress before the PUT"),
        (&["--zstd=3"], None, 2, "compress before the PUT"),
        (&["--decoded-max", "1GiB"], None, 2, "leave it out"),
        (&["--capabilities"], Some("kill@nowhere"), 2, "no such step"),
        (&["fsck", "/none"], None, 1, "/none"),
        (&["fsck", "/tmp"], None, 1, "/tmp"),
    ] {
        let (got, words) = run(args, fault);
        assert_eq!(got, code, "{args:?}: {words}");
        assert!(words.contains(word), "{args:?}: {words}");
    }
}

/// Ends with the same code as `cat` would, and without a panic.
#[test]
fn a_reader_that_is_gone_and_a_full_disk() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let mut client = daemon.client();
    for at in 0..2000 {
        assert_eq!(client.put(&format!("/{at}"), b"x").status, 201);
        let file = daemon.data().join(format!("objects/o-{at}"));
        fs::write(file, b"torn").unwrap();
    }
    drop(client);
    let data = daemon.data().to_str().unwrap().to_owned();
    for args in [
        &["fsck", &data][..],
        &["fsck", "--json", &data],
        &["--capabilities"],
        &["--help"],
        &["--version"],
        &["fsck", "--help"],
    ] {
        let run = |out: Stdio| {
            let output = program().args(args).stdout(out).output().unwrap();
            (output.status, String::from_utf8(output.stderr).unwrap())
        };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (status, words) = run(writer.into());
        assert_eq!((status.signal(), &*words), (Some(Signal::PIPE.as_raw()), ""), "{args:?}");
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (status, words) = run(full.into());
        assert_eq!(status.code(), Some(1), "{args:?}: {words}");
        assert!(words.contains("No space left") && words.lines().count() == 1, "{words}");
    }
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = program().arg("--none").stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    // A log that can't be written costs lines, and no worker.
    let other = scratch();
    let quiet = Daemon::start_with(other.path(), &[], |command| {
        command.stderr(full());
    });
    for _ in 0..20 {
        assert_eq!(quiet.client().get("/none").status, 404);
    }
    quiet.stop();
}

#[test]
fn on_a_terminal_the_log_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let script = format!(
        "{} --listen unix:{at}/s --data {at}/data & \
         until [ -S {at}/s ] || ! kill -0 $!; do sleep 0.1; done; kill $!; wait $!",
        env!("CARGO_BIN_EXE_storaged")
    );
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &script, "/dev/null"]);
    let output = terminal.env("TERM", "xterm").stdin(Stdio::null()).output().unwrap();
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{log}");
    assert!(log.contains("INFO ended") && !log.contains('\x1b') && !log.contains("ansi"), "{log}");
}

/// An object's file as storaged 0.2 wrote it with `--zstd`, as far as this version reads it.
fn compress(path: &std::path::Path) {
    let mut file = fs::read(path).unwrap();
    let (length, follow) = (file.len(), trailer_bytes(&file, file.len() as u64).unwrap());
    let sealed = length - HASH_BYTES;
    file[length - TAIL_BYTES + 36] = 1;
    let seal = seal(&file[length - follow..sealed]);
    file[sealed..].copy_from_slice(&seal);
    fs::write(path, file).unwrap();
}

#[test]
fn a_folder_of_0_2_is_taken_over_unless_it_has_compressed_objects() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    for path in ["/plain", "/a/one", "/a/two"] {
        assert_eq!(daemon.client().put(path, b"content").status, 201);
    }
    let (data, objects) = (daemon.data(), daemon.data().join("objects"));
    daemon.stop();
    let format = data.join("format");
    fs::write(&format, "storaged 1\n").unwrap();
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(daemon.client().get("/a/one").body, b"content");
    daemon.stop();
    assert_eq!(fs::read_to_string(&format).unwrap(), "storaged 2\n");

    fs::write(&format, "storaged 1\n").unwrap();
    for name in ["d-a/o-one", "d-a/o-two"] {
        compress(&objects.join(name));
    }
    let (socket, data) = (dir.path().join("s"), data.to_str().unwrap());
    let listen = format!("unix:{}", socket.display());
    for args in [&["--listen", &listen, "--data", data][..], &["fsck", data]] {
        let output = program().args(args).output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains("(2, the first is a/one)"), "{words}");
        assert!(words.contains("GET each of them and PUT it again"), "{words}");
    }
    assert_eq!(fs::read_to_string(&format).unwrap(), "storaged 1\n", "nothing was changed");
}

/// A socket that nothing answers on is replaced; what isn't a socket is left alone.
#[test]
fn a_socket_in_the_way() {
    let dir = scratch();
    drop(UnixListener::bind(dir.path().join("socket")).unwrap());
    let daemon = Daemon::start(dir.path(), &[]);
    let mut stream = UnixStream::connect(&daemon.unix).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut got = String::new();
    stream.read_to_string(&mut got).unwrap();
    assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
}

#[test]
fn folders_go_with_their_last_object_and_keys_are_not_deep() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let mut client = daemon.client();
    let deepest = ["s"; 32].join("/");
    assert_eq!(client.put(&format!("/{deepest}"), b"x").status, 201);
    assert_eq!(client.put("/s/s/t", b"y").status, 201);
    assert_eq!(folders(&daemon), 31);
    assert_eq!(client.delete(&format!("/{deepest}")).status, 204);
    assert_eq!(folders(&daemon), 2, "those with an object stay");
    assert_eq!(client.delete("/s/s/t").status, 204);
    assert_eq!(folders(&daemon), 0);
    assert_eq!(client.put(&format!("/{deepest}"), b"z").status, 201, "and are made anew");
    assert_eq!(client.get(&format!("/{deepest}")).body, b"z");
    assert_eq!(daemon.client().put(&format!("/{deepest}/s"), b"x").status, 400);
    assert_eq!(daemon.client().request("PUT", "/q/r", "If-Match: *\r\n", b"x").status, 412);
    let _ = client.delete(&format!("/{deepest}"));
    assert_eq!(folders(&daemon), 0);
}

/// One client deletes what makes the folder empty, others put something there.
#[test]
fn a_folder_that_goes_takes_no_object_along() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    std::thread::scope(|scope| {
        for at in 0..6 {
            let daemon = &daemon;
            scope.spawn(move || {
                let mut client = daemon.client();
                let path = format!("/a/b/c/{at}");
                for round in 0..60 {
                    let put = client.put(&path, &[round; 10]);
                    assert_eq!(put.status, 201, "{}", put.text());
                    assert_eq!(client.get(&path).body, [round; 10]);
                    assert_eq!(client.delete(&path).status, 204);
                }
            });
        }
    });
    assert_eq!(folders(&daemon), 0);
}

/// The disk does not answer those who make folders. Others change what is there, and take folders
/// away, all the same.
#[test]
fn who_makes_folders_makes_nobody_else_wait() {
    if !has_fault_points() {
        return;
    }
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    for path in ["/here/a", "/here/b", "/gone/a"] {
        assert_eq!(daemon.client().put(path, b"x").status, 201);
    }
    daemon.kill();
    let daemon = Daemon::start_with(dir.path(), &[], |command| {
        command.env("STORAGED_FAULT", "stall@put.make_folder");
    });
    let mut stuck: Vec<_> = (0..8).map(|_| daemon.client()).collect();
    for (at, client) in stuck.iter_mut().enumerate() {
        client.write(
            format!("PUT /d{at}/e/f HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx").as_bytes(),
        );
    }
    let until = Instant::now() + PATIENCE;
    while daemon.stat()["received_body_bytes"] != stuck.len() {
        assert!(Instant::now() < until);
    }
    let mut client = daemon.client();
    for at in 0..20 {
        assert_eq!(client.put("/small", &bytes(at, 10)).status, if at == 0 { 201 } else { 204 });
        assert_eq!(client.get("/here/a").body, b"x");
    }
    for path in ["/here/a", "/here/b", "/gone/a"] {
        assert_eq!(client.delete(path).status, 204);
    }
    assert_eq!(folders(&daemon), 0);
    daemon.kill();
}
