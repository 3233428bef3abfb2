//! `ntcopy kernel boot` in a really booted kernel, which is built first when the cache has none.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use crate::common::{
    PROGRAM, ends, good,
    guest::{self, Guest},
    is_not_available,
    signal::Signal,
    text,
};

fn um(options: &[&str]) -> Guest {
    Guest::new("um", options)
}

#[test]
fn exit_codes_signals_and_the_last_words_are_passed_through() {
    let guest = um(&[]);
    let zeros = "\0".repeat(60_000);
    // The guest has a name and devices of its own.
    let at_home = "uname -n; test -c /dev/null && test -d /dev/pts && echo dev; \
                   echo x > /dev/stderr; cat /dev/fd/0 | wc -c";
    for (script, code, out, said) in [
        ("true", 0, "", ""),
        ("exit 77", 77, "", ""),
        ("kill -TERM $$", 143, "", ""),
        ("head -c 60000 /dev/zero; echo end >&2; kill -9 $$", 137, &*zeros, "end\n"),
        (at_home, 0, "ntcopy-um\ndev\n0\n", "x\n"),
    ] {
        let output = guest.shell(script);
        assert_eq!(ends(&output, code, &[]), said, "{script}");
        assert!(text(&output.stdout) == out, "{script}: {} bytes", output.stdout.len());
    }
    for (command, code) in [("no-such-command", 127), ("/etc/passwd", 126)] {
        ends(&guest.run(&[command]), code, &[command]);
    }
    guest.assert_nothing_left();
}

#[test]
fn a_command_is_at_home() {
    guest::a_command_is_at_home("um", "2");
}

/// Tries to change what lies beside the folder that may be written, and says what it could do. A
/// guest's root may mount what it likes, so that is tried first.
const BREAKS_OUT: &str = r#"
    ours=$1 theirs=$2
    mount -o remount,rw / 2>/dev/null
    mkdir /run/again && mount -t hostfs none /run/again -o / 2>/dev/null && theirs_again=/run/again$2
    umount -l /proc
    can() { "$@" 2>/dev/null && echo "can: $*"; }
    for it in "$theirs" $theirs_again "$ours/out"; do
        can sh -c "echo x >>'$it/file'"
        can truncate -s 0 "$it/file"
        can chmod 777 "$it/file"
        can chown 12 "$it/file"
        can touch -d @0 "$it/file"
        can rm -f "$it/file"
        can rmdir "$it/folder"
        can mv "$it/file" "$ours/taken"
        can mv "$ours/mine" "$it/given"
        can ln "$it/file" "$it/second"
        can ln -s x "$it/link"
        can mkdir "$it/made"
        can mkfifo "$it/pipe"
        can mknod "$it/device" c 1 3
        can python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$it/socket"
    done
    for setting in /proc/sys/kernel/domainname /run/again/proc/sys/kernel/domainname; do
        can sh -c "cat $setting >$setting"
    done
    echo mine >"$ours/mine" && mkdir "$ours/sub" && mv "$ours/mine" "$ours/sub/" && echo ours
"#;

#[test]
fn the_host_s_files_stay_as_they_are_but_for_a_folder_that_was_named() {
    let folders = [(); 2].map(|()| tempfile::tempdir_in("/tmp").unwrap());
    let [ours, theirs] = folders.each_ref().map(tempfile::TempDir::path);
    let file = theirs.join("file");
    fs::write(&file, "theirs").unwrap();
    fs::create_dir(theirs.join("folder")).unwrap();
    fs::write(ours.join("mine"), "").unwrap();
    std::os::unix::fs::symlink(theirs, ours.join("out")).unwrap();
    let before = fs::metadata(&file).unwrap();
    let guest = um(&["--write", ours.to_str().unwrap()]);
    let words = [ours, theirs].map(|path| path.to_str().unwrap());
    let output = guest.run(&["sh", "-c", BREAKS_OUT, "it", words[0], words[1]]);
    assert_eq!(text(&output.stdout), "ours\n", "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(ours.join("sub/mine")).unwrap(), "mine\n");
    let after = fs::metadata(&file).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
    assert_eq!(
        (after.permissions(), after.uid(), after.modified().unwrap()),
        (before.permissions(), before.uid(), before.modified().unwrap())
    );
    let mut left: Vec<_> =
        fs::read_dir(theirs).unwrap().map(|it| it.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["file", "folder"]);
    guest.assert_nothing_left();
}

/// Moves to each of these CPUs of the guest, makes system calls there, forks, and prints the CPU of
/// the host, whose kernel leaves its number where `rdtscp` reads it; any other meanwhile, too.
const WHERE: &str = "
    #define _GNU_SOURCE
    #include <sched.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    #include <x86intrin.h>
    static void look(void) {
        unsigned int cpu, before = -1;
        for (int i = 0; i < 20000; i++) {
            getppid();
            __rdtscp(&cpu);
            if (cpu % 4096 != before)
                printf(\"%u\\n\", before = cpu % 4096);
        }
        fflush(stdout);
    }
    int main(int argc, char **argv) {
        for (int i = 1; i < argc; i++) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(atoi(argv[i]), &set);
            if (sched_setaffinity(0, sizeof(set), &set))
                return 1;
            look();
            if (!fork())
                return look(), 0;
            wait(NULL);
        }
    }";

#[test]
fn each_cpu_of_the_guest_and_what_it_runs_is_on_one_of_the_hosts() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let (source, program) = (folder.path().join("where.c"), folder.path().join("where"));
    fs::write(&source, WHERE).unwrap();
    let compiled = Command::new("cc").arg(&source).arg("-o").arg(&program).status().unwrap();
    assert!(compiled.success());

    let (program, guest) = (program.display(), um(&["--cpus", "2", "--own-caches"]));
    // One that moves, then two at once.
    let script =
        format!("{program} 0 1 0; {program} 0 0 > /run/zero & {program} 1 1; wait; cat /run/zero");
    let mut command = guest.command(&["sh", "-c", &script]);
    let output = command.current_dir(folder.path()).output().unwrap();
    if is_not_available(&output, "share") {
        return;
    }
    let out = text(&output.stdout);
    let cpus: Vec<&str> = out.lines().collect();
    let [zero, _, one, ..] = cpus[..] else { panic!("{output:?}") };
    assert_ne!(zero, one);
    let moves = [zero, zero, one, one, zero, zero];
    assert_eq!(cpus, [&moves[..], &[one; 4], &[zero; 4]].concat());
}

#[test]
fn own_caches_are_not_promised_where_there_are_none() {
    let own = |kernel, cpus| {
        let words = ["kernel", "boot", "--kernel", kernel, "--own-caches", "--cpus", cpus];
        let mut command = Command::new(PROGRAM);
        command.args(words).args(["--", "true"]);
        command
    };
    let refused = |command: &mut Command, why| ends(&command.output().unwrap(), 3, &[why]);
    refused(&mut own("um:6.12", "1"), "are for a um kernel of 7.3 or kvm, not 'um:6.12'");

    let first = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..).find(|cpu| first.is_set(*cpu)).unwrap().to_string();
    let mut command = Command::new("taskset");
    command.args(["-c", &first]).arg(PROGRAM);
    command.args(own("um", "2").get_args());
    refused(&mut command, "share");
}

#[test]
fn a_guest_that_cannot_be_or_does_not_end_says_why_and_leaves_nothing() {
    for (options, code, words) in [
        ("--sysctl net.core.no_such=1", 1, "'net.core.no_such': this kernel has no such setting"),
        (
            "--sysctl net.core.somaxconn=many",
            1,
            "'net.core.somaxconn': the value 'many' is refused",
        ),
        ("--write /dev/shm", 3, "file systems of its own"),
        ("--write /no/such", 1, "finding"),
        ("--mem 100000G", 3, "MiB missing; give the guest less (--mem)"),
        ("--timeout 1", 1, "did not finish within 1 s, and was killed"),
        // A kernel that waits a minute for its root file system.
        ("--boot-timeout 1 --append rootdelay=60", 1, "did not come up within 1 s"),
    ] {
        let guest = um(&options.split(' ').collect::<Vec<&str>>());
        let said = ends(&guest.run(&["sleep", "600"]), code, &[words]);
        // The kernel's last lines.
        assert!(options != "--timeout 1" || said.contains("as init process"), "{said}");
        guest.assert_nothing_left();
    }
}

#[test]
fn a_panic_ends_the_guest_and_shows_its_last_lines() {
    guest::a_panic_ends_it_and_shows_its_last_lines("um");
}

#[test]
fn the_kernel_s_words_go_to_the_console_file_only() {
    let console = tempfile::NamedTempFile::new().unwrap();
    let guest = um(&["--console", console.path().to_str().unwrap()]);
    let output = guest.shell("echo said > /dev/kmsg; echo out");
    assert_eq!(text(&output.stdout), "out\n");
    assert_eq!(text(&output.stderr), "");
    assert!(fs::read_to_string(console.path()).unwrap().contains("said"));
    guest.assert_nothing_left();
}

#[test]
fn signals_end_the_guest_and_leave_nothing() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        guest::a_signal_ends_it_and_leaves_nothing("um", signal, code);
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_guest() {
    let guest = um(&[]);
    let mut child = guest.command(&["yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 2];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"y\n");
    assert_eq!(child.wait().unwrap().code(), Some(141));
    guest.assert_nothing_left();
}

#[test]
fn a_full_disk_ends_the_guest_and_is_an_error_that_says_so() {
    let guest = um(&[]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = guest.command(&["yes"]).stdout(full).output().unwrap();
    ends(&output, 1, &["No space left on device"]);
    guest.assert_nothing_left();
}

#[test]
fn processes_that_the_command_leaves_behind_do_not_hold_the_guest() {
    let guest = um(&[]);
    let output = guest.run(&["sh", "-c", "sleep 600 & (yes >/dev/null &) ; echo done"]);
    assert_eq!(good(&output), "done\n");
    guest.assert_nothing_left();
}
