//! Where a guest's memory and its files lie: in a container, below a limit, and after one that was
//! killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{PROGRAM, ends, good, guest::Guest, project, wait_until};

/// Whether this test can do what only root may; it says so where it cannot.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("not run: it takes root");
    }
    is_root
}

#[test]
fn what_a_killed_guest_left_is_removed_by_the_next() {
    let guest = Guest::new("um", &[]);
    let mut child = guest.command(&["sleep", "600"]).stderr(Stdio::null()).spawn().unwrap();
    let left = || fs::read_dir(guest.tmp.path()).unwrap().count();
    let is_up = |path: PathBuf| fs::metadata(path.join("console")).is_ok_and(|it| it.len() > 0);
    wait_until(Some(&mut child), || {
        fs::read_dir(guest.tmp.path()).unwrap().flatten().any(|entry| is_up(entry.path()))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(left(), 1, "nobody could remove it yet");
    good(&guest.run(&["true"]));
    guest.assert_nothing_left();
}

/// What a container's root can do: `/dev/shm` as Docker mounts it, another tmpfs as `--tmpfs` does,
/// and no CAP_SYS_ADMIN.
fn in_a_container(tmpfs: &str, options: &str, temporary: &str) -> Output {
    let script = "mount --make-rprivate / &&
        mount -t tmpfs -o nosuid,nodev,noexec,size=3g,mode=1777 shm /dev/shm &&
        mount -t tmpfs -o nosuid,nodev,noexec,$2 tmpfs $1 && shift 2 &&
        exec setpriv --bounding-set -sys_admin --inh-caps -sys_admin \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh", tmpfs, options]);
    command.args([PROGRAM, "kernel", "boot", "--mem", "256M", "--", "echo", "booted"]);
    command.env("TMPDIR", temporary).output().unwrap()
}

#[test]
fn the_guides_container_boots_a_guest_and_one_without_its_tmpfs_is_told_how() {
    if !is_root() {
        return;
    }
    Guest::new("um", &[]);
    let guide = fs::read_to_string(project().join("docs/guide/install.md")).unwrap();
    let after = |option: &str| {
        let (_, rest) = guide.split_once(option).expect("install.md has the option");
        rest.split_whitespace().next().unwrap()
    };
    let (tmpfs, options) = after("--tmpfs ").split_once(':').unwrap();
    let booted = in_a_container(tmpfs, options, after("-e TMPDIR="));
    assert_eq!(good(&booted), "booted\n");
    let refused = in_a_container(tmpfs, options, "/var/tmp");
    ends(&refused, 3, &["/dev/shm is mounted noexec", "--tmpfs", "TMPDIR"]);
}

/// A control group with a limit of memory, gone when dropped.
struct Group(PathBuf);

impl Group {
    fn limited(bytes: u64) -> Option<Group> {
        let hierarchies = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
        hierarchies.into_iter().find_map(|hierarchy| {
            let folder = Path::new(hierarchy).join(format!("ntcopy-test-{}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let group = Group(folder);
            ["memory.limit_in_bytes", "memory.max"]
                .iter()
                .any(|name| {
                    let file = group.0.join(name);
                    file.exists() && fs::write(file, bytes.to_string()).is_ok()
                })
                .then_some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What was in it may still be on its way out.
        wait_until(None, || fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

#[test]
fn a_guest_that_the_limit_of_a_control_group_would_kill_is_refused() {
    let Some(group) = is_root().then(|| Group::limited(600 << 20)).flatten() else {
        println!("not run: no control group with a limit of memory can be made here");
        return;
    };
    let guest = Guest::new("um", &["--mem", "1G"]);
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&group.0);
    let boot = guest.command(&["true"]);
    command.arg(boot.get_program()).args(boot.get_args()).env("TMPDIR", guest.tmp.path());
    let said = ends(&command.output().unwrap(), 3, &["the guest's memory", "--mem"]);
    let name = group.0.display().to_string();
    assert!(said.contains("raise the memory limit") && said.contains(&name), "{said}");
}
