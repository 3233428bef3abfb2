//! `ntcopy bench http`, end to end on the kernel that runs the tests, at sizes that take no time.
//! No test looks at a time.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use ntcopy_record::Record;

use crate::common::{
    PROGRAM, bench, counted, daemons_built, ends, good, in_home, is_not_available, json,
    kernel_built, measured, stderr,
};

/// `bench http` with both daemons beside the program, as `cargo build` has them.
fn http(args: &[&str], place: &Path) -> Command {
    daemons_built();
    bench(&[&["http"], args].concat(), &place.join("record"))
}

/// What one of little, which must end well, and whole, recorded and printed.
fn tiny(args: &[&str]) -> (Record, String) {
    daemons_built();
    measured(&[&["http"], &TINY[..], args].concat())
}

const TINY: [&str; 6] = ["--object", "20000,100KiB", "--dataset", "400KiB", "--connections", "1,3"];

#[test]
fn bodies_go_through_both_daemons_and_every_sample_has_what_it_cost() {
    let (record, text) = tiny(&["--modes", "sendfile,auto"]);
    // Two objects, two numbers of connections, two forms; three modes, five pairs.
    assert_eq!((record.cells.len(), record.samples.len()), (8, 8 * 3 * 5));
    for sample in &record.samples {
        let params = &record.cells[sample.cell as usize].params;
        for process in ["client_cpu", "proxy_cpu", "backend_cpu"] {
            assert!(sample.phases_ns.contains_key(process), "{sample:?}");
        }
        let answers: u64 = sample.series.get("answers").into_iter().flatten().sum();
        assert_eq!(params["form"] == "open", answers > 0, "{sample:?}");
        assert!(sample.series.contains_key("answered"));
    }
    assert!(
        text.contains("a ratio above 1 is shorter") && text.contains(", throughput: "),
        "{text}"
    );
    counted::every_sample_or_why_not(&record, &text);
}

/// A program in a folder of its own that notes that it was started, and becomes the one of its
/// name, if what comes first lets it; nothing where that is not installed.
fn noting(program: &str, place: &Path, first: &str) -> Option<(PathBuf, PathBuf)> {
    let folders = ["/usr/sbin", "/usr/bin"].map(|folder| Path::new(folder).join(program));
    let real = folders.into_iter().find(|path| path.is_file())?;
    let (folder, note) = (place.join("bin"), place.join("started"));
    fs::create_dir(&folder).unwrap();
    let (noted, run) = (note.display(), real.display());
    let script = format!("#!/bin/sh\nnote={noted}\necho >> $note\n{first}\nexec {run} \"$@\"\n");
    fs::write(folder.join(program), script).unwrap();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.join(program), executable).unwrap();
    Some((folder, note))
}

#[test]
fn proxies_and_backends_are_started_as_often_as_was_asked_and_a_taken_port_is_another() {
    let place = tempfile::tempdir().unwrap();
    // After the first backend comes its proxy.
    let taken = "[ $(wc -l <$note) != 2 ] || { echo 'bind: Address already in use' >&2; exit 1; }";
    let Some((folder, note)) = noting("nginx", place.path(), taken) else {
        println!("not run: nginx is not installed");
        return;
    };
    let args = ["--stack", "nginx+nginx", "--modes", "sendfile", "--rate", "off", "--starts", "3"];
    let one = ["--object", "20000", "--dataset", "100KiB", "--connections", "3"];
    let path = format!("{}:{}", folder.display(), env::var("PATH").unwrap());
    let mut command = http(&[&args[..], &one].concat(), place.path());
    good(&command.env("PATH", path).output().unwrap());
    let record = Record::read(place.path().join("record")).unwrap();
    assert!(record.complete && record.errors.is_empty(), "{:?}", record.errors);
    assert!(record.cells.iter().all(|cell| cell.params["starts"] == 3));
    assert_eq!((record.cells.len(), record.samples.len()), (1, 2 * 5));
    // Proxy and backend of two modes, three times, and one proxy again.
    assert_eq!(fs::read_to_string(note).unwrap().lines().count(), 2 * 2 * 3 + 1);
}

#[test]
fn over_tcp_the_bytes_are_the_same() {
    let args = ["--transport", "tcp", "--modes", "plain", "--rate", "200"];
    let (record, _) = tiny(&args);
    let open = record.cells.iter().filter(|cell| cell.params["form"] == "open");
    assert!(open.clone().count() == 4);
    assert!(open.into_iter().all(|cell| cell.params["offered_requests_per_1000_s"] == 200_000));
}

/// A copy of the program with nothing beside it says so, and begins nothing.
fn alone(booted: &[&str], says: &str) {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("ntcopy");
    fs::copy(PROGRAM, &alone).unwrap();
    let place = folder.path().join("record");
    let mut command = Command::new(&alone);
    command.args(["bench", "http", "--quick", "--allow-not-a-timing"]).args(booted);
    if booted.is_empty() {
        command.env("PATH", folder.path());
    }
    let output = command.arg("--out").arg(&place).stdin(Stdio::null()).output().unwrap();
    let said = ends(&output, 3, &[says]);
    assert!(!said.contains("cannot read"), "{said}");
    assert!(!place.exists(), "nothing was begun");
}

#[test]
fn a_stack_that_is_not_installed_is_named() {
    alone(&[], "-p storaged -p proxyd");
}

#[test]
#[ignore = "make test-programs"]
fn a_stack_that_is_not_installed_is_named_by_a_boot_of_two_kernels() {
    alone(&["--kernel", "um", "--against", "stock"], "proxyd is neither beside this program");
}

#[test]
fn in_the_kernel_with_the_flag_hinted_bodies_are_counted_and_others_are_not() {
    kernel_built();
    daemons_built();
    for (stack, modes) in [
        ("storaged+proxyd", &["plain", "hinted", "sendfile"][..]),
        ("haproxy+backend.c", &["plain", "hinted"]),
    ] {
        if stack.starts_with("haproxy") && !Path::new("/usr/sbin/haproxy").exists() {
            println!("not run: haproxy is not installed (scripts/setup.sh programs)");
            continue;
        }
        let asked = modes[1..].join(",");
        let args = ["http", "--kernel", "um", "--stack", stack, "--modes", &asked];
        let tiny =
            ["--object", "64KiB", "--dataset", "1MiB", "--rate", "off", "--connections", "4"];
        let (record, _) = measured(&[&args[..], &tiny].concat());
        let kind = record.machine.kernel_kind.as_str();
        assert_eq!((kind, record.samples.len()), ("um", modes.len() * 5));
        for sample in &record.samples {
            let count = |name: &str| sample.counters.get(name).copied().unwrap_or(0);
            let counted = count("NtcopyHintedBytes");
            let bodies: u64 = sample.series.get("counted_bytes").into_iter().flatten().sum();
            match sample.mode.as_str() {
                "plain" | "sendfile" => assert_eq!(counted, 0, "{sample:?}"),
                _ if stack == "storaged+proxyd" => {
                    assert!(counted >= bodies && bodies >= sample.bytes, "{sample:?}");
                }
                _ => assert!(count("NtcopyBypassedBytes") >= sample.bytes, "{sample:?}"),
            }
        }
    }
}

#[test]
fn haproxy_before_a_backend_that_hints_splices_or_does_not() {
    if !["haproxy", "nginx"].iter().all(|name| Path::new("/usr/sbin").join(name).exists()) {
        println!("not run: haproxy or nginx is not installed (scripts/setup.sh programs)");
        return;
    }
    for (stack, mode, ways, more) in [
        ("haproxy+storaged,haproxy+backend.c", "sendfile", 4, &["--no-splice"][..]),
        ("haproxy+storaged", "sendfile", 2, &["--haproxy-pipe", "1MiB"]),
        ("haproxy+backend.c,nginx+storaged", "plain", 2, &["--sndbuf", "256KiB"]),
    ] {
        let args = ["--stack", stack, "--modes", mode, "--rate", "off"];
        let (record, _) = tiny(&[&args[..], more].concat());
        assert_eq!((record.cells.len(), record.samples.len()), (4, 4 * ways * 5));
        let splice = record.cells[0].params.get("splice");
        assert_eq!(splice.is_some(), more == ["--no-splice"], "{splice:?}");
    }
}

#[test]
fn the_ceiling_is_measured_without_the_flag_and_says_what_is_at_most_to_gain() {
    daemons_built();
    let home = tempfile::tempdir().unwrap();
    let output = in_home(home.path(), &["advise", "--ceiling", "--json"]);
    // A debug kernel, whose times are none.
    if is_not_available(&output, "not a timing") {
        return;
    }
    let object = json(&good(&output));
    let all = object["ceiling"].as_array().unwrap();
    let connections: Vec<u64> =
        all.iter().map(|one| one["connections"].as_u64().unwrap()).collect();
    assert_eq!(connections, [1, 16, 64]);
    let said = stderr(&output);
    let record = said.lines().find_map(|line| line.strip_prefix("record: ")).expect("its record");
    assert!(Record::read(record).is_ok_and(|record| record.complete), "{record}");
    for one in all {
        assert_eq!(one["mode"], "sendfile", "{one}");
        assert!(one["ci"][1].as_f64() >= one["ci"][0].as_f64(), "{one}");
    }
}
