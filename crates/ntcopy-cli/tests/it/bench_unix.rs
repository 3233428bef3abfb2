//! `ntcopy bench unix`, end to end on the kernel that runs the tests, at sizes
//! that take no time. No test looks at a time.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ntcopy_record::{Record, Sample};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{PROGRAM, bench, children, has_flag, stderr, text};

const SMALL: [&str; 4] = ["--object", "20000", "--dataset", "100KiB"];

fn ntcopy(args: &[&[&str]], out: &Path) -> Command {
    let mut command = bench(&[&["unix"], &args.concat()[..]].concat(), out);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&[&str]], out: &Path) -> Output {
    ntcopy(args, out).output().expect("ntcopy starts")
}

fn samples<'a>(record: &'a Record, cell: u32, mode: &str) -> Vec<&'a Sample> {
    record.samples.iter().filter(|s| s.cell == cell && s.mode == mode).collect()
}

#[test]
fn rounds_are_measured_and_recorded_for_every_mode_and_cell() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let output = run(&[&SMALL, &["--sockets", "1,3", "--modes", "copy,vmsplice"]], &out);
    assert!(output.status.success(), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    assert!(record.complete && record.errors.is_empty() && record.unavailable.is_empty());
    for (cell, sockets) in [(0, 1), (1, 3)] {
        let params = &record.cells[cell as usize].params;
        assert_eq!(params["in_flight_bytes"], sockets * 20_000);
        assert_eq!(params["dataset_bytes"], 100_000);
        for mode in ["copy", "vmsplice"] {
            let samples = samples(&record, cell, mode);
            assert_eq!(samples.len(), 5);
            for sample in samples {
                assert!(sample.bytes > 0 && sample.bytes % (sockets * 20_000) == 0);
                let phases: u64 = sample.phases_ns.values().sum();
                assert_eq!(phases, sample.elapsed_ns);
            }
        }
    }
    // The order alternates inside the groups.
    let firsts: Vec<&str> = record
        .samples
        .iter()
        .filter(|sample| sample.position == 0)
        .map(|sample| sample.mode.as_str())
        .collect();
    assert!(firsts.contains(&"copy") && firsts.contains(&"vmsplice"), "{firsts:?}");
    let text = text(&output.stdout);
    assert!(text.contains("baseline") && text.contains("vmsplice"), "{text}");
    assert!(stderr(&output).contains("must not be touched again"), "the caveat is printed");
}

#[test]
fn a_small_sender_beside_a_bulk_one_has_its_own_time_and_bytes() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let args = ["--sockets", "2", "--object", "40KiB", "--dataset", "80KiB", "--beside", "8KiB"];
    let output = run(&[&args, &["--modes", "copy"]], &out);
    assert!(output.status.success(), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    assert!(record.complete && record.errors.is_empty() && record.cells.len() == 4);
    for (cell, object, clocked) in [(0, 8 << 10, "small"), (1, 2 * (40 << 10), "bulk")] {
        assert_eq!(record.cells[cell as usize].params["clocked"], clocked);
        for sample in samples(&record, cell, "copy") {
            assert!(sample.bytes > 0 && sample.bytes % object == 0, "{sample:?}");
            assert_eq!(sample.phases_ns.values().sum::<u64>(), sample.elapsed_ns);
        }
    }
    // Headings are wrapped.
    let words = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("8 small sends of 8 KiB per object"), "{words}");
}

#[test]
fn the_free_running_form_sends_the_same_number_in_every_mode() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let sizes = ["--object", "10001", "--pipe", "64KiB", "--sndbuf", "64KiB"];
    let output = run(&[&sizes, &["--iterations", "50", "--modes", "copy,vmsplice"]], &out);
    assert!(output.status.success(), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    assert_eq!(record.cells[0].params["iterations"], 50);
    assert_eq!(record.samples.len(), 10);
    assert!(record.samples.iter().all(|sample| sample.bytes == 50 * 10_001));
}

#[test]
fn an_object_in_pieces_is_one_send_and_its_bytes_are_compared() {
    let place = tempfile::tempdir().unwrap();
    let pieces = ["--pieces", "300", "--sockets", "1,3", "--dataset", "1MiB"];
    let out = place.path().join("record");
    let modes: &[&str] = &["--modes", if has_flag() { "nt,adaptive" } else { "copy" }];
    let output = run(&[&pieces, modes, &["--family", "unix,tcp"]], &out);
    assert!(output.status.success(), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    assert_eq!((record.errors.len(), record.cells.len()), (0, 4));
    assert!(record.cells.iter().all(|cell| cell.params["object_bytes"] == 108_400));
    for sample in samples(&record, 0, "nt") {
        assert_eq!(sample.counters[ntcopy::uapi::STAT_TOO_SMALL], sample.bytes);
    }
    let words = text(&output.stdout).replace('\n', " ");
    assert!(words.contains("in 300 pieces"), "{words}");
}

#[test]
fn two_senders_at_once_are_told_together_and_both_are_compared() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let sizes = ["--object", "10001", "--dataset", "50005", "--senders", "2"];
    let allowed = ntcopy_bench::run::cpus().unwrap().allowed;
    // Both pairs on one CPU will do to see that it works.
    let cpus = format!("{0},{0}", allowed[0]);
    let both = ["--cpus", &cpus, "--iterations", "50", "--modes", "copy,vmsplice"];
    let output = run(&[&sizes, &both], &out);
    assert!(output.status.success(), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    assert_eq!(record.cells[0].params["senders"], 2);
    assert_eq!(record.samples.len(), 10);
    assert!(record.samples.iter().all(|sample| sample.bytes == 2 * 50 * 10_001));
    let words = text(&output.stdout).replace('\n', " ");
    assert!(words.contains("2 senders"), "{words}");
}

#[test]
fn every_family_that_the_kernel_has_is_measured_and_the_others_say_why() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    // Two whole datagrams and a short one that is still a hinted send.
    let sizes = ["--object", "70000", "--dataset", "210000", "--sockets", "1,3"];
    let families = ["--family", "unix,tcp,tcp6,udp,udp6,udp-gso,udplite", "--modes", "copy"];
    let output = run(&[&sizes, &families], &out);
    let record = Record::read(&out).unwrap();
    assert_eq!(record.errors, [], "{}", stderr(&output));
    assert_eq!(record.cells.len(), 14);
    let missing = |cell| record.unavailable.iter().any(|line| line.cell == Some(cell));
    for cell in &record.cells {
        let expected = if missing(cell.cell) { 0 } else { 5 };
        let samples = samples(&record, cell.cell, "copy");
        assert_eq!(samples.len(), expected, "{:?}", cell.params);
        let round = cell.params["in_flight_bytes"].as_u64().unwrap();
        assert!(samples.iter().all(|sample| sample.bytes % round == 0));
    }
    let measured = |family: &str| {
        let mut cells = record.cells.iter().filter(|cell| cell.params["family"] == family);
        cells.all(|cell| !missing(cell.cell))
    };
    assert!(measured("unix") && measured("tcp") && measured("udp"));
    let all = record.unavailable.is_empty();
    assert_eq!(output.status.code(), Some(if all { 0 } else { 3 }), "{}", stderr(&output));
    assert_eq!(all, !text(&output.stdout).contains("Not measured"), "{}", text(&output.stdout));
}

/// Sends a signal to the reading process of a running measurement.
fn send_to_reader(parent: &Child, signal: Signal) {
    let reader = children(parent.id()).first().copied().and_then(Pid::from_raw);
    kill_process(reader.expect("it reads"), signal).unwrap();
}

/// Waits until the record holds this number of samples.
fn wait_for_samples(out: &Path, samples: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Record::read(out).map_or(0, |record| record.samples.len()) < samples {
        assert!(Instant::now() < deadline, "no {samples} samples in a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_reader_that_dies_is_an_error_row_with_its_status_and_the_rest_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let many = ["--sockets", "2", "--modes", "copy,vmsplice", "--pairs", "40"];
    let child = ntcopy(&[&SMALL, &many], &out).spawn().unwrap();
    wait_for_samples(&out, 2);
    send_to_reader(&child, Signal::KILL);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let record = Record::read(&out).unwrap();
    let [error] = &record.errors[..] else { panic!("one error: {:?}", record.errors) };
    assert!(!error.wrong_byte && error.what.contains("signal: 9"), "{}", error.what);
    assert_eq!(record.samples.len(), 79, "one sample is missing, the others are there");
    assert!(record.complete);
}

#[test]
fn a_reader_that_hangs_is_an_error_row_not_a_hang() {
    for form in [&["--sockets", "2"][..], &["--iterations", "2000"]] {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("record");
        let impatient = ["--modes", "copy", "--pairs", "40", "--patience", "5"];
        let child = ntcopy(&[&SMALL, form, &impatient], &out).spawn().unwrap();
        wait_for_samples(&out, 2);
        send_to_reader(&child, Signal::STOP);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let record = Record::read(&out).unwrap();
        assert!(record.errors[0].what.contains("hangs or is stopped"), "{:?}", record.errors);
    }
}

#[test]
fn a_record_is_never_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let args: [&[&str]; 2] = [&SMALL, &["--sockets", "1", "--modes", "copy"]];
    assert!(run(&args, place.path()).status.success());
    let before = fs::read(place.path().join("record.jsonl")).unwrap();
    let output = run(&args, place.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("already there"), "{}", stderr(&output));
    assert_eq!(fs::read(place.path().join("record.jsonl")).unwrap(), before);
}

#[test]
fn the_default_place_is_below_the_data_directory() {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(PROGRAM)
        .args(["bench", "unix", "--sockets", "1", "--modes", "copy", "--allow-not-a-timing"])
        .args(SMALL)
        .env_remove("XDG_DATA_HOME")
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let records = home.path().join(".local/share/ntcopy/records");
    let entry = fs::read_dir(&records).unwrap().next().unwrap().unwrap();
    let record = Record::read(entry.path()).unwrap();
    assert_eq!(entry.file_name().to_str(), Some(record.header.id.as_str()));
    assert!(stderr(&output).contains(&record.header.id), "the place is printed");
}
