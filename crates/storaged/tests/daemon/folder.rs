//! A folder whose index and files do not fit each other.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::fs::Mode;
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
    assert_eq!(names(&data), ["blobs", "index"]);
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
