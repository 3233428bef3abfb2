//! `ntcopy run` as a user sees it: what it refuses, what it passes on, and in a kernel that knows
//! the flag, that programs that were never changed are hinted.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use crate::common::{
    PROGRAM, ends, good, has_flag, in_um,
    preload::{PYTHON, SENDER, SENT_BYTES, hinted, library, rises},
    project, text,
};

fn ntcopy_run(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--library", library()]).args(arguments).stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    ntcopy_run(arguments).output().expect("the program starts")
}

#[test]
fn a_kernel_without_the_flag_starts_nothing_unless_told_to() {
    if has_flag() {
        return;
    }
    let refused = output(&["--", "echo", "started"]);
    ends(&refused, 3, &["does not know SO_NTCOPY", "--anyway"]);
    assert!(refused.stdout.is_empty(), "{refused:?}");
}

#[test]
fn what_is_not_there_has_the_exit_codes_of_shells() {
    let folder = tempfile::tempdir().expect("a folder");
    let shut = folder.path().join("shut");
    fs::write(&shut, "echo\n").expect("a file");
    let broken = folder.path().join("broken");
    fs::write(&broken, "#!/nonexistent/interpreter\n").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&broken, mode).expect("our file");
    for (name, code) in [
        ("ntcopy-no-such-program", 127),
        ("/nonexistent", 127),
        (shut.to_str().expect("UTF-8"), 126),
        ("/", 126),
        (broken.to_str().expect("UTF-8"), 127),
    ] {
        ends(&output(&["--anyway", "--", name]), code, &[name]);
    }
    for usage in [
        &[][..],
        &["--bogus", "cat"],
        &["--min-bytes", "4q", "cat"],
        &["--min-bytes", "4095", "cat"],
    ] {
        ends(&output(usage), 2, &[]);
    }
}

/// A program that ends with 9, compiled with an option.
fn compiled(folder: &Path, name: &str, option: &str) -> PathBuf {
    let source = folder.join(format!("{name}.c"));
    fs::write(&source, "int main(void) { return 9; }\n").expect("a file");
    let made = folder.join(name);
    let mut compiler = Command::new("cc");
    good(&compiler.arg(option).arg(&source).arg("-o").arg(&made).output().expect("cc"));
    made
}

#[test]
fn out_of_reach_is_said_of_each_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = compiled(folder.path(), "static", "-static");
    let script = folder.path().join("script");
    fs::write(&script, format!("#!{}\n", made.display())).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).expect("our file");
    for program in [made, script] {
        let refused = output(&["--", program.to_str().expect("UTF-8")]);
        ends(&refused, 3, &["static is linked statically"]);
    }
}

#[test]
fn a_sanitized_program_that_a_script_starts_runs_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = compiled(folder.path(), "sanitized", "-fsanitize=address");
    let script = format!("{}; exit $?", made.display());
    let output = output(&["--anyway", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
}

#[test]
fn process_id_exit_code_and_arguments_are_those_of_the_program() {
    for more in [&["--anyway", "--"][..], &["--anyway"]] {
        let script = "printf '%s|' $$ \"$0\" \"$@\"; exit 7";
        let mut command = ntcopy_run(&[more, &["sh", "-c", script, "a b", "--mode", ""]].concat());
        let child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let expected = format!("{}|a b|--mode||", child.id());
        let echoed = child.wait_with_output().expect("it ends");
        assert_eq!((echoed.status.code(), text(&echoed.stdout)), (Some(7), expected));
    }
}

#[test]
fn what_was_ignored_or_blocked_stays_so() {
    // SIGPIPE is ignored in services, and the run-time of Rust would undo it.
    let status = |ignored: &str| {
        let script = format!(
            "trap '' {ignored}; exec {} run --library {} --anyway -- \
             grep -E 'Sig(Ign|Blk)' /proc/self/status",
            PROGRAM,
            library()
        );
        let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
        good(&output)
    };
    let plain = |ignored: &str| {
        let script = format!("trap '' {ignored}; exec grep -E 'Sig(Ign|Blk)' /proc/self/status");
        good(&Command::new("sh").args(["-c", &script]).output().expect("a shell"))
    };
    for ignored in ["PIPE", "HUP", "USR2 PIPE CHLD"] {
        assert_eq!(status(ignored), plain(ignored), "{ignored}");
    }
}

#[test]
fn the_environment_is_the_programs_own_and_the_library() {
    let mut command = ntcopy_run(&["--anyway", "--min-bytes", "64KiB", "--family", "udp"]);
    command.args(["--", "env"]).env_clear().env("LD_PRELOAD", "").env("OWN", "kept");
    let environment = good(&command.output().expect("it starts"));
    let mut lines: Vec<&str> = environment.lines().collect();
    lines.sort_unstable();
    let preload = format!("LD_PRELOAD={}", library());
    let filters = format!("NTCOPY_PRELOAD_FILTERS={}", filters());
    assert_eq!(
        lines,
        [
            "ASAN_OPTIONS=verify_asan_link_order=0",
            preload.as_str(),
            "NTCOPY_PRELOAD_FAMILIES=udp",
            filters.as_str(),
            "NTCOPY_PRELOAD_MIN_BYTES=65536",
            "OWN=kept",
        ]
    );
    let all = ["--family", "tcp,unix,udp,tcp"];
    for (asked, families) in [(&[][..], "unix,tcp"), (&all, "unix,tcp,udp")] {
        let said = good(&output(&[asked, &["--anyway", "--", "env"]].concat()));
        assert!(said.contains(&format!("NTCOPY_PRELOAD_FAMILIES={families}\n")), "{said}");
    }
    // A library that is not there.
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--library", "/nonexistent.so", "--", "echo", "started"]);
    ends(&command.output().expect("it starts"), 3, &["/nonexistent.so"]);
}

/// How many filters of system calls these tests are under themselves, as in a container.
fn filters() -> u32 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    line.map_or(0, |count| count.trim().parse().expect("a number"))
}

/// The program of the library's own tests that installs a filter, or sends; made once.
fn filtered() -> &'static str {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let root = project();
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filtered");
        let mut compiler = Command::new("cc");
        compiler.args(["-pthread", "-D_GNU_SOURCE", "-I"]).arg(root.join("uapi"));
        compiler.arg(root.join("crates/ntcopy-preload/tests/c/filtered.c")).arg("-o").arg(&made);
        good(&compiler.arg("-ldl").output().expect("cc"));
        made
    });
    program.to_str().expect("a target folder in UTF-8")
}

/// `ntcopy run` of what writes 1 MiB into sockets and holds what arrives against it, under a filter:
/// what happens to a system call, and to which. The library believes that the kernel has the flag.
fn sends_under(filter: [&'static str; 2], options: &[&'static str]) -> Output {
    let start = [PROGRAM, "run", "--library", library()];
    let send = ["--", filtered(), "send"];
    let mut command = Command::new(filtered());
    command.arg("filter").args(filter).args(start).args(options).args(send);
    command.env("NTCOPY_PRELOAD_ASSUME", "kernel").stdin(Stdio::null());
    command.output().expect("it starts")
}

#[test]
fn no_program_dies_of_a_filter_that_it_was_started_under() {
    for (call, says) in [
        ("option", "setsockopt"),
        ("setsockopt", "setsockopt"),
        ("process_vm_readv", "process_vm_readv"),
    ] {
        for what in ["kill", "refuse"] {
            let filter = [what, call];
            ends(&sends_under(filter, &[]), 3, &[says]);
            // The program needs that one itself.
            if call != "setsockopt" {
                good(&sends_under(filter, &["--anyway"]));
            }
        }
    }
}

/// That it hints under as many as it is told, and not under others, is tested with the library.
#[test]
fn a_filter_that_allows_what_the_library_does_is_counted_for_it() {
    good(&sends_under(["allow", "option"], &["--anyway"]));
    let mut under = Command::new(filtered());
    under.args(["filter", "allow", "option", PROGRAM, "run", "--library", library()]);
    let said = good(&under.args(["--anyway", "--", "env"]).output().expect("it starts"));
    assert!(said.contains(&format!("NTCOPY_PRELOAD_FILTERS={}\n", filters() + 1)), "{said}");
}

/// The sum of all that a kernel counted under each of these command lines, in its own guest.
fn hinted_bytes(lines: &[Vec<&str>]) -> Vec<u64> {
    let folder = tempfile::tempdir().expect("a folder");
    let sender = folder.path().join("sender.py");
    fs::write(&sender, SENDER).expect("a file");
    let mut script = String::new();
    for line in lines {
        let line = line.join(" ").replace("SENDER", sender.to_str().expect("UTF-8"));
        script += &format!("{line} && {PROGRAM} stat --json && ");
    }
    rises(&in_um(&(script + "true")), hinted)
}

#[test]
fn in_a_kernel_that_knows_the_flag_unchanged_programs_are_hinted() {
    let run = |more: &[&'static str]| {
        let start = vec![PROGRAM, "run", "--library", library()];
        [&start, more, &["--", PYTHON, "SENDER"]].concat()
    };
    let counted = hinted_bytes(&[
        vec![PYTHON, "SENDER"],
        run(&[]),
        run(&["--family", "unix"]),
        run(&["--family", "tcp"]),
        run(&["--min-bytes", "2MiB"]),
        run(&["--min-bytes", "1MiB"]),
    ]);
    assert_eq!(counted, [0, SENT_BYTES, SENT_BYTES, 0, 0, SENT_BYTES]);
}
