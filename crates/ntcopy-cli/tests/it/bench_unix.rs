//! `ntcopy bench unix` and `retention`, and the published command line of the first, end to end on
//! the kernel that runs the tests, at sizes that take no time. No test looks at a time.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use ntcopy_record::Record;
use rustix::process::{Pid, Signal, kill_process};
use xtask::running::descendants;

use crate::common::{
    bench, ends, good, has_flag, in_home, measured, ntcopy, stderr, text, tried, wait_until,
};

const SMALL: [&str; 4] = ["--object", "20000", "--dataset", "100KiB"];

fn begun(args: &[&[&str]], out: &Path) -> Command {
    let mut command = bench(&[&["unix"], &args.concat()[..]].concat(), out);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&[&str]], out: &Path) -> Output {
    begun(args, out).output().expect("ntcopy starts")
}

#[test]
fn every_form_sends_in_every_mode_what_it_says() {
    // Cells and modes, what each sample's bytes are a multiple of, and what is said of it.
    for (line, cells, modes, unit, words) in [
        ("--sockets 1,3 --object 20000 --dataset 100KiB --modes plain,vmsplice", 2, 2, 20_000, ""),
        (
            "--sockets 2 --object 40KiB --dataset 80KiB --beside 8KiB --modes plain",
            4,
            1,
            8 << 10,
            "8 small sends of 8 KiB per object",
        ),
        (
            "--object 10001 --pipe 64KiB --sndbuf 64KiB --iterations 50 --modes plain,vmsplice",
            1,
            2,
            50 * 10_001,
            "",
        ),
    ] {
        let words_of_line: Vec<&str> = line.split(' ').collect();
        let (record, text) = measured(&[&["unix"], &words_of_line[..]].concat());
        assert_eq!(record.cells.len(), cells, "{line}");
        assert_eq!(record.samples.len(), cells * modes * 5, "{line}");
        for sample in &record.samples {
            assert!(sample.bytes > 0 && sample.bytes % unit == 0, "{line}: {sample:?}");
            // Rounds have phases, and a free run has none.
            let phases: u64 = sample.phases_ns.values().sum();
            assert!(phases == sample.elapsed_ns || !line.contains("--sockets"), "{sample:?}");
            if line.starts_with("--sockets 1,3") {
                let params = &record.cells[sample.cell as usize].params;
                let round = params["in_flight_bytes"].as_u64().unwrap();
                assert!(sample.bytes % round == 0, "{sample:?}");
            }
        }
        // The order alternates inside the groups.
        let is_first =
            |mode: &str| record.samples.iter().any(|s| s.position == 0 && s.mode == mode);
        assert!(is_first("plain") && (modes == 1 || is_first("vmsplice")), "{line}");
        // Headings are wrapped.
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{line}: {text}");
    }
}

#[test]
fn every_family_that_the_kernel_has_is_measured_and_the_others_say_why() {
    // Two whole datagrams and a short one that is still a hinted send.
    let sizes = ["--object", "70000", "--dataset", "210000", "--sockets", "1,3"];
    let families = ["--family", "unix,tcp,tcp6,udp,udp6,udp-gso,udplite", "--modes", "plain"];
    let (output, record) = tried(&[&["unix"], &sizes[..], &families].concat());
    assert_eq!(record.errors, [], "{}", stderr(&output));
    assert_eq!(record.cells.len(), 14);
    let missing = |cell| record.unavailable.iter().any(|line| line.cell == Some(cell));
    for cell in &record.cells {
        let expected = if missing(cell.cell) { 0 } else { 5 };
        let samples = record.samples.iter().filter(|sample| sample.cell == cell.cell);
        assert_eq!(samples.clone().count(), expected, "{:?}", cell.params);
        let round = cell.params["in_flight_bytes"].as_u64().unwrap();
        assert!(samples.into_iter().all(|sample| sample.bytes % round == 0));
    }
    let measured = |family: &str| {
        let mut cells = record.cells.iter().filter(|cell| cell.params["family"] == family);
        cells.all(|cell| !missing(cell.cell))
    };
    assert!(measured("unix") && measured("tcp") && measured("udp"));
    let all = record.unavailable.is_empty();
    ends(&output, if all { 0 } else { 3 }, &[]);
    assert_eq!(all, !text(&output.stdout).contains("Not measured"), "{}", text(&output.stdout));
}

/// Sends a signal to the reading process of a running measurement.
fn send_to_reader(parent: &Child, signal: Signal) {
    let reader = descendants(parent.id()).first().copied().and_then(Pid::from_raw);
    kill_process(reader.expect("it reads"), signal).unwrap();
}

/// Waits until the record holds this number of samples.
fn wait_for_samples(out: &Path, samples: usize) {
    wait_until(None, || Record::read(out).is_ok_and(|record| record.samples.len() >= samples));
}

#[test]
fn a_reader_that_dies_is_an_error_row_with_its_status_and_the_rest_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("record");
    let many = ["--sockets", "2", "--modes", "plain,vmsplice", "--pairs", "40"];
    let child = begun(&[&SMALL, &many], &out).spawn().unwrap();
    wait_for_samples(&out, 2);
    send_to_reader(&child, Signal::KILL);
    ends(&child.wait_with_output().unwrap(), 1, &[]);
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
        let impatient = ["--modes", "plain", "--pairs", "40", "--patience", "5"];
        let child = begun(&[&SMALL, form, &impatient], &out).spawn().unwrap();
        wait_for_samples(&out, 2);
        send_to_reader(&child, Signal::STOP);
        ends(&child.wait_with_output().unwrap(), 1, &[]);
        let record = Record::read(&out).unwrap();
        assert!(record.errors[0].what.contains("hangs or is stopped"), "{:?}", record.errors);
    }
}

#[test]
fn a_record_is_never_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let args: [&[&str]; 2] = [&SMALL, &["--sockets", "1", "--modes", "plain"]];
    assert!(run(&args, place.path()).status.success());
    let before = fs::read(place.path().join("record.jsonl")).unwrap();
    ends(&run(&args, place.path()), 1, &["already there"]);
    assert_eq!(fs::read(place.path().join("record.jsonl")).unwrap(), before);
}

#[test]
fn the_default_place_is_below_the_data_directory() {
    let home = tempfile::tempdir().unwrap();
    let line = ["bench", "unix", "--sockets", "1", "--modes", "vmsplice", "--allow-not-a-timing"];
    let output = in_home(home.path(), &[&line[..], &SMALL].concat());
    good(&output);
    let records = home.path().join(".local/share/ntcopy/records");
    let entry = fs::read_dir(&records).unwrap().next().unwrap().unwrap();
    let record = Record::read(entry.path()).unwrap();
    assert_eq!(entry.file_name().to_str(), Some(record.header.id.as_str()));
    assert!(stderr(&output).contains(&record.header.id), "the place is printed");
    assert!(stderr(&output).contains("must not touch its buffer again"), "the caveat is printed");
}

#[test]
fn a_victim_walks_after_every_send_and_alone() {
    let sizes = ["--object", "20000", "--dataset", "100KiB", "--hot-set", "8KiB", "--sockets", "2"];
    let (record, text) = measured(&[&["retention"], &sizes[..], &["--modes", "plain"]].concat());
    assert_eq!((record.header.experiment.as_str(), record.samples.len()), ("retention", 10));
    let walks = record.samples[0].series["walk_ns"].len();
    for sample in &record.samples {
        assert_eq!(sample.series["walk_ns"].len(), walks, "the same traffic in every mode");
        let bytes = if sample.mode == "idle" { 0 } else { walks as u64 * 20_000 };
        assert_eq!(sample.bytes, bytes, "{}", sample.mode);
    }
    assert!(text.contains("ns per line") && text.contains("idle"), "{text}");
}

#[test]
fn the_published_command_line_prints_the_published_columns() {
    let text = good(&ntcopy(&["unix-nt-bench", "65536", "100", "0", "131072", "131072"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("real time (sec.)") && lines[0].contains("throughput (Mb/s)"));
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(&words[..2], ["\"Normal\"", "copy"]);
    assert!(words[2].parse::<f64>().is_ok(), "{text}");
    assert!(words[3].replace(',', "").parse::<u64>().is_ok_and(|rate| rate > 0), "{text}");
}

#[test]
fn the_flag_works_or_is_not_available_with_the_reason() {
    let output = ntcopy(&["unix-nt-bench", "65536", "100", "1", "131072", "131072"]);
    if has_flag() {
        assert!(good(&output).contains("MSG_NTCOPY"));
    } else {
        ends(&output, 3, &["this kernel has no MSG_NTCOPY"]);
        assert!(output.stdout.is_empty(), "no number");
    }
}
