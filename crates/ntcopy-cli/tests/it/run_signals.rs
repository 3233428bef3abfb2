//! `ntcopy run`, with `--stat` as without, is the program to whoever signals it, stops it, waits for
//! it or reads from it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::common::{good, preload};

/// Counts each signal that it gets, until the one in its argument, then prints the counts.
const COUNTING: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static volatile sig_atomic_t got[65];
static void count(int signal) { got[signal]++; }
int main(int argc, char **argv) {
	int last = atoi(argv[argc - 1]);
	sigset_t all, none;
	sigfillset(&all);
	sigemptyset(&none);
	sigprocmask(SIG_BLOCK, &all, 0);
	struct sigaction action = { .sa_handler = count };
	for (int signal = 1; signal <= 64; signal++) sigaction(signal, &action, 0);
	puts("ready");
	fflush(stdout);
	while (!got[last]) sigsuspend(&none);
	for (int signal = 1; signal <= 64; signal++)
		if (got[signal] && signal != last) printf("%d: %d\n", signal, got[signal]);
	return 7;
}
"#;

fn counting(folder: &tempfile::TempDir) -> PathBuf {
    let (source, made) = (folder.path().join("counting.c"), folder.path().join("counting"));
    std::fs::write(&source, COUNTING).unwrap();
    good(&Command::new("cc").arg(&source).arg("-o").arg(&made).output().expect("cc"));
    made
}

/// A command, in a process group of its own.
fn command(options: Option<&[&str]>) -> Command {
    let mut command = match options {
        None => Command::new("env"),
        Some(options) => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ntcopy"));
            command.args(["run", "--library", preload::library(), "--anyway"]).args(options);
            command
        }
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command
}

fn send(child: &Child, to_group: bool, signal: i32) {
    let pid = child.id() as i32;
    // SAFETY: the call takes numbers only. The child has not been waited for, so they are its own.
    let result = unsafe { libc::kill(if to_group { -pid } else { pid }, signal) };
    assert_eq!(result, 0, "signal {signal}: {}", std::io::Error::last_os_error());
}

/// Waits for the next change of the child: a stop or its end, in the words of [`outcome`].
fn next(child: &Child) -> String {
    let pid = child.id() as i32;
    for _ in 0..4000 {
        let mut status = 0;
        let how = libc::WUNTRACED | libc::WNOHANG;
        // SAFETY: the status is written to a variable of its type.
        if unsafe { libc::waitpid(pid, &raw mut status, how) } == pid {
            return match status {
                _ if libc::WIFSTOPPED(status) => format!("stopped by {}", libc::WSTOPSIG(status)),
                _ => format!("{:?}", std::process::ExitStatus::from_raw(status)),
            };
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    send(child, true, libc::SIGKILL);
    "neither stopped nor ended".to_owned()
}

/// How the program stopped, how it ended, and how often it got each signal.
#[expect(clippy::zombie_processes, reason = "`next` waits for it, and for stops as well")]
fn outcome(mut command: Command, signal: i32, to_group: bool) -> Vec<String> {
    let last = if signal == libc::SIGUSR1 { libc::SIGUSR2 } else { libc::SIGUSR1 };
    let mut child = command.arg(last.to_string()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    send(&child, to_group, signal);
    let mut seen = Vec::new();
    if signal == libc::SIGSTOP {
        seen.push(next(&child));
        send(&child, to_group, libc::SIGCONT);
    }
    send(&child, false, last);
    seen.push(next(&child));
    seen.extend(out.lines().map(Result::unwrap));
    seen
}

#[test]
fn each_signal_arrives_once_whether_the_group_gets_it_or_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let counting = counting(&folder);
    let mut wrong = BTreeMap::new();
    for signal in 1..=64 {
        for to_group in [false, true] {
            let run = |options: Option<&[&str]>| {
                let mut command = command(options);
                command.arg(&counting);
                outcome(command, signal, to_group)
            };
            let plain = run(None);
            // The C library keeps 32 and 33 for itself, and no program catches KILL and STOP.
            if ![libc::SIGKILL, libc::SIGSTOP, 32, 33].contains(&signal) {
                assert_eq!(plain[1..], [format!("{signal}: 1")], "the program by itself");
            }
            for options in [&["--"][..], &["--stat", "--"]] {
                let under = run(Some(options));
                if under != plain {
                    wrong.insert((signal, to_group, options), (under, plain.clone()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "signal, to the group, how: got, by itself: {wrong:#?}");
}

#[test]
fn its_output_ends_when_the_program_closes_it_and_the_report_comes_last() {
    let mut command = command(Some(&["--stat", "--", "sh", "-c"]));
    command.arg("echo out; exec >&-; read -r line; echo $line >&2; exit 3").stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(out, "out\n");
    child.stdin.take().unwrap().write_all(b"error\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let (before, after) = said.split_once("error\n").expect("the program's line");
    let is_report = |text: &str| text.contains("meanwhile") || text.contains("counts nothing");
    assert!(is_report(after) && !is_report(before), "{said}");
    assert_eq!(output.status.code(), Some(3));
}
