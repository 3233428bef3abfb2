//! The daemon dies at every step of every change, and its disk fails at every step.
//!
//! Needs a build that obeys STORAGED_FAULT; another says so and these tests are skipped.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{Daemon, Peer, bytes, has_fault_points, scratch};

/// More steps than any change has.
const STEPS_MAX: u64 = 60;

/// A change to one key, and what is there before it.
#[derive(Debug, Clone, Copy)]
struct Change {
    name: &'static str,
    key: &'static str,
    before: Option<(u64, usize)>,
    /// What a PUT stores; `None`: a DELETE.
    after: Option<(u64, usize)>,
    /// Steps that it has at the least.
    steps: u64,
}

const fn change(
    name: &'static str,
    key: &'static str,
    before: Option<(u64, usize)>,
    after: Option<(u64, usize)>,
    steps: u64,
) -> Change {
    Change { name, key, before, after, steps }
}

/// A PUT creates, writes, syncs twice, commits and answers; a DELETE commits and answers.
const CHANGES: [Change; 4] = [
    change("a first object", "/a/b/o", None, Some((1, 150_000)), 6),
    change("another version", "/a/o", Some((1, 150_000)), Some((2, 70_000)), 6),
    change("an empty version", "/o", Some((1, 10)), Some((2, 0)), 5),
    change("a deletion", "/a/o", Some((1, 150_000)), None, 2),
];

fn content(of: Option<(u64, usize)>) -> Option<Vec<u8>> {
    of.map(|(seed, count)| bytes(seed, count))
}

/// What the daemon has for a key.
fn stored(client: &mut Peer, key: &str) -> Option<Vec<u8>> {
    let got = client.get(key);
    match got.status {
        200 => Some(got.body),
        404 => None,
        status => panic!("{key}: {status} {}", got.text()),
    }
}

/// A folder with an object to keep and what `change` needs.
fn prepare(dir: &Path, change: &Change) {
    let daemon = Daemon::start(dir, &[]);
    let mut client = daemon.client();
    assert_eq!(client.put("/kept", &bytes(9, 100_000)).status, 201);
    if let Some(before) = content(change.before) {
        assert_eq!(client.put(change.key, &before).status, 201);
    }
    daemon.stop();
}

/// Makes the change; whether it was acknowledged, refused, or cut off.
fn make(daemon: &Daemon, change: &Change) -> Option<u16> {
    let mut client = daemon.client();
    let response = match content(change.after) {
        Some(after) => client.try_request("PUT", change.key, "", &after),
        None => client.try_request("DELETE", change.key, "", b""),
    };
    response.map(|response| response.status)
}

fn check(daemon: &Daemon, change: &Change, acknowledged: bool, what: &str) {
    let mut client = daemon.client();
    assert!(stored(&mut client, "/kept").as_deref() == Some(&bytes(9, 100_000)), "{what}");
    let found = stored(&mut client, change.key);
    let new = found == content(change.after);
    let old = found == content(change.before);
    assert!(new || (old && !acknowledged), "{what}: neither the old nor the new object");
    assert_eq!(daemon.blobs(), daemon.list().len(), "{what}: files were left");
}

#[test]
fn killed_at_every_step() {
    if !has_fault_points() {
        return;
    }
    for change in CHANGES {
        let mut deaths = 0;
        loop {
            let step = deaths + 1;
            assert!(step <= STEPS_MAX, "{}: it has no end", change.name);
            let what = format!("{}, killed at step {step}", change.name);
            let dir = scratch();
            prepare(dir.path(), &change);
            let fault = format!("kill@change:{step}");
            let mut daemon = Daemon::start_with(dir.path(), &[], |command| {
                command.env("STORAGED_FAULT", &fault);
            });
            let status = make(&daemon, &change);
            let Some(status) = status else {
                assert_eq!(daemon.wait().signal(), Some(9), "{what}: {}", daemon.log());
                drop(daemon);
                let daemon = Daemon::start(dir.path(), &[]);
                check(&daemon, &change, false, &what);
                // And the change can still be made.
                assert!(matches!(make(&daemon, &change), Some(201 | 204 | 404)), "{what}");
                check(&daemon, &change, true, &what);
                deaths += 1;
                continue;
            };
            assert!(matches!(status, 201 | 204), "{what}: {status}");
            daemon.kill();
            let daemon = Daemon::start(dir.path(), &[]);
            check(&daemon, &change, true, &what);
            break;
        }
        assert!(deaths >= change.steps, "{}: only {deaths} steps", change.name);
    }
}

#[test]
fn the_disk_fails_at_every_step() {
    if !has_fault_points() {
        return;
    }
    for (error, status) in [("EIO", 500), ("ENOSPC", 507), ("EDQUOT", 507), ("EMFILE", 503)] {
        for change in CHANGES {
            for step in 1..=STEPS_MAX {
                let what = format!("{}, {error} at step {step}", change.name);
                let dir = scratch();
                prepare(dir.path(), &change);
                let fault = format!("{error}@change:{step}");
                let daemon = Daemon::start_with(dir.path(), &[], |command| {
                    command.env("STORAGED_FAULT", &fault);
                });
                let got = make(&daemon, &change);
                let done = matches!(got, Some(201 | 204));
                assert!(done || got == Some(status), "{what}: {got:?}");
                // The same daemon goes on, and a later one finds the same.
                check(&daemon, &change, done, &what);
                let now = stored(&mut daemon.client(), change.key);
                daemon.kill();
                let daemon = Daemon::start(dir.path(), &[]);
                assert!(stored(&mut daemon.client(), change.key) == now, "{what}");
                if done && step > change.steps {
                    break;
                }
                assert!(!done, "{what}: an error went unnoticed");
            }
            // One change is enough for the other errors; the steps are the same.
            if error != "EIO" {
                break;
            }
        }
    }
}

#[test]
fn errors_of_reading_are_answered_before_the_first_byte() {
    if !has_fault_points() {
        return;
    }
    for (fault, status) in [("EIO@get.open:1", 500), ("EMFILE@get.open:1", 503)] {
        let dir = scratch();
        prepare(dir.path(), &CHANGES[1]);
        let daemon = Daemon::start_with(dir.path(), &[], |command| {
            command.env("STORAGED_FAULT", fault);
        });
        let mut client = daemon.client();
        let got = client.get("/a/o");
        assert_eq!(got.status, status, "{fault}");
        assert!(!got.text().contains("EIO") && !got.text().contains("/tmp"), "{}", got.text());
        // The connection and the object are as good as before.
        assert!(client.get("/a/o").body == bytes(1, 150_000), "{fault}");
    }
}

/// Writers that know what was acknowledged, and a daemon that is killed at any moment.
#[test]
fn killed_at_any_moment_under_load() {
    const KEYS: usize = 4;
    let dir = scratch();
    // For each key: the last version that was acknowledged, and the last that was sent.
    let versions = Arc::new(Mutex::new([(0_u64, 0_u64); KEYS]));
    let object = |key: usize, version: u64| bytes(version * 100 + key as u64, 90_000);
    let rounds = std::env::var("STORAGED_KILL_ROUNDS").map_or(12, |text| text.parse().unwrap());
    for round in 0..rounds {
        let daemon = Daemon::start(dir.path(), &[]);
        let mut client = daemon.client();
        for key in 0..KEYS {
            let (acknowledged, sent) = versions.lock().unwrap()[key];
            let found = stored(&mut client, &format!("/k{key}"));
            let which = (acknowledged..=sent)
                .find(|version| found == (*version > 0).then(|| object(key, *version)));
            let which = which.unwrap_or_else(|| panic!("round {round}, key {key}: lost or torn"));
            // What is there now was read, and stays.
            versions.lock().unwrap()[key] = (which, sent);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..KEYS)
            .map(|key| {
                let (stop, versions) = (Arc::clone(&stop), Arc::clone(&versions));
                let mut client = daemon.client();
                thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let version = versions.lock().unwrap()[key].1 + 1;
                        versions.lock().unwrap()[key].1 = version;
                        let body = object(key, version);
                        match client.try_request("PUT", &format!("/k{key}"), "", &body) {
                            Some(response) => {
                                assert!(matches!(response.status, 201 | 204));
                                versions.lock().unwrap()[key].0 = version;
                            }
                            None => return,
                        }
                    }
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(40 + round % 12 * 17));
        daemon.kill();
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
    }
    let versions = versions.lock().unwrap();
    assert!(versions.iter().all(|(acknowledged, _)| *acknowledged > 0), "{versions:?}");
}
