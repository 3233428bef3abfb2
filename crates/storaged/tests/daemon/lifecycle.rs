//! Starting, running out of things, and ending.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Resource, Signal};

use crate::common::{Daemon, Peer, bytes, eventually, program, scratch};

#[test]
fn a_folder_has_one_daemon() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let other = scratch();
    let second = |data: &std::path::Path| {
        let listen = format!("unix:{}", other.path().join("s").display());
        let mut command = program();
        command.args(["--listen", &listen, "--data"]).arg(data).stdout(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let words = second(&daemon.data());
    assert!(words.contains("in use by another process"), "{words}");
    let folder = scratch();
    fs::write(folder.path().join("letter"), "kept").unwrap();
    let words = second(folder.path());
    assert!(words.contains("holds no store") && words.contains("--create"), "{words}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was changed");
    assert_eq!(daemon.client().get("/x").status, 404);
}

#[test]
fn a_check_looks_at_the_settings_and_the_folder_and_changes_nothing() {
    let dir = scratch();
    let data = dir.path().join("data");
    let file = dir.path().join("s.toml");
    let settings = format!("listen = [\"/run/s\"]\ndata = {data:?}\n");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        let output = program().arg("--check").arg("--config").arg(&file).output().unwrap();
        assert!(output.stdout.is_empty());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, words) = check(&settings);
    assert!(code == Some(1) && words.contains("holds no store"), "{words}");
    assert!(!data.exists());
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(check(&settings), (Some(0), String::new()), "one that runs is not in its way");
    assert_eq!(daemon.client().get("/x").status, 404);
    daemon.stop();
    assert_eq!(check(&settings), (Some(0), String::new()));
    for wrong in ["check = true", "open-objects = 0", "mode = \"fast\"", "public-lists = 1"] {
        let (code, words) = check(&format!("{settings}{wrong}\n"));
        assert!(code == Some(2) && words.contains("s.toml:3: "), "{wrong}: {words}");
    }
}

/// What does something else than to serve is for the command line alone.
#[test]
fn every_switch_is_a_setting_or_is_under_its_heading() {
    let command = <storaged::config::Config as clap::CommandFactory>::command();
    for arg in command.get_arguments().filter(|arg| !arg.get_action().takes_values()) {
        let acts = arg.get_help_heading() == Some(httpd::options::INSTEAD);
        assert!(acts || arg.get_id() == "public_lists", "{}", arg.get_id());
    }
}

#[test]
fn what_is_in_flight_is_finished_and_nothing_begins() {
    let dir = scratch();
    let mut daemon = Daemon::start(dir.path(), &["--drain-timeout", "60"]);
    let content = bytes(2, 8 << 20);
    daemon.client().put("/o", &content);
    let mut reading = daemon.client();
    reading.send(b"GET /o HTTP/1.1\r\nHost: h\r\n\r\n");
    reading.more();
    let mut writing = daemon.client();
    writing.send(b"PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab");
    let mut idle = daemon.client();
    assert_eq!(idle.get("/none").status, 404);
    // The daemon has to have read the upload too: its connection alone would be one that nothing
    // has begun on.
    let all = content.len() as u64 + 2;
    daemon.wait_for_stat(|stat| stat["received_body_bytes_total"] == all);
    daemon.process.signal(Signal::HUP);
    assert_eq!(idle.get("/none").status, 404, "it goes on");
    daemon.process.signal(Signal::TERM);
    idle.assert_ended();
    // The other worker may be a moment later to stop listening.
    eventually("nobody can connect", || UnixStream::connect(&daemon.unix).is_err());
    writing.send(b"cd");
    let put = writing.answer().unwrap();
    assert_eq!(put.status, 201);
    assert!(reading.answer().unwrap().body == content);
    drop((reading, writing));
    assert!(daemon.process.wait().success());
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(daemon.client().get("/p").body, b"abcd");
}

#[test]
fn too_few_descriptors() {
    let dir = scratch();
    let daemon = Daemon::start_limited(dir.path(), Resource::Nofile, 60);
    // More objects than may be open: the oldest make room.
    for at in 0..80 {
        assert_eq!(daemon.client().put(&format!("/{at}"), &bytes(at, 100)).status, 201);
        assert_eq!(daemon.client().get(&format!("/{at}")).status, 200);
    }
    // More connections than may be open, none of them idle: those that are too many wait in the
    // queue, and none is turned away; the daemon does not ask again and again.
    let mut clients: Vec<_> = (0..80)
        .map(|_| {
            let mut client = daemon.client();
            client.send("GET /3");
            client
        })
        .collect();
    eventually("it says so", || daemon.log().contains("no connection is accepted"));
    // It uses what it can get of two CPUs if it spins, and next to nothing if it does not: how busy
    // the machine is makes neither more.
    let before = daemon.cpu_ticks();
    std::thread::sleep(Duration::from_secs(1));
    let (ticks, open) = (daemon.cpu_ticks() - before, daemon.process.descriptors());
    println!("out of descriptors, {open} open: {ticks} % of a CPU");
    assert!(ticks < 20, "{ticks} ticks of a hundred");
    assert!(daemon.log().matches("no connection is accepted").count() < 40, "it spins");
    // Those who went may still hold what the object would be opened with.
    let mut last = clients.pop().unwrap();
    drop(clients);
    last.send(" HTTP/1.1\r\nHost: t\r\n\r\n");
    let status = last.answer().unwrap().status;
    assert!([200, 503].contains(&status), "{status}");
    eventually("the object is had", || daemon.client().get("/3").status == 200);
    daemon.stop();
}

/// Beyond as many as there are descriptors for, the longest idle makes room for each that comes.
#[test]
fn where_descriptors_run_out_the_longest_idle_makes_room() {
    let dir = scratch();
    let daemon = Daemon::start_limited(dir.path(), Resource::Nofile, 60);
    assert_eq!(daemon.client().put("/o", b"x").status, 201);
    let mut clients: Vec<Peer> = Vec::new();
    for at in 0..200 {
        let mut client = daemon.client();
        assert_eq!(client.get("/o").status, 200, "{at}");
        clients.push(client);
    }
    clients[0].assert_ended();
    assert_eq!(clients[199].get("/o").status, 200);
    assert!(daemon.stat()["evicted_total"] >= 140);
    daemon.stop();
}

#[test]
fn connections_to_the_metrics_are_few_and_the_newest_count() {
    let dir = scratch();
    let daemon = Daemon::start_limited(dir.path(), Resource::Nofile, 100);
    let idle: Vec<_> = (0..200).map(|_| Peer::connect(&daemon.metrics)).collect();
    assert_eq!(daemon.client().get("/none").status, 404);
    daemon.wait_for_stat(|stat| stat["metrics_evicted_total"] >= 185);
    let stat = daemon.stat();
    assert!(stat["metrics_connections"] <= 17, "{stat:?}");
    drop(idle);
    daemon.wait_for_stat(|stat| stat["metrics_connections"] == 1);
    daemon.stop();
}

/// A client that asks, and asks, and reads nothing: what it sent waits in its socket.
#[test]
fn clients_that_pipeline_and_never_read_hold_little() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(daemon.client().put("/o", &bytes(1, 64 << 10)).status, 201);
    daemon.client().get("/o");
    let before = daemon.process.resident_bytes();
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
    let each = daemon.process.resident_bytes().saturating_sub(before) / clients.len() as u64;
    println!("each client that pipelines and does not read: {each} bytes");
    assert!(each < 64 << 10, "{each}");
}

/// More than half of the largest int is nobody's; below, `net.core.wmem_max` bounds it.
#[test]
fn a_send_buffer_that_the_kernel_cuts_is_said_with_the_setting() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &["--sndbuf", "2047MiB"]);
    let is_said =
        |log: &str| log.contains("--sndbuf") && log.contains("net.core.wmem_max=2146435072");
    eventually("it says so", || is_said(&daemon.log()));
}

/// Answers that are not read leave no room, after one number of them, for the 100 that a PUT waits
/// for. Its client is let go as any that takes nothing, and its file with it.
#[test]
fn a_client_that_takes_no_100_is_let_go() {
    let dir = scratch();
    let times = ["--send-timeout", "--body-timeout", "--head-timeout"];
    let args: Vec<&str> = times.iter().flat_map(|name| [*name, "0.3"]).collect();
    let args = [&args[..], &["--sndbuf", "8KiB", "--listen", "tcp:127.0.0.1:0"]].concat();
    let daemon = Daemon::start(dir.path(), &args);
    let put = "PUT /p HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let clients: Vec<_> = (1..100)
        .map(|answers| {
            let mut client = daemon.client();
            client.send("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n".repeat(answers) + put);
            client
        })
        .collect();
    // The one that asks, and nobody else.
    daemon.wait_for_stat(|stat| stat["connections"] == 1);
    eventually("their files are gone", || daemon.blobs() == 0);
    assert!(!daemon.log().contains("wmem_max"), "{}", daemon.log());
    drop(clients);
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
        client.send(head.as_bytes());
        assert_eq!(client.answer().unwrap().status, 100);
        clients.push(client);
    }
    let held = || -> u64 {
        let files = fs::read_dir(daemon.data().join("blobs")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().blocks() * 512).sum()
    };
    let (promised, sent) = (held(), 1 << 20);
    for client in &mut clients {
        client.send(bytes(1, sent));
    }
    let all = clients.len() * sent;
    daemon.wait_for_stat(|stat| stat["received_body_bytes_total"] == all as u64);
    let came = held();
    println!(
        "ten heads that promise 1 GiB each have reserved {promised} bytes; with {sent} bytes of each \
         body, {came}"
    );
    assert_eq!(promised, 0);
    // A block more for each.
    assert!(came <= 2 * (all as u64 + (clients.len() << 16) as u64), "{came}");
}

/// A limit on the size of files stands in for a full disk: the daemon survives its signal.
#[test]
fn a_file_that_may_not_grow() {
    let dir = scratch();
    let daemon = Daemon::start_limited(dir.path(), Resource::Fsize, 8 << 20);
    let kept = bytes(1, 500_000);
    assert_eq!(daemon.client().put("/o", &kept).status, 201);
    assert_eq!(daemon.client().put("/o", &bytes(2, 9 << 20)).status, 507);
    let mut client = daemon.client();
    client.send(b"PUT /o HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n900000\r\n");
    client.try_send(bytes(2, 9 << 20));
    assert_eq!(client.answer().unwrap().status, 507);
    assert!(daemon.client().get("/o").body == kept);
    daemon.wait_for_blobs(1, "what was refused leaves nothing");
    daemon.stop();
}

/// Ends with the same code as `cat` would, and without a panic.
#[test]
fn a_reader_that_is_gone_and_a_full_disk() {
    let dir = scratch();
    for args in [["--help"], ["--version"]] {
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
    let quiet = Daemon::start_with(dir.path(), &[], |command| {
        command.stderr(full());
    });
    for _ in 0..20 {
        assert_eq!(quiet.client().get("/none").status, 404);
    }
    quiet.stop();
}

/// Nobody reads the log, as when what should is stopped: requests are answered, metrics count what
/// is lost, and the daemon ends.
#[test]
fn a_log_that_nobody_reads_stops_nobody() {
    let dir = scratch();
    let (_reader, writer) = std::io::pipe().unwrap();
    let mut daemon = Daemon::start_with(dir.path(), &[], |command| {
        command.stderr(writer);
    });
    let mut client = daemon.client();
    for _ in 0..100 {
        client.send(b"GET /none HTTP/1.1\r\nHost: t\r\n\r\n".repeat(100));
        for _ in 0..100 {
            assert_eq!(client.answer().unwrap().status, 404);
        }
    }
    assert!(daemon.stat()["log_lines_lost_total"] > 0);
    daemon.process.signal(Signal::TERM);
    assert!(daemon.process.wait().success());
}

/// systemd names the journal's socket by device and inode, which a file has as well.
#[test]
fn lines_for_the_journal_have_priorities_and_no_times() {
    let dir = scratch();
    let log = dir.path().join("log");
    let name = || {
        let file = fs::metadata(&log).unwrap();
        format!("{}:{}", file.dev(), file.ino())
    };
    let daemon = Daemon::start_with(dir.path(), &[], |command| {
        command.env("JOURNAL_STREAM", name());
    });
    assert_eq!(daemon.client().get("/none").status, 404);
    eventually("the request is logged", || daemon.log().contains("/none"));
    let lines = daemon.log();
    for line in lines.lines() {
        let words = line.strip_prefix("<7>").or(line.strip_prefix("<6>")).expect(line);
        assert!(words.trim_start().starts_with(|first: char| first.is_alphabetic()), "{line}");
    }
    daemon.stop();
    let file = fs::File::create(&log).unwrap();
    let mut refused = program();
    refused.args(["--config", "/none.toml"]).env("JOURNAL_STREAM", name()).stderr(file);
    assert_eq!(refused.status().unwrap().code(), Some(2));
    let words = fs::read_to_string(&log).unwrap();
    assert!(words.starts_with("<3>storaged: /none.toml: "), "{words}");
    let elsewhere = Daemon::start_with(dir.path(), &[], |command| {
        command.env("JOURNAL_STREAM", "1:1");
    });
    eventually("a line", || elsewhere.log().contains(" INFO "));
    assert!(!elsewhere.log().contains("<6>"));
}

/// The disk does not answer lists, or changes: others are served all the same.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn who_waits_for_the_disk_makes_nobody_else_wait() {
    for (fault, stuck) in [
        ("stall@list", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("stall@delete.commit", "DELETE /o HTTP/1.1\r\nHost: h\r\n\r\n"),
    ] {
        let dir = scratch();
        let daemon = Daemon::start(dir.path(), &[]);
        for at in 0..20 {
            assert_eq!(daemon.client().put(&format!("/{at}"), b"x").status, 201);
        }
        daemon.client().put("/o", b"x");
        daemon.kill();
        let mut daemon = Daemon::start_with_fault(dir.path(), fault);
        let mut clients: Vec<_> = (0..40).map(|_| daemon.client()).collect();
        for client in &mut clients {
            client.send(stuck.as_bytes());
        }
        for at in 0..20 {
            // None of them is open yet.
            assert_eq!(daemon.client().get(&format!("/{at}")).body, b"x", "{fault}");
        }
        if fault == "stall@list" {
            assert_eq!(daemon.client().put("/new", b"x").status, 201);
        }
        drop(clients);
        daemon.process.signal(Signal::TERM);
        daemon.process.signal(Signal::INT);
        assert!(daemon.process.wait().success(), "a disk that does not answer holds no end up");
    }
}

/// One worker, and a disk that does not answer whoever stores, vanishes, or wants what was not read
/// yet: who asks for what is there already is served.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn the_loop_does_not_wait_for_the_disk() {
    let put = "PUT /p HTTP/1.1\r\nHost: t\r\nContent-Length: 400000\r\n\r\n";
    for (fault, stuck) in [
        ("stall@put.write", (put.to_owned() + &"x".repeat(300_000))),
        ("stall@put.mark", (put.to_owned() + &"x".repeat(400_000))),
        ("stall@cut.remove", put.to_owned()),
        ("stall@get.map:2", "GET /large HTTP/1.1\r\nHost: t\r\n\r\n".to_owned()),
    ] {
        let dir = scratch();
        let daemon = Daemon::start(dir.path(), &[]);
        assert_eq!(daemon.client().put("/o", b"x").status, 201);
        assert_eq!(daemon.client().put("/large", &bytes(1, 400_000)).status, 201);
        daemon.kill();
        let daemon =
            Daemon::start_with(dir.path(), &["--workers", "1", "--mode", "copy"], |command| {
                command.env("STORAGED_FAULT", fault);
            });
        let mut client = daemon.client();
        assert_eq!(client.get("/o").body, b"x");
        let mut other = daemon.client();
        other.send(stuck.as_bytes());
        if fault == "stall@cut.remove" {
            eventually("it has begun", || daemon.blobs() == 3);
            drop(other);
        }
        eventually("it is stuck", || daemon.log().contains("a fault"));
        assert_eq!(client.get("/o").body, b"x", "{fault}");
        daemon.kill();
    }
}
