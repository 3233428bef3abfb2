//! The daemon dies at every step of every change, and its disk fails at every step. proxyd's soak kills
//! it at any moment, under writers that know what was acknowledged.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use rustix::io::Errno;

use crate::common::{Daemon, Peer, bytes, scratch};

/// More steps than any change has, and more calls of the index's disk than a start and a change.
const STEPS_MAX: u64 = 300;

/// Seed and length of an object's content; `None` where there is none.
type Content = Option<(u64, usize)>;

/// A change to one key, by a PUT or a DELETE.
struct Change {
    key: &'static str,
    before: Content,
    after: Content,
}

const FIRST: Change = Change { key: "/a/b/o", before: None, after: Some((1, 150_000)) };
const CHANGES: [Change; 4] = [
    FIRST,
    Change { key: "/a/o", before: Some((1, 150_000)), after: Some((2, 70_000)) },
    Change { key: "/empty", before: Some((1, 10)), after: Some((2, 0)) },
    Change { key: "/deleted", before: Some((1, 150_000)), after: None },
];

fn content(of: Content) -> Option<Vec<u8>> {
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
    daemon.wait_for_blobs(daemon.list().len(), what);
}

/// What happens when `fault` comes at each of its steps in turn; and what may be answered then, nothing
/// where the daemon dies.
fn at_every_step(change: &Change, fault: &str, expected: &[u16]) {
    for step in 1..=STEPS_MAX {
        let what = format!("{}, {fault} at step {step}", change.key);
        let dir = scratch();
        prepare(dir.path(), change);
        let mut got = None;
        let mut now = None;
        if let Some(mut daemon) =
            Daemon::try_start_with_fault(dir.path(), &format!("{fault}:{step}"))
        {
            got = make(&daemon, change);
            let done = matches!(got, Some(201 | 204));
            match got {
                Some(status) => assert!(done || expected.contains(&status), "{what}: {status}"),
                None => assert!(expected.is_empty(), "{what}: {}", daemon.log()),
            }
            // The same daemon goes on, and a later one finds the same.
            now = got.map(|_| {
                check(&daemon, change, done, &what);
                stored(&mut daemon.client(), change.key)
            });
            if got.is_none() {
                assert_eq!(daemon.process.wait().signal(), Some(9), "{what}: {}", daemon.log());
            }
            let is_over = got.is_some() && !daemon.log().contains("a fault");
            daemon.kill();
            if is_over {
                assert!(step > 2, "{what}: it went unnoticed");
                return;
            }
        }
        let done = matches!(got, Some(201 | 204));
        let daemon = Daemon::start(dir.path(), &[]);
        check(&daemon, change, done, &what);
        let later = stored(&mut daemon.client(), change.key);
        assert!(now.is_none_or(|now| now == later), "{what}");
        // And the change can still be made.
        assert!(matches!(make(&daemon, change), Some(201 | 204 | 404)), "{what}");
        check(&daemon, change, true, &what);
    }
    panic!("{}, {fault}: it has no end", change.key);
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn killed_at_every_step() {
    for change in &CHANGES {
        at_every_step(change, "kill@change", &[]);
        at_every_step(change, "kill@index", &[]);
    }
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn the_disk_fails_at_every_step() {
    let fails = |change, errno: Errno, status| {
        at_every_step(change, &format!("{}@change", errno.raw_os_error()), &[status]);
    };
    for change in &CHANGES {
        fails(change, Errno::IO, 500);
    }
    for (errno, status) in [(Errno::NOSPC, 507), (Errno::DQUOT, 507), (Errno::MFILE, 503)] {
        fails(&FIRST, errno, status);
    }
}

/// Each call of the index's disk in turn: writes, syncs, and what reads.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn the_disk_of_the_index_fails_at_every_call() {
    for change in &CHANGES {
        at_every_step(change, "5@index", &[500]);
    }
    at_every_step(&CHANGES[1], "28@index", &[507]);
}

/// A sync that failed says that pages may be lost which no later sync writes: the index is written
/// anew, and until that is done nothing is answered of it.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn a_failed_sync_is_not_gone_on_from() {
    for change in [&CHANGES[1], &CHANGES[3]] {
        a_sync_fails(change);
    }
}

fn a_sync_fails(change: &Change) {
    let (mut once, mut always) = (0, 0);
    for sync in 1..20 {
        let dir = scratch();
        prepare(dir.path(), change);
        let index = dir.path().join("data/index");
        let fault = format!("5@index.sync:{sync}");
        let inode = || fs::metadata(&index).unwrap().ino();
        if let Some(daemon) = Daemon::try_start_with_fault(dir.path(), &fault) {
            let before = inode();
            let refused = make(&daemon, change) == Some(500);
            assert_eq!(refused, inode() != before, "{fault}: {}", daemon.log());
            once += u32::from(refused);
        }
        // That one fails, and every one by which the index would be written anew.
        let dir = scratch();
        prepare(dir.path(), change);
        if let Some(daemon) = Daemon::try_start_with_fault(dir.path(), &(fault + "+"))
            && make(&daemon, change) == Some(500)
        {
            assert_eq!(make(&daemon, change), Some(503));
            let mut client = daemon.client();
            assert_eq!([client.get("/").status, client.get(change.key).status], [503, 503]);
            // What the file names is not known: nothing is removed.
            let files = 2 + usize::from(change.after.is_some());
            assert_eq!(daemon.blobs(), files);
            daemon.kill();
            let daemon = Daemon::start(dir.path(), &[]);
            let later = stored(&mut daemon.client(), change.key);
            assert!(later == content(change.before) || later == content(change.after));
            always += 1;
        }
    }
    assert!(once > 0 && always > 0, "no sync of a commit failed: {once} {always}");
}

/// A file system may have little room for attributes; an object without them is one all the same.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn a_file_need_not_say_its_key() {
    let dir = scratch();
    prepare(dir.path(), &FIRST);
    let daemon = Daemon::start_with_fault(dir.path(), "28@put.mark");
    assert_eq!(make(&daemon, &FIRST), Some(201));
    check(&daemon, &FIRST, true, "without a mark");
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "this build has no fault points")]
fn errors_of_reading_are_answered_before_the_first_byte() {
    for (errno, status) in [(Errno::IO, 500), (Errno::MFILE, 503)] {
        let dir = scratch();
        prepare(dir.path(), &CHANGES[1]);
        let fault = format!("{}@get.open:1", errno.raw_os_error());
        let daemon = Daemon::start_with_fault(dir.path(), &fault);
        let mut client = daemon.client();
        let got = client.get("/a/o");
        assert_eq!(got.status, status, "{fault}");
        let path = dir.path().to_str().unwrap();
        assert!(!got.text().contains(path) && !got.text().contains("os error"), "{}", got.text());
        // The connection and the object are as good as before.
        assert!(client.get("/a/o").body == bytes(1, 150_000), "{fault}");
    }
}
