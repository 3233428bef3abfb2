//! A disk without room: a small one of the daemon's own, which others fill.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::common::{Daemon, bytes, scratch};

const INSIDE: &str =
    r#"mount -t tmpfs -o size=8m none "$0" && "$1" --create --data "$0" >&2 && exec "$@""#;

/// A daemon whose folder is on such a disk, and where that is seen from here; `None` where users may
/// mount nothing.
fn daemon(dir: &tempfile::TempDir) -> Option<(Daemon, PathBuf)> {
    let (data, log) = (dir.path().join("data"), dir.path().join("log"));
    fs::create_dir(&data).unwrap();
    let may = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        println!("skipped: no namespaces for users here");
        return None;
    }
    let daemon = Daemon::start_with(dir.path(), &[], |command| {
        let mut inside = Command::new("unshare");
        inside.args(["--map-root-user", "--mount", "sh", "-c", INSIDE]).arg(&data);
        inside.arg(command.get_program()).args(command.get_args());
        inside.stdout(Stdio::piped()).stderr(File::options().append(true).open(log).unwrap());
        *command = inside;
    });
    let seen = format!("/proc/{}/root{}", daemon.process.0.id(), data.display());
    Some((daemon, seen.into()))
}

#[test]
fn a_delete_works_where_the_disk_is_full() {
    let dir = scratch();
    let Some((daemon, data)) = daemon(&dir) else { return };
    for at in 0..200 {
        let content = bytes(at, 1 + 100 * at as usize);
        assert_eq!(daemon.client().put(&format!("/{at}"), &content).status, 201);
    }
    let mut filling = File::create(data.join("other")).unwrap();
    let page = [1; 4096];
    for at in (10..200).rev().step_by(10) {
        while filling.write_all(&page).is_ok() {}
        assert_eq!(daemon.client().put("/more", &bytes(1, 100_000)).status, 507);
        // Until the index is full, too.
        let empty = |count| daemon.client().put(&format!("/none/{at}/{count}"), b"").status;
        assert_eq!((0..10_000).map(empty).find(|status| *status != 201), Some(507), "{at}");
        let deleted = daemon.client().delete(&format!("/{at}"));
        assert_eq!(deleted.status, 204, "{at}: {}", daemon.log());
        assert!(daemon.client().get("/0").body == bytes(0, 1), "{at}");
    }
    drop(filling);
    fs::remove_file(data.join("other")).unwrap();
    assert_eq!(daemon.client().put("/more", &bytes(1, 100_000)).status, 201);
    daemon.stop();
}
