//! `ntcopy advise`: from records on disk to advice, drop-in files and exit codes. The records are
//! made up by the tests, or those in `bench/record`; nothing is measured but in the last test, which
//! looks at no time.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ntcopy_record::{Cell, ExperimentKind, FILE_NAME, Params, Record, Sample};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{
    self, PROGRAM, good, stderr,
    store::{here, write},
};
use crate::synthetic;

/// A machine that there is not.
const ELSEWHERE: &str = "AuthenticAMD-26-200-1";

fn advise(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.current_dir(home).env("HOME", home).arg("advise").args(arguments);
    for name in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "NTCOPY_PROFILE", "GLIBC_TUNABLES"] {
        command.env_remove(name);
    }
    command.output().expect("the program starts")
}

/// Advice as JSON, by topic; the first of a topic.
fn topics(output: &Output) -> impl Fn(&str) -> Value {
    let object = common::json(&common::text(&output.stdout));
    move |topic| {
        let all = object["advice"].as_array().expect("a list");
        all.iter().find(|one| one["topic"] == topic).cloned().expect("every topic is there")
    }
}

/// A folder with a sweep of this machine in it.
fn with_sweep() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    write(&home.path().join("records"), &here(synthetic::synthetic_sweep()));
    home
}

#[test]
fn an_empty_store_gives_commands_and_no_advice() {
    let home = tempfile::tempdir().unwrap();
    let text = good(&advise(home.path(), &[]));
    assert!(
        text.contains("No evidence yet") && !text.contains("SET ") && !text.contains("USE "),
        "{text}"
    );
    assert!(text.starts_with("Advice from 0 records of this CPU ("), "{text}");
}

#[test]
fn anothers_records_are_listed_and_not_counted_unless_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let mut record = synthetic::synthetic_sweep();
    record.machine.cpu_signature = ELSEWHERE.to_owned();
    write(&home.path().join("records"), &record);
    let output = advise(home.path(), &["records"]);
    let (text, said) = (good(&output), stderr(&output));
    assert!(text.contains("Not counted") && text.contains("of another machine"), "{text}");
    assert!(!text.contains("SET ") && !text.contains("USE "), "{text}");
    assert!(said.contains(&format!("ntcopy advise --for {ELSEWHERE}")), "{said}");
    let output = advise(home.path(), &["records", "--for", ELSEWHERE, "--json"]);
    let hints = topics(&output)("net.core.ntcopy");
    assert_eq!(hints["value"], json!({"kind": "sysctl", "name": "net.core.ntcopy", "value": 1}));
    assert_eq!(hints["gain"]["verdict"], "win");
    let output = advise(home.path(), &["records", "--for", "Nobody-0-0-0"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains(&format!("there are those of {ELSEWHERE}")));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_counts() {
    let home = with_sweep();
    let torn = write(&home.path().join("records"), &{
        let mut record = here(synthetic::synthetic_rounds());
        record.header.id = "torn".into();
        record
    });
    let file = torn.join(FILE_NAME);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"type\":\"sample\"", "\"type\":\"sam", 1)).unwrap();
    // Cut short, as by a crash: what it holds is good.
    let short = write(&home.path().join("records"), &{
        let mut record = here(synthetic::synthetic_retention());
        record.header.id = "short".into();
        record
    });
    let text = fs::read_to_string(short.join(FILE_NAME)).unwrap();
    fs::write(short.join(FILE_NAME), text.trim_end().rsplit_once('\n').unwrap().0).unwrap();
    let output = advise(home.path(), &["records", "--json"]);
    let object = common::json(&common::text(&output.stdout));
    let left = object["not_counted"].as_array().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    let why = left[0]["why"].as_str().unwrap();
    assert!(why.contains("cannot be read") && why.contains("record.jsonl:"), "{why}");
    assert_eq!(object["counted"].as_array().unwrap().len(), 2);
    assert_eq!(topics(&output)("sends")["decision"], "set");
}

#[test]
fn where_there_is_nothing_to_say_or_to_write_it_is_said() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, code, says) in [
        (&["nowhere"][..], 1, "cannot read nowhere"),
        (&["--apply", "out"], 3, "nothing was written"),
        (&["--check", "--quick"], 3, "not available here"),
        (&["--unit", "./web.service"], 2, "--apply"),
    ] {
        let output = advise(home.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(stderr(&output).contains(says), "{says}: {output:?}");
    }
    assert!(!home.path().join("out").exists());
}

#[test]
fn drop_ins_are_written_replaced_and_nobody_elses_are_touched() {
    let home = with_sweep();
    let run = || advise(home.path(), &["records", "--apply", "out/new"]);
    let output = run();
    assert!(output.status.success(), "{output:?}");
    let sysctl = home.path().join("out/new/sysctl.d/60-ntcopy.conf");
    let text = fs::read_to_string(&sysctl).unwrap();
    assert!(text.contains("\n-net.core.ntcopy = 1\n"), "{text}");
    assert!(text.contains("record synthetic-sweep"), "what it rests on: {text}");
    let unit = home.path().join("out/new/systemd/system/EXAMPLE.service.d/60-ntcopy.conf");
    let unit = fs::read_to_string(unit).unwrap();
    let this = fs::canonicalize(PROGRAM).unwrap();
    let command = format!("#ExecStart={} run --min-bytes 1MiB --anyway -- ", this.display());
    assert!(unit.contains(&command), "{command}: {unit}");
    assert!(!unit.contains("GLIBC_TUNABLES"), "nothing was measured of it: {unit}");
    assert!(!home.path().join("out/new/environment.d").exists(), "no evidence, no file");
    let said = good(&output);
    assert!(said.contains(sysctl.to_str().unwrap()) && said.contains("sysctl --system"), "{said}");
    assert!(run().status.success(), "its own files are replaced");
    fs::write(&sysctl, "net.core.ntcopy = 0\n").unwrap();
    let output = run();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("did not write it"), "{output:?}");
    assert_eq!(fs::read_to_string(&sysctl).unwrap(), "net.core.ntcopy = 0\n");
}

#[test]
fn the_system_is_never_written_to() {
    let home = with_sweep();
    let config = home.path().join(".config");
    fs::create_dir_all(&config).unwrap();
    std::os::unix::fs::symlink("/etc", home.path().join("link")).unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    let system = "/ /etc /etc/sysctl.d /usr/lib /run/systemd /var/lib/x /tmp/../etc /lib /proc/sys";
    for folder in system.split(' ').chain(["link", ".config", "file", "file/below"]) {
        let output = advise(home.path(), &["records", "--apply", folder]);
        let code = output.status.code();
        assert!(code == Some(2) || (folder == "file" && code == Some(1)), "{folder}: {output:?}");
        let said = stderr(&output);
        assert!(!folder.starts_with('/') || said.contains("name a folder of your own"), "{said}");
    }
    assert!(!Path::new("/etc/sysctl.d/60-ntcopy.conf").exists());
    assert!(fs::read_dir(&config).unwrap().next().is_none());
    // Below a tree of one's own, /etc is a folder like any other.
    let output = advise(home.path(), &["records", "--apply", "image/etc"]);
    assert!(output.status.success(), "{output:?}");
    assert!(home.path().join("image/etc/sysctl.d/60-ntcopy.conf").exists());
}

#[test]
fn a_unit_gets_a_drop_in_that_starts_its_own_command_under_ntcopy_run() {
    let home = with_sweep();
    let unit = "[Service]\nType=exec\nExecStart=-/bin/cat --number \\\n  $FILES %n\n";
    fs::write(home.path().join("web.service"), unit).unwrap();
    let apply = |unit: &str| advise(home.path(), &["records", "--apply", "out", "--unit", unit]);
    let output = apply("./web.service");
    assert!(output.status.success(), "{output:?}");
    let folder = home.path().join("out/systemd/system");
    let text = fs::read_to_string(folder.join("web.service.d/60-ntcopy.conf")).unwrap();
    let this = fs::canonicalize(PROGRAM).unwrap();
    let command = format!(
        "\nExecStart=\nExecStart=-{} run --min-bytes 1MiB --anyway -- /bin/cat --number $FILES %n\n",
        this.display()
    );
    assert!(text.contains(&command), "{command}: {text}");
    assert!(text.contains("record synthetic-sweep"), "what it rests on: {text}");
    assert!(!folder.join("EXAMPLE.service.d").exists(), "the unit is in its place");
    assert!(good(&output).contains("systemctl restart web.service"), "{output:?}");
    assert!(apply("./web.service").status.success(), "its own file is replaced");
}

#[test]
fn a_unit_that_cannot_be_hinted_is_refused_and_nothing_is_written() {
    let home = with_sweep();
    let put = |name: &str, text: &str| fs::write(home.path().join(name), text).unwrap();
    put("gone.service", "[Service]\nExecStart=/nonexistent/program --serve\n");
    put("web.service", "[Service]\nExecStart=/bin/cat\n");
    for (unit, says) in [
        ("no-such-program-of-anybody", "there is no unit no-such-program-of-anybody.service"),
        ("./gone.service", "/nonexistent/program, which is not there"),
        ("./none.service", "No such file"),
    ] {
        // One that can be hinted comes first: it is not written either.
        let arguments = ["records", "--apply", "out"];
        let units = ["--unit", "./web.service", "--unit", unit];
        let output = advise(home.path(), &[&arguments[..], &units].concat());
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(stderr(&output).contains(says), "{says}: {output:?}");
        assert!(!home.path().join("out").exists(), "{unit}");
    }
    fs::create_dir(home.path().join("empty")).unwrap();
    let arguments = ["empty", "--apply", "out", "--unit", "./web.service"];
    let output = advise(home.path(), &arguments);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("no record says"), "{output:?}");
    assert!(!home.path().join("out").exists());
    // Said by hand, it needs no record, and the file says so.
    let output = advise(home.path(), &[&arguments[..], &["--min-bytes", "64KiB"]].concat());
    assert!(output.status.success(), "{output:?}");
    let file = home.path().join("out/systemd/system/web.service.d/60-ntcopy.conf");
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(" run --min-bytes 64KiB --anyway -- /bin/cat\n"), "{text}");
    assert!(text.contains("no record says that it pays here"), "{text}");
}

#[test]
fn the_records_of_the_repository_give_advice_with_their_figures() {
    let home = tempfile::tempdir().unwrap();
    let records = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/record");
    let arguments = [records, "--for", "GenuineIntel-6-167-1", "--json"];
    let output = advise(home.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let of = topics(&output);
    let copies = of("copies");
    assert_eq!(copies["decision"], "set", "{copies}");
    let low = copies["gain"]["ci"][0].as_f64().unwrap();
    assert!(low > 1.0 && !copies["records"].as_array().unwrap().is_empty(), "{copies}");
    // Every piece has figures and a record, or a command, or a reason why there is neither.
    let object = common::json(&common::text(&output.stdout));
    for one in object["advice"].as_array().unwrap() {
        let has_figures = one["gain"]["ratio"].is_f64() && one["records"][0].is_string();
        let is_bare = one["decision"] == "no evidence" || one["decision"] == "not here";
        assert!(has_figures != is_bare, "{one}");
        assert_eq!(one["decision"] == "no evidence", one["measure"].is_array(), "{one}");
    }
}

/// Fills of 64 KiB, where the library is said to have gained by non-temporal stores.
fn fills() -> Record {
    let mut record = here(synthetic::synthetic_rounds());
    record.header.experiment = "memset".into();
    record.header.baseline = "libc".into();
    record.header.id = "fills".into();
    let params: Params = [
        ("size_bytes", json!(65536)),
        ("threads", json!(1)),
        ("value", json!(0)),
        ("pages", json!("huge")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    record.cells = vec![Cell { cell: 0, params }];
    record.samples.clear();
    for pair in 0..5 {
        for (position, (mode, elapsed_ns)) in
            [("libc", 1500), ("ours", 1000)].into_iter().enumerate()
        {
            record.samples.push(Sample {
                cell: 0,
                pair,
                position: position as u32,
                mode: mode.into(),
                bytes: 65536,
                elapsed_ns,
                phases_ns: [].into(),
                counters: [("nontemporal_bytes".to_owned(), 65536)].into(),
                series: [].into(),
            });
        }
    }
    record
}

#[test]
fn a_check_measures_and_its_exit_code_says_whether_the_advice_held() {
    let home = tempfile::tempdir().unwrap();
    write(&home.path().join("records"), &fills());
    let arguments = ["records", "--check", "--quick", "--json", "--out", "kept"];
    let output = advise(home.path(), &arguments);
    if output.status.code() == Some(3) {
        // A debug kernel, whose times are none.
        assert!(stderr(&output).contains("not a timing"), "{output:?}");
        return;
    }
    let object = common::json(&common::text(&output.stdout));
    let checked = &object["checked"][0];
    assert_eq!(
        (checked["topic"].as_str(), checked["now"]["cells"].as_u64()),
        (Some("fills"), Some(1))
    );
    let held = checked["held"].as_bool().expect("it was judged");
    let is_win = checked["now"]["ci"][0].as_f64().unwrap() > 1.0;
    assert_eq!((held, output.status.code()), (is_win, Some(i32::from(!held))), "{checked}");
    let kept = Record::read(home.path().join("kept/check-1-fills")).expect("the record is kept");
    assert_eq!(kept.header.experiment, ExperimentKind::Memset);
}
