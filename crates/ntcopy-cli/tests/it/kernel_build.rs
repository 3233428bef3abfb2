//! `ntcopy kernel build`, `list` and `clean`, on a small tree that is built in a moment: what is
//! tried here is what surrounds the compiler. The real thing is built for `kernel_boot`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::common::{
    ends,
    house::{House, MAKEFILE, children},
    signal::{self, Signal},
    text, wait_until,
};

#[test]
fn a_kernel_is_built_once_and_again_when_an_input_changes() {
    let house = House::new();
    let first = house.build();
    assert!(first.starts_with(house.path("cache/kernels")));
    for file in ["linux", "config", "meta.json", "build.log"] {
        assert!(first.parent().unwrap().join(file).is_file(), "{file}");
    }
    house.assert_nothing_half_done();
    assert_eq!(house.build(), first);
    house.patch("0001-two.patch", "\treturn 1;", "\treturn 3;");
    let second = house.build();
    assert_ne!(second, first, "another series is another kernel");
    house.put("linux/slow.sh", "# another source\n");
    let third = house.build();
    assert!(third != first && third != second, "another source is another kernel");
}

#[test]
fn the_user_s_tree_is_copied_and_patched_and_never_changed() {
    let house = House::new();
    let compiled = house.path("compiled.c");
    house.put("linux/slow.sh", &format!("cp kernel/one.c {}\n", compiled.display()));
    house.build();
    house.assert_nothing_half_done();
    let source = fs::read_to_string(house.path("linux/kernel/one.c")).unwrap();
    assert!(source.contains("return 1;"));
    assert!(fs::read_to_string(compiled).unwrap().contains("return 2;"));
}

/// What is changed in a house that builds.
type Change = fn(&House);

#[test]
fn what_cannot_be_built_is_named_with_where_and_why() {
    let changes: [(Change, &[&str]); 5] = [
        (
            |house| house.patch("0002-gone.patch", "\treturn 9;", "\treturn 8;"),
            &["0002-gone.patch", "Linux 7.3.99", "kernel/one.c", "Hunk #1 FAILED"],
        ),
        (
            |house| house.patch("0001-two.patch", "\treturn 1;", "\treturn broken_name;"),
            &["error: ", "broken_name"],
        ),
        (
            |house| {
                let taken = "#define MSG_OOB 1\n#define MSG_THEIRS 0x1000000\n";
                house.put("linux/include/linux/socket.h", taken);
            },
            &["MSG_NTCOPY", "MSG_THEIRS", "include/linux/socket.h:2"],
        ),
        (
            |house| house.put("linux/Makefile", &MAKEFILE.replace("UNKNOWN", "CONFIG_TLS=")),
            &["CONFIG_TLS: asked y, got not set"],
        ),
        (
            |house| fs::remove_file(house.path("linux/Makefile")).unwrap(),
            &["is not a Linux source tree"],
        ),
    ];
    for (change, parts) in changes {
        let house = House::new();
        change(&house);
        let said = house.fail(1);
        for part in parts {
            assert!(said.contains(part), "{part} in {said}");
        }
        // What the compiler said is kept whole.
        if let Some(log) = said.lines().find_map(|line| line.strip_prefix("the whole log: ")) {
            assert!(fs::read_to_string(log).unwrap().contains("CC      kernel/one.o"));
        } else {
            assert!(!parts.contains(&"broken_name"), "{said}");
        }
        assert!(children(&house.path("cache/kernels")).is_empty());
    }
}

#[test]
fn a_source_of_another_version_is_named_with_the_one_that_the_patches_are_for() {
    let cases: [(&str, [&str; 3], &[&str]); 3] = [
        ("um", ["6", "12", "50"], &["7.3.4", "6.12.50", "--kernel um:6.12 is for 6.12.117"]),
        ("um:6.12", ["6", "12", "50"], &["6.12.117", "6.12.50"]),
        ("um", ["7", "4", "1"], &["7.3.4", "7.4.1"]),
    ];
    for (kernel, [version, patchlevel, sublevel], parts) in cases {
        let house = House::new();
        let makefile = MAKEFILE
            .replace("VERSION = 7", &format!("VERSION = {version}"))
            .replace("PATCHLEVEL = 3", &format!("PATCHLEVEL = {patchlevel}"))
            .replace("SUBLEVEL = 99", &format!("SUBLEVEL = {sublevel}"));
        house.put("linux/Makefile", &makefile);
        // This program's own patches, none of which applies to a tree of one file.
        let mut build = house.ntcopy(&["build", "--kernel", kernel]);
        let said = ends(&build.env_remove("NTCOPY_SERIES").output().unwrap(), 1, &[]);
        let first = said.lines().find(|line| line.starts_with("ntcopy: ")).unwrap();
        let says = |part: &&str| first.contains(*part);
        assert!(parts.iter().all(says) && first.contains("does not apply"), "{first}");
    }
}

#[test]
fn missing_tools_are_named_all_at_once_before_anything_starts() {
    let house = House::new();
    let output = house.ntcopy(&["build"]).env("PATH", house.path("nowhere")).output().unwrap();
    ends(&output, 3, &["gcc", "make", "flex", "bison", "patch", "apt-get install"]);
    assert!(!house.path("cache").exists());
}

#[test]
fn ctrl_c_ends_the_build_and_leaves_nothing_half_done() {
    let house = House::new();
    let mark = house.path("mark");
    house.put("linux/slow.sh", &format!("echo $$ > {}; exec sleep 600\n", mark.display()));
    let mut child = house.ntcopy(&["build"]).stderr(Stdio::piped()).spawn().unwrap();
    let is_told = || fs::read_to_string(&mark).is_ok_and(|text| !text.trim().is_empty());
    wait_until(Some(&mut child), is_told);
    let sleeper = fs::read_to_string(&mark).unwrap().trim().to_owned();
    signal::send(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    house.assert_nothing_half_done();
    assert!(children(&house.path("cache/kernels")).is_empty());
    // The child of make's child is gone too, or is a zombie that waits for process 1.
    let state = || fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
    // What was killed may still be on its way out, on a busy machine.
    wait_until(None, || state().is_empty() || state().contains(") Z "));
}

#[test]
fn what_a_killed_build_left_is_removed_by_the_next() {
    let house = House::new();
    let left = house.path("cache/kernels/.partial-1-0/source");
    fs::create_dir_all(&left).unwrap();
    house.build();
    assert!(!left.exists());
    house.assert_nothing_half_done();
}

#[test]
fn a_second_builder_says_that_it_waits_and_takes_what_the_first_made() {
    let house = House::new();
    let gate = house.path("gate");
    let slow = format!("while ! test -e {}; do sleep 0.05; done\n", gate.display());
    house.put("linux/slow.sh", &slow);
    let mut first = house.ntcopy(&["build"]);
    let mut first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(first.stderr.take().unwrap()).lines();
    // Once it compiles it has the lock.
    assert!(lines.any(|line| line.unwrap().starts_with("compiling")));
    let mut second = house.ntcopy(&["build"]);
    let mut second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(second.stderr.take().unwrap()).lines();
    let waits = said.next().unwrap().unwrap();
    assert!(waits.contains("waiting for another ntcopy"), "{waits}");
    fs::write(&gate, "").unwrap();
    assert!(lines.all(|line| line.is_ok()));
    let first = first.wait_with_output().unwrap();
    assert!(said.all(|line| !line.unwrap().starts_with("compiling")), "it built again");
    let second = second.wait_with_output().unwrap();
    assert!(first.status.success() && second.status.success());
    assert_eq!(text(&first.stdout), text(&second.stdout));
}

#[test]
fn list_tells_current_from_stale_and_clean_removes_it() {
    let house = House::new();
    let old = house.build();
    house.patch("0001-two.patch", "\treturn 1;", "\treturn 3;");
    let new = house.build();
    let state = |path: &Path| {
        let found = house.list().into_iter().find(|it| it["path"] == path.to_str().unwrap());
        found.map(|kernel| kernel["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(state(&old).as_deref(), Some("stale"));
    assert_eq!(state(&new).as_deref(), Some("current"));
    let listed = text(&house.run(&["list"]).stdout);
    assert!(listed.contains("stale") && listed.contains("the patches have changed"), "{listed}");
    let said = text(&house.run(&["clean"]).stdout);
    assert!(said.contains(old.parent().unwrap().to_str().unwrap()), "{said}");
    assert_eq!((state(&old), state(&new).as_deref()), (None, Some("current")));
    house.put("cache/packages/linux-source-7.3_1_all.deb", "x");
    house.run(&["clean", "--all"]);
    assert_eq!(state(&new), None);
    assert_eq!(children(&house.path("cache")).iter().filter(|it| !it.ends_with("lock")).count(), 0);
}
