//! Every way into a socket brings the same bytes, to every kind of reader.

use std::fs;

use crate::common::{Daemon, bytes, eventually, scratch};

const MODES: [&str; 4] = ["auto", "copy", "nt", "sendfile"];
const SIZES: [usize; 7] = [1, 4095, 16_383, 16_384, 70_000, 1 << 20, 5_000_001];

#[test]
fn the_bytes_are_the_same_in_every_mode() {
    let hints = ntcopy::socket::kernel_support() != ntcopy::socket::Support::None;
    let contents: Vec<_> = SIZES.iter().map(|size| bytes(*size as u64, *size)).collect();
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    for (at, content) in contents.iter().enumerate() {
        daemon.client().put(&format!("/{at}"), content);
    }
    daemon.stop();
    for mode in MODES {
        let args = ["--mode", mode, "--listen", "tcp:127.0.0.1:0"];
        let daemon = Daemon::start(dir.path(), &args);
        for mut client in [daemon.client(), daemon.tcp_client()] {
            for (at, content) in contents.iter().enumerate() {
                for reader in ["", "Ntcopy-Reader: splice\r\n", "Ntcopy-Reader: cpu\r\n"] {
                    let what = format!("{mode} {} {reader:?}", content.len());
                    let got = client.request("GET", &format!("/{at}"), reader, b"");
                    assert!(got.status == 200 && got.body == *content, "{what}");
                    assert_eq!(got.header("ntcopy-reader"), None);
                    let half = content.len() / 2;
                    let range = format!("{reader}Range: bytes={half}-\r\n");
                    let got = client.request("GET", &format!("/{at}"), &range, b"");
                    assert!(got.status == 206 && got.body == content[half..], "{what}");
                }
            }
        }
        let expected = match mode {
            "auto" => "sendfile",
            "nt" if !hints => "copy",
            mode => mode,
        };
        // What the daemon says it did is what was asked for; what is small, and what a CPU reads at
        // once, may be copied.
        daemon.wait_for_stat(|stat| {
            MODES[1..].iter().all(|name| {
                let sent = stat[&format!("sent_{name}_bytes_total")];
                *name == "copy" || (sent > 10_000_000) == (*name == expected)
            })
        });
        assert_eq!(daemon.stat()["aborted_responses_total"], 0);
    }
}

/// A slow reader gets the version that it began with, whatever becomes of the object meanwhile.
#[test]
fn a_slow_reader_keeps_its_version() {
    for mode in MODES {
        let dir = scratch();
        let daemon = Daemon::start(dir.path(), &["--mode", mode]);
        let old = bytes(3, 8 << 20);
        daemon.client().put("/o", &old);
        let mut slow = daemon.client();
        slow.send(b"GET /o HTTP/1.1\r\nHost: h\r\nNtcopy-Reader: splice\r\n\r\n");
        slow.more();
        assert_eq!(daemon.client().put("/o", &bytes(4, 8 << 20)).status, 204);
        assert_eq!(daemon.client().delete("/o").status, 204);
        assert_eq!(daemon.client().get("/o").status, 404);
        assert!(slow.answer().unwrap().body == old, "{mode}");
    }
}

#[test]
fn clients_that_vanish_cost_nothing_that_stays() {
    for mode in MODES {
        let dir = scratch();
        let daemon = Daemon::start(dir.path(), &["--mode", mode, "--open-objects", "4"]);
        let content = bytes(5, 4 << 20);
        daemon.client().put("/o", &content);
        assert!(daemon.client().get("/o").body == content);
        let vanish = |count: usize| {
            for at in 0..count {
                let mut client = daemon.client();
                let request = match at % 3 {
                    0 => "GET /o HTTP/1.1\r\nHost: h\r\n\r\n",
                    1 => "PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: 999\r\n\r\nxyz",
                    _ => "GET /o HT",
                };
                client.send(request);
                if at % 6 == 0 {
                    client.bytes(1000);
                }
            }
            daemon.wait_for_stat(|stat| stat["connections"] == 1);
        };
        vanish(30);
        let before = daemon.process.descriptors();
        vanish(480);
        eventually("descriptors are closed", || daemon.process.descriptors() <= before + 8);
        daemon.wait_for_blobs(1, mode);
        assert!(daemon.client().get("/o").body == content, "{mode}");
    }
}

/// KiB of objects that a daemon's mappings have in memory.
fn mapped_kib(daemon: &Daemon) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/smaps", daemon.process.0.id())).unwrap();
    let (_, maps) = text.split_once("/blobs/").expect("an object is mapped");
    let resident = maps.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    resident.trim_end_matches("kB").trim().parse().unwrap()
}

#[test]
fn a_range_reads_its_range() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &["--mode", "copy"]);
    let content = bytes(1, 32 << 20);
    assert_eq!(daemon.client().put("/o", &content).status, 201);
    let mut client = daemon.client();
    for (range, first, last) in [("0-0", 0, 0), ("20000000-20000999", 20_000_000, 20_000_999)] {
        let got = client.request("GET", "/o", &format!("Range: bytes={range}\r\n"), b"");
        assert!(got.status == 206 && got.body == content[first..=last], "{range}");
        assert!(mapped_kib(&daemon) < 4 << 10, "{range}: {} KiB", mapped_kib(&daemon));
    }
    assert!(client.get("/o").body == content);
    assert_eq!(mapped_kib(&daemon), 32 << 10);
}
