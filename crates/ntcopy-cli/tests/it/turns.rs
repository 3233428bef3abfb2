//! `ntcopy try` as a user sees it: on the kernel that runs the tests, where nothing may be hinted,
//! and in a booted one that knows the flag. No test looks at a time.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use ntcopy_record::Record;
use serde_json::Value;

use crate::common::{
    PROGRAM, ends, good, has_flag, json,
    preload::{PYTHON, SENDER, SENT_BYTES, library},
    signal::{self, Signal},
    stderr, text, wait_until,
};

fn ntcopy_try(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["try", "--library", library(), "--allow-not-a-timing"]).args(arguments);
    command.stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    ntcopy_try(arguments).output().expect("the program starts")
}

/// A place for a record that is not there yet.
fn place() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("record").to_str().expect("UTF-8").to_owned();
    (folder, out)
}

fn object(output: &Output) -> Value {
    json(&good(output))
}

#[test]
fn a_kernel_without_the_flag_takes_no_turn_and_says_what_would() {
    if has_flag() {
        return;
    }
    let (_folder, out) = place();
    ends(&output(&["--out", &out, "--", "true"]), 3, &["--kernel auto boots"]);
    assert!(!Path::new(&out).exists());
    ends(&output(&["--", "/nonexistent"]), 127, &[]);
}

#[test]
fn turns_are_in_pairs_and_only_the_hinted_ones_have_the_library() {
    let (folder, out) = place();
    let log = folder.path().join("log");
    let script = format!("echo \"${{LD_PRELOAD:-none}}\" >> {}; echo number 7.5", log.display());
    let line = ["--anyway", "--pairs", "6", "--out", &out, "--json", "--metric", "s/.* (.*)/\\1/"];
    let told = object(&output(&[&line[..], &["--", "sh", "-c", &script]].concat()));
    let result = &told["results"][0];
    assert_eq!((result["median"].as_f64(), result["ratio"].as_f64()), (Some(7.5), Some(1.0)));
    assert_eq!(result["verdict"], "equal");
    assert_eq!(told["experiment"], "try");
    let log = fs::read_to_string(log).expect("the program wrote it");
    let hinted: Vec<bool> = log.lines().map(|line| line.contains(library())).collect();
    // There is one turn of each way before the first pair. Each way is first in equally many pairs,
    // and not always after the other one.
    let is_hinted_first = [false, true, true, false, false, true];
    let pairs = is_hinted_first.into_iter().flat_map(|first| [first, !first]);
    let expected: Vec<bool> = [false, true].into_iter().chain(pairs).collect();
    assert_eq!(hinted, expected, "{log}");
    let record = Record::read(Path::new(&out)).expect("a record");
    assert!(record.complete && record.samples.len() == 12, "{record:?}");
}

#[test]
fn a_turn_that_fails_is_told_with_what_it_said() {
    for (script, words) in
        [("echo why >&2; exit 3", "exit code 3"), ("echo none", "no line matches")]
    {
        let (_folder, out) = place();
        let metric = ["--anyway", "--out", &out, "--metric", "s/rate (.*)/\\1/"];
        let failed = output(&[&metric[..], &["--", "sh", "-c", script]].concat());
        ends(&failed, 1, &[]);
        let said = text(&failed.stdout);
        assert!(said.contains(words) && said.contains("No verdict"), "{said}");
        assert!(said.contains("nothing was hinted yet") && !said.contains("mode hinted"), "{said}");
    }
}

#[test]
fn each_turn_is_prepared_and_a_bar_gives_the_exit_code() {
    let (folder, _) = place();
    let log = folder.path().join("log");
    let prepare = format!("echo prepared >> {}", log.display());
    let script = format!("wc -l < {}", log.display());
    // Each turn finds one line more than the one before: by that the turns differ.
    for (name, bar, code) in [("1", "0.1", 0), ("2", "1.05", 5), ("3", "9", 6)] {
        let out = folder.path().join(name);
        let out = out.to_str().expect("UTF-8");
        let line = ["--anyway", "--pairs", "6", "--out", out, "--metric", "s/(.*)/\\1/"];
        let told = ["--at-least", bar, "--prepare", &prepare, "--", "sh", "-c", &script];
        let output = output(&[&line[..], &told].concat());
        ends(&output, code, &[&format!("{bar}x is ")]);
        fs::remove_file(&log).expect("it was written");
    }
}

#[test]
fn a_server_without_a_load_is_told_of_one() {
    let (folder, out) = place();
    let [server, pids] = server(&folder);
    let failed = output(&["--anyway", "--out", &out, "--", PYTHON, &server, &pids]);
    ends(&failed, 1, &[]);
    assert!(text(&failed.stdout).contains("--load"), "{}", text(&failed.stdout));
    assert!(all_gone(&pids));
}

/// A server that tells its process ID, and one that it leaves behind; it answers nothing.
const SERVER: &str = "import os, socket, sys, time\n\
                      listener = socket.socket()\n\
                      listener.bind(('127.0.0.1', 0))\n\
                      listener.listen()\n\
                      if os.fork() == 0:\n\
                      \x20os.setsid()\n\
                      \x20if os.fork() == 0:\n\
                      \x20 open(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\n\
                      \x20 time.sleep(600)\n\
                      \x20os._exit(0)\n\
                      open(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\n\
                      time.sleep(600)\n";

/// The server's file, and that of its process IDs.
fn server(folder: &tempfile::TempDir) -> [String; 2] {
    let paths = ["server.py", "pids"].map(|name| folder.path().join(name));
    fs::write(&paths[0], SERVER).expect("a file");
    paths.map(|path| path.to_str().expect("UTF-8").to_owned())
}

/// Whether none of the processes whose numbers are in a file is there any more.
fn all_gone(pids: &str) -> bool {
    let text = fs::read_to_string(pids).unwrap_or_default();
    text.lines().all(|pid| !Path::new("/proc").join(pid).exists())
}

#[test]
fn a_server_is_asked_once_it_listens_and_leaves_nothing_behind() {
    let (folder, out) = place();
    let [server, pids] = server(&folder);
    // It tells its number once it listens.
    let load = format!("test -s {pids} && echo Requests/sec: 12.5");
    let line = ["--anyway", "--pairs", "6", "--out", &out, "--json", "--load", &load, "--"];
    let told = object(&output(&[&line[..], &[PYTHON, &server, &pids]].concat()));
    assert_eq!(told["results"][0]["baseline_median"], 12.5);
    assert_eq!(told["results"][0]["metric"], "requests per second");
    assert!(all_gone(&pids), "something is left of {}", text(&fs::read(&pids).expect("it ran")));
}

#[test]
fn a_load_whose_answers_failed_gives_no_figure_and_one_with_a_rate_its_latency() {
    let (folder, _) = place();
    let [server, pids] = server(&folder);
    let turns = |load: &str, name: &str| {
        let out = folder.path().join(name);
        let out = out.to_str().expect("UTF-8");
        let line = ["--anyway", "--pairs", "6", "--out", out, "--json", "--load", load, "--"];
        output(&[&line[..], &[PYTHON, &server, &pids]].concat())
    };
    let failed = turns("echo Requests/sec: 9; echo '  Non-2xx or 3xx responses: 77'", "failed");
    ends(&failed, 1, &[]);
    assert!(text(&failed.stdout).contains("77 answers failed"), "{}", text(&failed.stdout));
    let print = "echo Latency 2.5ms; echo Requests/sec: 100";
    let rated = turns(&format!("wrk2() {{ {print}; }}; wrk2 -t1 -R100"), "rated");
    assert!(stderr(&rated).contains("fixed rate"), "{}", stderr(&rated));
    let result = &object(&rated)["results"][0];
    assert_eq!((&result["metric"], &result["median"]), (&"latency, ms".into(), &2.5.into()));
    assert_eq!(result["params"]["better"], "less");
    let several = turns("echo SET: 9 requests per second; echo GET: 8 requests per second", "two");
    ends(&several, 1, &[]);
    assert!(text(&several.stdout).contains("several figures"), "{}", text(&several.stdout));
}

#[test]
fn ctrl_c_leaves_nothing_behind_and_a_record_that_was_cut_short() {
    let (folder, out) = place();
    let [server, pids] = server(&folder);
    let line = ["--anyway", "--out", &out, "--load", "echo asked >&2; sleep 600", "--"];
    let mut command = ntcopy_try(&[&line[..], &[PYTHON, &server, &pids]].concat());
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let lines = || fs::read_to_string(&pids).unwrap_or_default().lines().count();
    wait_until(Some(&mut child), || lines() == 2);
    signal::send(&child, Signal::INT);
    let ended = child.wait_with_output().expect("it ends");
    assert_ne!(ends(&ended, 130, &[]), "");
    assert!(all_gone(&pids));
    let record = Record::read(Path::new(&out)).expect("a record");
    assert!(!record.complete && record.errors.is_empty(), "{record:?}");
}

#[test]
fn in_a_booted_kernel_the_hinted_turns_are_counted() {
    let (folder, out) = place();
    let sender = folder.path().join("sender.py");
    fs::write(&sender, SENDER).expect("a file");
    let sender = sender.to_str().expect("UTF-8");
    let line =
        ["--kernel", "um", "--family", "unix", "--pairs", "6", "--out", &out, "--json", "--"];
    let told = object(&output(&[&line[..], &[PYTHON, sender]].concat()));
    assert_eq!(told["hinted_bytes"], 6 * SENT_BYTES);
    let record = Record::read(Path::new(&out)).expect("a record");
    assert_eq!(record.machine.kernel_kind, "um");
    for sample in &record.samples {
        let counted = sample.counters.get("NtcopyHintedBytes").copied().unwrap_or(0);
        assert_eq!(counted, if sample.mode == "hinted" { SENT_BYTES } else { 0 });
    }
}

/// Sends 1 MiB to each that connects, on a socket whose name it must be able to bind.
const UNIX_SERVER: &str = "import socket, sys\n\
                           listener = socket.socket(socket.AF_UNIX)\n\
                           listener.bind(sys.argv[1])\n\
                           listener.listen()\n\
                           while True:\n\
                           \x20connection = listener.accept()[0]\n\
                           \x20connection.sendall(b'x' * 2**20)\n\
                           \x20connection.close()\n";

const UNIX_LOAD: &str = "import socket, sys\n\
                         connection = socket.socket(socket.AF_UNIX)\n\
                         connection.connect(sys.argv[1])\n\
                         while connection.recv(2**20): pass\n\
                         open(sys.argv[1] + '.done', 'w').close()\n\
                         print('1 requests in 1.00s, 1.00MB read')\n\
                         print('  99%    2.00ms')\n\
                         print('Requests/sec: 1.0')\n";

#[test]
fn in_a_booted_kernel_a_server_binds_what_an_old_one_left_and_nothing_stays() {
    let (folder, out) = place();
    let paths = ["server.py", "load.py", "socket"].map(|name| folder.path().join(name));
    fs::write(&paths[0], UNIX_SERVER).expect("a file");
    fs::write(&paths[1], UNIX_LOAD).expect("a file");
    drop(std::os::unix::net::UnixListener::bind(&paths[2]).expect("a socket"));
    let [server, load, socket] = paths.map(|path| path.to_str().expect("UTF-8").to_owned());
    let load = format!("{PYTHON} {load} {socket}");
    let line = ["--kernel", "um", "--pairs", "6", "--out", &out, "--json", "--load", &load, "--"];
    let told = object(&output(&[&line[..], &[PYTHON, &server, &socket]].concat()));
    let metrics = told["results"].as_array().expect("a list").iter();
    let metrics: Vec<&str> = metrics.filter_map(|result| result["metric"].as_str()).collect();
    assert_eq!(metrics[0], "requests per second");
    assert!(metrics.contains(&"CPU s per GB: both") && metrics.contains(&"p99, ms"), "{metrics:?}");
    assert_eq!(told["hinted_bytes"], 6 << 20);
    assert!(Path::new(&socket).exists(), "the old socket is the host's");
    assert!(!Path::new(&format!("{socket}.done")).exists(), "what the guest wrote is gone");
}
