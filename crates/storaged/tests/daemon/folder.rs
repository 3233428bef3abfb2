//! A folder whose index and files do not fit each other.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::fs::{Mode, XattrFlags};
use rustix::process::umask;

use crate::common::{Daemon, eventually, program, scratch};

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// It is brought back from a backup, alone.
#[test]
fn an_index_older_than_the_files_removes_nothing() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let (data, backup) = (daemon.data(), dir.path().join("backup"));
    daemon.client().put("/a", b"a");
    daemon.stop();
    fs::copy(data.join("index"), &backup).unwrap();
    let daemon = Daemon::start(dir.path(), &[]);
    daemon.client().put("/a", b"newer");
    for at in 0..3 {
        daemon.client().put(&format!("/new{at}"), b"new");
    }
    daemon.stop();
    let index = fs::read(data.join("index")).unwrap();
    let before = names(&data.join("blobs"));
    fs::copy(&backup, data.join("index")).unwrap();
    let words = Daemon::try_start_with(dir.path(), &[], |_| {}).err().unwrap();
    assert!(
        words.contains("older than its files: 4 of them") && words.contains("--rebuild"),
        "{words}"
    );
    assert_eq!(names(&data.join("blobs")), before);
    assert_eq!(names(&data), ["blobs", "index", "spare"]);
    fs::write(data.join("index"), index).unwrap();
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(daemon.client().get("/a").body, b"newer");
    assert_eq!(daemon.list().len(), 4);
}

#[test]
fn what_the_index_does_not_know_is_put_aside() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let (data, blobs) = (daemon.data(), daemon.data().join("blobs"));
    daemon.client().put("/a", b"a");
    daemon.kill();
    for name in ["7", "8", "letter"] {
        fs::write(blobs.join(name), name).unwrap();
    }
    fs::write(blobs.join("9.part"), "begun").unwrap();
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(names(&blobs), ["1"]);
    assert_eq!(names(&data.join("lost")), ["7", "8", "letter"]);
    assert_eq!(fs::read(data.join("lost/letter")).unwrap(), b"letter");
    eventually("it says so", || {
        daemon.log().contains("put aside files=3") && daemon.log().contains("gone removed=1")
    });
    assert_eq!(daemon.client().get("/a").body, b"a");
}

/// What `storaged` says and ends with.
fn run(args: &[&str], data: &Path) -> (Option<i32>, String) {
    let output = program().args(args).arg("--data").arg(data).output().unwrap();
    let words = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(words).unwrap())
}

/// A folder that is empty may be where a disk is not mounted, and so may one that is not there be: by
/// hand it is made, but for a service, whose settings are in a file, it must be there.
#[test]
fn a_store_that_is_not_there_is_made_when_it_is_asked_for() {
    let dir = scratch();
    let (data, file) = (dir.path().join("data"), dir.path().join("s.toml"));
    fs::write(&file, format!("listen = [{:?}]\n", dir.path().join("s"))).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let refused = |words: &str| words.contains("holds no store") && words.contains("--create");
    let (code, words) = run(&config, &data);
    assert!(code == Some(1) && refused(&words) && !data.exists(), "{words}");
    fs::create_dir(&data).unwrap();
    for args in [&config[..], &["--listen", "/dev/null/s"]] {
        let (code, words) = run(args, &data);
        assert!(code == Some(1) && refused(&words), "{words}");
    }
    assert_eq!(names(&data), [""; 0]);
    fs::write(data.join("letter"), "kept").unwrap();
    let (code, words) = run(&["--create"], &data);
    assert!(code == Some(1) && words.contains("neither empty nor"), "{words}");
    assert_eq!(names(&data), ["letter"]);
    fs::remove_file(data.join("letter")).unwrap();
    for word in ["made", "there already"] {
        let (code, words) = run(&["--create", config[0], config[1]], &data);
        assert!(code == Some(0) && words.contains(word), "{words}");
    }
    let daemon = Daemon::start(dir.path(), &[]);
    assert!(run(&["--create"], &data).1.contains("in use by another process"));
    daemon.client().put("/a", b"a");
    daemon.stop();
    fs::remove_file(data.join("index")).unwrap();
    let (code, words) = run(&["--create"], &data);
    assert!(code == Some(1) && words.contains("--rebuild"), "{words}");
    assert_eq!(names(&data.join("blobs")), ["1"]);
}

#[test]
fn an_index_is_made_of_the_files_and_what_it_cannot_name_is_named() {
    let dir = scratch();
    let daemon = Daemon::start(dir.path(), &[]);
    let (data, blobs) = (daemon.data(), daemon.data().join("blobs"));
    let mut client = daemon.client();
    assert_eq!(client.request("PUT", "/a/%C3%A9", "Content-Type: text/x\r\n", b"e").status, 201);
    client.put("/a/b", b"old");
    client.put("/a/b", b"new");
    client.put("/empty", b"");
    client.put("/damaged", b"damaged");
    client.put("/mute", b"mute");
    let before = daemon.list();
    let newest = names(&blobs).len() + 1;
    drop(client);
    daemon.stop();
    if daemon_has_no_marks(&dir.path().join("log")) {
        return println!("skipped: the file system has no extended attributes");
    }
    let index = fs::read(data.join("index")).unwrap();
    // The old version of /a/b, as a crash leaves it, and what no storaged would have written.
    let older = fs::read(blobs.join("3")).unwrap();
    fs::write(blobs.join("2"), older).unwrap();
    let (mark, mut value) = ("user.storaged", [0; 99]);
    let bytes = rustix::fs::getxattr(blobs.join("3"), mark, &mut value).unwrap();
    rustix::fs::setxattr(blobs.join("2"), mark, &value[..bytes], XattrFlags::empty()).unwrap();
    fs::write(blobs.join("5"), "demaged").unwrap();
    fs::write(blobs.join("letter"), "letter").unwrap();
    rustix::fs::removexattr(blobs.join("6"), mark).unwrap();
    fs::remove_file(data.join("index")).unwrap();
    assert_eq!(newest, 6);
    let (code, words) = run(&["--rebuild"], &data);
    assert_eq!(code, Some(1), "{words}");
    for line in [
        "lost/2: there is a newer file of a/b",
        "lost/5: its content is not what was stored",
        "lost/6: it says no key, and no row names it",
        "lost/letter: its name is no number",
        "names 3 objects",
    ] {
        assert!(words.contains(line), "{line}: {words}");
    }
    assert_eq!(names(&data.join("lost")), ["2", "5", "6", "letter"]);
    let daemon = Daemon::start(dir.path(), &[]);
    let kept = |object: &&serde_json::Value| object["key"] != "damaged" && object["key"] != "mute";
    let tags = |list: &[serde_json::Value]| -> Vec<_> {
        list.iter()
            .filter(kept)
            .map(|object| (object["key"].clone(), object["etag"].clone()))
            .collect()
    };
    assert_eq!(tags(&daemon.list()), tags(&before));
    assert_eq!(daemon.client().get("/a/%C3%A9").header("content-type"), Some("text/x"));
    assert_eq!(daemon.client().get("/a/b").body, b"new");
    assert_eq!(daemon.client().put("/next", b"next").status, 201);
    daemon.stop();
    // With the index that names it, a file needs no key of its own.
    fs::rename(data.join("lost/6"), blobs.join("6")).unwrap();
    fs::write(data.join("index"), index).unwrap();
    assert_eq!(run(&["--rebuild"], &data).0, Some(0));
    let daemon = Daemon::start(dir.path(), &[]);
    assert_eq!(daemon.client().get("/mute").body, b"mute");
    assert_eq!(daemon.client().get("/next").body, b"next");
    assert_eq!(daemon.list().len(), 5);
}

fn daemon_has_no_marks(log: &Path) -> bool {
    fs::read_to_string(log).unwrap().contains("has no extended attributes")
}

/// Whatever the umask is, and also where an earlier start made them otherwise.
#[test]
fn what_it_makes_is_its_user_s_alone() {
    let dir = scratch();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    for key in ["/a", "/b"] {
        let daemon = Daemon::start_with(dir.path(), &[], |command| {
            // SAFETY: umask is a system call, and nothing else.
            unsafe {
                command.pre_exec(|| {
                    umask(Mode::from(0o022));
                    Ok(())
                })
            };
        });
        let data = daemon.data();
        daemon.client().put(key, b"a");
        daemon.stop();
        assert_eq!([mode(&data), mode(&data.join("blobs"))], [0o700; 2]);
        assert_eq!([mode(&data.join("index")), mode(&data.join("blobs/1"))], [0o600; 2]);
        for (name, loose) in [("index", 0o644), ("blobs", 0o755)] {
            fs::set_permissions(data.join(name), fs::Permissions::from_mode(loose)).unwrap();
        }
    }
}
