//! A store keeps what it is given, and the report names the machine that is unlike its model. The
//! record is one that the repository holds.

use std::path::Path;

use ntcopy_survey::analysis::analyse;
use ntcopy_survey::engine::machine_id;
use ntcopy_survey::page::{html, terminal};
use ntcopy_survey::store::{Added, Entry, Origin, Store};
use ntcopy_survey::summary::{RecordId, Summary};

fn entry() -> Entry {
    let record = "../../bench/record/2026-11-26-GenuineIntel-6-167-1/memcpy/record.jsonl";
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join(record);
    let origin = Origin {
        machine: machine_id("web", "n0"),
        fleet: Some("web".to_owned()),
        node: Some("n0".to_owned()),
        asked: Some("memcpy --quick".to_owned()),
    };
    Entry::parse(&record, std::fs::read(&record).unwrap(), origin).unwrap()
}

#[test]
fn a_store_keeps_what_it_is_given_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new/survey.sqlite");
    assert!(Store::open_existing(&file).is_err() && !file.exists());
    let mut one = entry();
    let (id, first) = (one.summary.record.clone(), one.raw.clone());
    let mut store = Store::open(&file).unwrap();
    assert_eq!(store.insert(&one).unwrap(), Added::New);
    let mut store = Store::open_existing(&file).unwrap();
    assert_eq!(store.insert(&one).unwrap(), Added::Known);
    one.raw.extend_from_slice(b"x");
    assert_eq!(store.insert(&one).unwrap(), Added::Differs);
    assert_eq!(store.raw(&id).unwrap(), Some(first));
    assert_eq!(store.raw(&RecordId("none".to_owned())).unwrap(), None);
    let found = store.records(Some("web")).unwrap();
    let [one_found] = found.as_slice() else { panic!("{}", found.len()) };
    assert_eq!(one_found.summary.machine, one.summary.machine);
    assert!(!one_found.summary.findings.is_empty());
    for (found, given) in one_found.summary.findings.iter().zip(&one.summary.findings) {
        // A text holds a number to its last digit but one.
        assert!(
            found.question == given.question && (found.ratio / given.ratio - 1.0).abs() < 1e-12
        );
    }
    assert!(store.records(Some("other")).unwrap().is_empty());
    let taken = one.summary.taken_unix_ns;
    let answers = [("n0".to_owned(), "memcpy --quick".to_owned())];
    assert_eq!(store.answered("web", taken).unwrap(), answers);
    assert!(store.answered("web", taken + 1).unwrap().is_empty());
    let change = |sql: &str| rusqlite::Connection::open(&file).unwrap().execute(sql, []).unwrap();
    change("UPDATE record SET digest = 'other'");
    assert!(store.raw(&id).unwrap_err().to_string().contains("damaged"));
}

#[test]
fn a_file_that_is_no_store_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let why = || Store::open(&file).err().unwrap().to_string();
    std::fs::write(&file, "this is no database at all, and long enough to be seen as none")
        .unwrap();
    assert!(why().contains("not a SQLite file"), "{}", why());
    for (sql, expected) in [
        ("CREATE TABLE ntcopy_record (id TEXT)", "made by ntcopy 0.2.0"),
        ("CREATE TABLE song (id TEXT)", "another program"),
        ("PRAGMA user_version = 99", "newer"),
    ] {
        std::fs::remove_file(&file).unwrap();
        rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        assert!(why().contains(expected), "{}", why());
    }
}

/// Twelve machines of one model, a per cent apart, and one of another model.
fn fleet() -> Vec<Summary> {
    let one = entry().summary;
    let of = |number: usize| {
        let mut summary = one.clone();
        let name = format!("n{number}");
        summary.record = RecordId(format!("record-{number:02}"));
        summary.machine.id = machine_id("web", &name);
        summary.node = Some(name);
        for finding in &mut summary.findings {
            finding.ratio *= 1.0 + (number as f64 - 5.5) / 500.0;
        }
        summary
    };
    let mut fleet: Vec<Summary> = (0..13).map(of).collect();
    fleet[12].machine.machine.cpu_signature = "Other-1-1-1".to_owned();
    fleet
}

#[test]
fn the_machine_that_is_unlike_its_model_is_named_and_left_out() {
    let mut summaries = fleet();
    let usual = analyse(&summaries);
    assert_eq!((usual.machines, usual.judged, usual.unlike.len()), (13, 12, 0));
    // One answer that was disturbed makes no machine odd.
    summaries[2].findings[0].ratio *= 3.0;
    assert!(analyse(&summaries).unlike.is_empty());
    summaries[3].node = Some("\n== \u{1b}[31mn3<b>".to_owned());
    summaries[3].machine.machine.cpus += 1;
    summaries[3].findings.iter_mut().for_each(|finding| finding.ratio *= 0.8);
    let found = analyse(&summaries);
    let [odd] = found.unlike.as_slice() else { panic!("{:?}", found.unlike) };
    assert_eq!(odd.machine, machine_id("web", "n3"));
    assert!((1.2..1.3).contains(&odd.off) && odd.usual < 1.02, "{odd:?}");
    let differs: Vec<&str> = odd.differs.iter().map(|one| one.what).collect();
    assert_eq!(differs, ["CPUs"]);
    let model = &found.models[0];
    assert_eq!((model.machines, model.unlike, model.series[0].gain.machines), (12, 1, 11));
    summaries.reverse();
    assert_eq!(analyse(&summaries), found, "the order of the records does not matter");

    let said = terminal(&found);
    assert!(said.contains("Unlike their model: 1 of 12 machines."), "{said}");
    assert!(said.contains(r"\u{a}== \u{1b}[31mn3") && !said.contains("\n== n3"), "{said}");
    assert!(said.lines().all(|line| line.is_ascii() && line.len() <= 100), "{said}");
    let page = html(&found, &["ntcopy".to_owned()]);
    assert!(page.contains("n3&lt;b&gt;") && !page.contains("<b>"), "nothing becomes markup");
}

#[test]
fn the_newest_answer_counts_and_what_does_not_count_is_told() {
    let mut summaries = fleet();
    let before = analyse(&summaries);
    let mut older = summaries[0].clone();
    older.record = RecordId("older".to_owned());
    older.taken_unix_ns -= 1;
    older.findings.iter_mut().for_each(|finding| finding.ratio *= 2.0);
    let mut wrong = older.clone();
    wrong.not_counted = Some("a byte was wrong in it".to_owned());
    summaries.extend([older, wrong]);
    let after = analyse(&summaries);
    assert_eq!(after.models[0].series, before.models[0].series);
    assert_eq!(after.left_out.get("a byte was wrong in it"), Some(&1));
}
