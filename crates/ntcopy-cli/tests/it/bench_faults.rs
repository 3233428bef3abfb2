//! What all experiments do alike where something is missing or goes wrong, end to end on the kernel
//! that runs the tests, at sizes that take no time. No test looks at a time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use ntcopy_record::Record;
use xtask::running::descendants;

use crate::bench_app::{self, APP};
use crate::common::{
    bench, daemons_built, ends, has_flag, json, preload, signal, signal::Signal, text, wait_until,
};

/// Nothing here takes this long, on any machine; a test that would hang ends.
const PATIENCE: Duration = Duration::from_secs(120);

const UNIX: &str = "unix --object 20000 --dataset 100KiB";
const HTTP: &str = "http --object 20000,100KiB --dataset 400KiB --connections 1,3 --rate off";

fn command(line: &str, out: &Path) -> Command {
    daemons_built();
    let mut command = bench(&line.split_ascii_whitespace().collect::<Vec<_>>(), out);
    if is_app(line) {
        command.args(["--large-rate", "60MB/s", "--library", preload::library()]);
    }
    command
}

fn is_app(line: &str) -> bool {
    line.starts_with("app")
}

#[test]
fn a_wrong_byte_is_an_error_row_and_exit_code_4_and_never_a_number() {
    for line in [
        &format!("{UNIX} --sockets 3 --modes plain,vmsplice"),
        &format!("{UNIX} --modes plain,vmsplice"),
        &format!("{UNIX} --family tcp,udp --sockets 2 --modes plain"),
        &format!("{HTTP} --modes plain"),
        &format!("{APP} --modes idle"),
        "net --family tcp --connections 2 --rate off --modes plain",
        "pingpong --family tcp --duration 0.05 --modes plain",
        "memcpy --size 4099,128KiB --region 8MiB --threads 1 --destination cold",
        "memset --size 64KiB",
        "order --side 10",
        "pages --buffer 8KiB",
        "retention --sockets 1 --hot-set 64KiB --object 16KiB --dataset 4MiB --modes plain",
    ] {
        if is_app(line) && !bench_app::is_installed() {
            continue;
        }
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("record");
        let output = command(line, &out).args(["--inject", "wrong-byte"]).output().unwrap();
        ends(&output, 4, &[]);
        let Record { samples, errors, .. } = Record::read(&out).unwrap();
        assert!(errors.iter().all(|error| error.wrong_byte) && !errors.is_empty(), "{line}");
        let is_spoilt = |mode: &str| errors.iter().any(|error| error.mode == mode);
        assert!(!samples.iter().any(|sample| is_spoilt(&sample.mode)), "{line}");
        let is_app = is_app(line);
        assert!(samples.iter().all(|sample| is_app || sample.mode == "idle"), "{line}");
        let mut named = line.split_once("--modes ").into_iter().flat_map(|(_, all)| all.split(','));
        assert!(is_app || named.all(is_spoilt), "{line}");
        let said = text(&output.stdout);
        assert!(said.contains("byte was wrong"), "{line}: {said}");
    }
}

#[test]
fn without_the_flag_the_hinted_modes_are_not_available_and_say_why() {
    if has_flag() {
        return;
    }
    for (line, asked) in [
        (&*format!("{UNIX} --sockets 1"), "hinted"),
        ("http --object 32KiB --dataset 64KiB --connections 2 --rate off", "hinted"),
        ("net --family tcp --connections 1 --rate off", "hinted"),
        ("pingpong --family tcp --message 64 --duration 0.05", "hinted"),
        (APP, "hinted"),
    ] {
        if is_app(line) && !bench_app::is_installed() {
            continue;
        }
        let place = tempfile::tempdir().unwrap();
        for modes in ["", asked] {
            let out = place.path().join(format!("record-{modes}"));
            let mut command = command(line, &out);
            if !modes.is_empty() {
                command.args(["--modes", modes]);
            }
            let output = command.arg("--json").output().unwrap();
            ends(&output, 3, &["--kernel um"]);
            let record = Record::read(&out).unwrap();
            let why = record.unavailable.iter().find(|missing| missing.mode == asked);
            assert!(why.is_some_and(|missing| missing.why.contains("_NTCOPY")), "{line}");
            let is_there = |mode: &str| record.samples.iter().any(|sample| sample.mode == mode);
            assert!(record.complete && is_there("plain") && !is_there(asked), "{line}");
            let object = json(&text(&output.stdout));
            let results = object["results"].as_array().unwrap();
            assert!(results.iter().any(|result| result.get("unavailable").is_some()), "{object}");
        }
    }
}

#[test]
fn what_cannot_be_measured_here_is_exit_code_3_and_nothing_is_begun() {
    daemons_built();
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    // HAProxy is asked for before a compiler, and found wherever PATH points.
    let without_cc = match Path::new("/usr/sbin/haproxy").exists() {
        true => "there is no C compiler, cc",
        false => "haproxy is not installed",
    };
    for (line, words) in [
        ("http --stack haproxy+backend.c", without_cc),
        (&*format!("{UNIX} --sockets 1 --kernel x86"), "emulator"),
        ("unix --sockets 1 --object 1MiB --sndbuf 64KiB", "does not take a whole object"),
        ("http --sndbuf 2047MiB", "net.core.wmem_max="),
        ("pages --form fork --kernel host", "--kernel um"),
        ("pages --form fork --kernel um:6.12", "--kernel um"),
        ("pages --form fork --kernel x86", "--kernel um"),
        ("app", "apt-get install --no-install-recommends memcached"),
    ] {
        let mut command = Command::new(crate::common::PROGRAM);
        command.arg("bench").args(line.split_ascii_whitespace()).arg("--out").arg(&out);
        ends(&command.env("PATH", place.path()).output().unwrap(), 3, &[words]);
        assert!(!out.exists(), "{line}: nothing was begun");
    }
}

/// Whether a process runs its program. One that waits for its end to be heard of does not.
fn is_running(pid: &i32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

/// Folders of measurements of this process number that are still there.
fn leftovers(pid: u32) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| {
        let owner = fs::read_to_string(path.join("owner")).unwrap_or_default();
        owner.trim() == pid.to_string()
    };
    ["/dev/shm".into(), env::temp_dir()]
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(is_one)
        .collect()
}

/// Waits until it has measured something and its processes are there; none where it ended with 3.
fn processes(child: &mut Child, out: &Path) -> Option<Vec<i32>> {
    let begun = Instant::now();
    let has_sample = || {
        let lines = fs::read_to_string(out.join("record.jsonl")).unwrap_or_default();
        lines.contains("\"type\":\"sample\"")
    };
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(3), "it ended before it was met");
            return None;
        }
        let family = descendants(child.id());
        if has_sample() && !family.is_empty() {
            return Some(family);
        }
        assert!(begun.elapsed() < PATIENCE, "no sample");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_leaves_no_process_and_no_folder_and_a_record_that_was_cut_short() {
    for (line, signal, code) in [
        (&*format!("{UNIX} --sockets 2 --modes plain"), Signal::INT, Some(130)),
        (&*format!("{HTTP} --modes plain"), Signal::INT, Some(130)),
        (&*format!("{APP} --modes idle"), Signal::INT, Some(130)),
        ("net --veth --modes plain --rate off", Signal::INT, Some(130)),
        ("net --veth --modes plain --rate off", Signal::KILL, None),
    ] {
        if is_app(line) && !bench_app::is_installed() {
            continue;
        }
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("record");
        // Long enough to be met in the middle of it.
        let mut command = command(line, &out);
        command.args(["--pairs", "100000"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let Some(processes) = processes(&mut child, &out) else {
            println!("not run: {line}");
            continue;
        };
        let pid = child.id();
        signal::send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{line}");
        wait_until(None, || !processes.iter().any(is_running));
        let record = Record::read(&out).unwrap();
        assert!(!record.complete && !record.samples.is_empty(), "{line}: what was measured stays");
        assert!(record.errors.is_empty(), "{line}: {:?}", record.errors);
        if code.is_some() {
            assert!(leftovers(pid).is_empty(), "{line}: {:?}", leftovers(pid));
            assert!(text(&output.stdout).contains("cut short"), "{line}");
        }
    }
}
