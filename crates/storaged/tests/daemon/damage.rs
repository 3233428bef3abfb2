//! Files that another program has damaged.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::common::{Daemon, bytes, scratch};

fn object_file(daemon: &Daemon) -> PathBuf {
    daemon.data().join("objects/d-a/o-o")
}

#[test]
fn no_wrong_byte_leaves_the_daemon() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let content = bytes(1, 150_000);
    assert_eq!(daemon.client().put("/a/o", &content).status, 201);
    let path = object_file(&daemon);
    let good = fs::read(&path).unwrap();
    let mut errors = 0;
    // In the first and last block, in the list of checksums, in the names, in the tail.
    let end = good.len();
    for at in [0, end / 3, end - 250, end - 115, end - 112, end - 90, end - 60, end - 1] {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs::write(&path, &bad).unwrap();
        let got = daemon.client().get("/a/o");
        assert_eq!(got.status, 500, "byte {at} of {end}");
        errors += 1;
        let (report, code) = daemon.fsck();
        assert_eq!((code, report["summary"]["damaged"].as_u64()), (4, Some(1)), "byte {at}");
    }
    for cut in [1, 50, 112, 113, end / 2, end] {
        fs::write(&path, &good[..end - cut]).unwrap();
        assert_eq!(daemon.client().get("/a/o").status, 500, "cut by {cut}");
        assert_eq!(daemon.fsck().1, 4, "cut by {cut}");
        errors += 1;
    }
    assert_eq!(daemon.stat()["checksum_errors"], errors);
    assert!(daemon.log().contains("a damaged object was asked for"));
    fs::write(&path, &good).unwrap();
    assert!(daemon.client().get("/a/o").body == content);
    assert_eq!(daemon.fsck().1, 0);
}

#[test]
fn a_damaged_object_is_listed_replaced_and_deleted() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let mut client = daemon.client();
    for again in 0..2 {
        client.put("/a/o", b"first");
        fs::write(object_file(&daemon), b"torn").unwrap();
        let list: serde_json::Value = serde_json::from_slice(&client.get("/").body).unwrap();
        assert_eq!(list["objects"][0]["damaged"], true);
        let matching = client.request("DELETE", "/a/o", "If-Match: \"x\"\r\n", b"");
        assert_eq!(matching.status, 412);
        let dated = "If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n";
        assert_eq!(client.request("DELETE", "/a/o", dated, b"").status, 412);
        if again == 0 {
            assert_eq!(client.put("/a/o", b"second").status, 204);
            assert_eq!(client.get("/a/o").body, b"second");
        } else {
            assert_eq!(client.delete("/a/o").status, 204);
            assert_eq!(client.get("/a/o").status, 404);
        }
    }
}

#[test]
fn only_the_blocks_of_a_range_are_looked_at() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let content = bytes(2, 300_000);
    daemon.client().put("/a/o", &content);
    let file = fs::OpenOptions::new().write(true).open(object_file(&daemon)).unwrap();
    file.write_all_at(&[content[100_000] ^ 1], 100_000).unwrap();
    let range = |range: &str| {
        daemon.client().request("GET", "/a/o", &format!("Range: bytes={range}\r\n"), b"")
    };
    assert!(range("0-65535").body == content[..65_536]);
    assert!(range("131072-").body == content[131_072..]);
    assert_eq!(range("65535-65536").status, 500);
    assert_eq!(range("131071-131071").status, 500);
    assert_eq!(daemon.client().get("/a/o").status, 500);
}

/// A file that changes behind a daemon's back is looked at again, as its times say.
#[test]
fn what_was_verified_is_forgotten_with_the_file() {
    for (verify, expected) in [("once", 500), ("always", 500), ("never", 200)] {
        let dir = scratch();
        let daemon = Daemon::start(dir.path(), &["--verify", verify]);
        let content = bytes(3, 100_000);
        daemon.client().put("/a/o", &content);
        assert!(daemon.client().get("/a/o").body == content);
        let file = fs::OpenOptions::new().write(true).open(object_file(&daemon)).unwrap();
        file.write_all_at(&[content[7] ^ 1], 7).unwrap();
        assert_eq!(daemon.client().get("/a/o").status, expected, "{verify}");
    }
}

#[test]
fn another_object_s_file_is_not_this_object() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    daemon.client().put("/a/o", b"one");
    daemon.client().put("/a/p", b"two");
    let path = object_file(&daemon);
    fs::copy(path.with_file_name("o-p"), &path).unwrap();
    assert_eq!(daemon.client().get("/a/o").status, 500);
    assert_eq!(daemon.client().get("/a/p").body, b"two");
}

#[test]
fn nothing_leads_out_of_the_tree() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    daemon.client().put("/a/o", b"inside");
    let objects = daemon.data().join("objects");
    fs::create_dir(dir.path().join("outside")).unwrap();
    fs::copy(object_file(&daemon), dir.path().join("outside/o-o")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("outside"), objects.join("d-link")).unwrap();
    std::os::unix::fs::symlink(object_file(&daemon), objects.join("o-link")).unwrap();
    for key in ["/link/o", "/link"] {
        assert_eq!(daemon.client().get(key).status, 500, "{key}");
        assert_eq!(daemon.client().put("/link/new", b"x").status, 500);
    }
    assert!(!dir.path().join("outside/o-new").exists());
    let (report, code) = daemon.fsck();
    let summary = &report["summary"];
    assert_eq!((code, summary["foreign"].as_u64()), (1, Some(1)), "{report}");
    assert_eq!(summary["unreadable"], 1, "{report}");
}

/// A mapping whose file is cut short under the send: the response ends, the daemon does not.
#[test]
fn a_file_that_shrinks_while_it_is_sent() {
    for mode in ["copy", "vmsplice", "sendfile", "adaptive"] {
        let dir = scratch();
        let daemon = Daemon::start(dir.path(), &["--mode", mode, "--verify", "never"]);
        let content = bytes(4, 32 << 20);
        daemon.client().put("/a/o", &content);
        let mut client = daemon.client();
        client.write(b"GET /a/o HTTP/1.1\r\nHost: h\r\n\r\n");
        client.more().unwrap();
        let file = fs::OpenOptions::new().write(true).open(object_file(&daemon)).unwrap();
        file.set_len(16 << 20).unwrap();
        let got = client.rest();
        let head = got.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        let body = &got[head..];
        assert!(body.len() < content.len(), "{mode}");
        // Up to the cut it is the object; the last page of a mapping reads as zeros behind it.
        let true_bytes = body.len().min(16 << 20);
        assert!(body[..true_bytes] == content[..true_bytes], "{mode}");
        assert_eq!(daemon.client().get("/a/o").status, 500, "{mode}");
    }
}
