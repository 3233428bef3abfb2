//! Files that another program has damaged.

use std::fs;
use std::path::PathBuf;

use crate::common::{Daemon, bytes, eventually, scratch};

/// The file of the only object.
fn object_file(daemon: &Daemon) -> PathBuf {
    let mut files = fs::read_dir(daemon.data().join("blobs")).unwrap();
    files.next().unwrap().unwrap().path()
}

#[test]
fn an_object_whose_file_is_short_or_gone_is_named_replaced_and_deleted() {
    for gone in [true, false] {
        let dir = scratch();
        let content = bytes(1, 150_000);
        let daemon = Daemon::start(dir.path(), &[]);
        assert_eq!(daemon.client().put("/a/o", &content).status, 201);
        let path = object_file(&daemon);
        daemon.stop();
        match gone {
            true => fs::remove_file(&path).unwrap(),
            false => fs::write(&path, &content[1..]).unwrap(),
        }
        let daemon = Daemon::start(dir.path(), &[]);
        assert_eq!(daemon.client().get("/a/o").status, 500);
        eventually("it says so", || daemon.log().contains("a damaged object was asked for"));
        assert_eq!(daemon.stat()["damaged_total"], 1);
        assert_eq!(daemon.list()[0]["bytes"], content.len());
        assert_eq!(daemon.client().put("/a/o", b"second").status, 204);
        assert_eq!(daemon.client().get("/a/o").body, b"second");
        fs::remove_file(object_file(&daemon)).unwrap();
        assert_eq!(daemon.client().delete("/a/o").status, 204);
        assert_eq!(daemon.client().get("/a/o").status, 404);
    }
}

/// What was sent stands, so the connection ends; the daemon lives.
#[test]
fn a_file_cut_short_under_its_reader_cuts_the_response_off() {
    for mode in ["copy", "sendfile"] {
        let dir = scratch();
        let daemon = Daemon::start(dir.path(), &["--mode", mode]);
        let content = bytes(2, 8 << 20);
        daemon.client().put("/o", &content);
        assert!(daemon.client().get("/o").body == content);
        fs::OpenOptions::new().write(true).open(object_file(&daemon)).unwrap().set_len(0).unwrap();
        let mut client = daemon.client();
        client.send(b"GET /o HTTP/1.1\r\nHost: h\r\n\r\n");
        assert!(client.rest().len() < content.len(), "{mode}");
        daemon.wait_for_stat(|stat| stat["aborted_responses_total"] == 1);
    }
}
