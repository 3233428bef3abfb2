//! A store keeps what it is given, once, whoever gives it: SQLite, and PostgreSQL with a real
//! server.

#[path = "../common/postgres.rs"]
mod postgres_server;
mod records;

use std::sync::Arc;
use std::thread;

use ntcopy_survey::engine::machine_id;
use ntcopy_survey::store::{Added, Entry, Origin, Place, Store};
use ntcopy_survey::summary::{Dimms, RecordId};
use postgres_server::Server;

fn entry(number: u32) -> Entry {
    let node = format!("n{}", number % 7);
    let origin = Origin {
        machine: machine_id("fleet", &node),
        fleet: Some("fleet".to_owned()),
        node: Some(node),
        asked: Some("memcpy --quick".to_owned()),
        dimms: Some(Dimms { slots: 16, populated: 8, speed_mt_per_s: Some(4800) }),
    };
    Entry::parse("a record".as_ref(), records::bytes(number), origin).unwrap()
}

fn sorted(mut summaries: Vec<ntcopy_survey::summary::Summary>) -> Vec<RecordId> {
    summaries.sort_by(|a, b| a.record.cmp(&b.record));
    summaries.into_iter().map(|summary| summary.record).collect()
}

/// What goes in comes out: summaries, bytes, lists.
fn keeps_what_it_is_given(place: &Place) {
    let entries: Vec<Entry> = (0..5).map(entry).collect();
    {
        let mut store = Store::open(place).unwrap();
        assert_eq!(store.insert(&entries).unwrap(), [Added::New; 5]);
    }
    let mut store = Store::open_existing(place).unwrap();
    let summaries = store.summaries().unwrap();
    assert_eq!(summaries.len(), 5);
    for (summary, entry) in summaries.iter().zip(&entries) {
        assert_eq!(summary, &entry.summary);
        assert!(!summary.findings.is_empty());
        assert_eq!(store.raw(&summary.record).unwrap().as_ref(), Some(&entry.raw));
        let record = store.record(&summary.record).unwrap().unwrap();
        assert_eq!(record.header.id, summary.record.0);
    }
    assert_eq!(store.summaries_of("fleet").unwrap(), summaries);
    assert_eq!(store.summaries_of("other").unwrap(), []);
    assert_eq!(store.raw(&RecordId("none".to_owned())).unwrap(), None);
    let listed = store.list().unwrap();
    assert_eq!(listed.len(), 5);
    assert_eq!(listed[0].node.as_deref(), Some("n0"));
    assert_eq!(listed[0].raw_bytes, entries[0].raw.len() as u64);
    assert!(listed[0].has_raw);
}

/// A record is stored once, and one of the same id with other bytes never instead of it.
fn is_idempotent(place: &Place) {
    let mut store = Store::open(place).unwrap();
    let mut one = entry(100);
    assert_eq!(store.insert(&[one.clone(), one.clone()]).unwrap(), [Added::New, Added::Known]);
    assert_eq!(store.insert(std::slice::from_ref(&one)).unwrap(), [Added::Known]);
    let first = one.raw.clone();
    one.raw.extend_from_slice(b"x");
    assert_eq!(store.insert(std::slice::from_ref(&one)).unwrap(), [Added::Differs]);
    assert_eq!(store.raw(&one.summary.record).unwrap(), Some(first));
}

/// A summary can be kept without the record's bytes.
fn keeps_a_summary_alone(place: &Place) {
    let mut store = Store::open(place).unwrap();
    let bare = Entry { raw: Vec::new(), ..entry(200) };
    store.insert(std::slice::from_ref(&bare)).unwrap();
    assert_eq!(store.raw(&bare.summary.record).unwrap(), None);
    let listed = store.list().unwrap();
    let one = listed.iter().find(|one| one.record == bare.summary.record).unwrap();
    assert!(!one.has_raw);
}

/// What was answered since a time is known by node and question.
fn knows_what_was_answered(place: &Place) {
    let mut store = Store::open(place).unwrap();
    let (good, mut failed) = (entry(300), entry(301));
    failed.asked = None;
    store.insert(&[good.clone(), failed]).unwrap();
    let taken = good.summary.taken_unix_ns;
    let pair = ("n6".to_owned(), "memcpy --quick".to_owned());
    assert!(store.answered("fleet", taken).unwrap().contains(&pair));
    assert!(!store.answered("fleet", taken + 10).unwrap().contains(&pair));
    assert_eq!(store.answered("other", 0).unwrap(), []);
    assert!(!store.answered("fleet", 0).unwrap().iter().any(|(node, _)| node == "n0"));
}

/// Several writers open a store that is not there yet and put overlapping sets into it, in
/// different orders: every record is in it once, with all of its findings.
fn is_safe_under_concurrent_writers(place: &Place) {
    const WRITERS: u32 = 6;
    const RECORDS: u32 = 24;
    let entries: Arc<Vec<Entry>> = Arc::new((0..RECORDS).map(entry).collect());
    let threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (place, entries) = (place.clone(), Arc::clone(&entries));
            thread::spawn(move || {
                let mut store = Store::open(&place).unwrap();
                let mut new = 0;
                // Three quarters of all, from another place on for each, four at a time.
                let mine: Vec<Entry> = (0..RECORDS * 3 / 4)
                    .map(|step| (writer * 4 + step * 7) % RECORDS)
                    .map(|at| entries[at as usize].clone())
                    .collect();
                for chunk in mine.chunks(4) {
                    let added = store.insert(chunk).unwrap();
                    assert!(!added.contains(&Added::Differs));
                    new += added.iter().filter(|added| **added == Added::New).count();
                }
                new
            })
        })
        .collect();
    let new: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(new, RECORDS as usize, "each was new to one writer alone");
    let mut store = Store::open(place).unwrap();
    let summaries = store.summaries().unwrap();
    let expected: Vec<_> = entries.iter().map(|entry| entry.summary.clone()).collect();
    assert_eq!(sorted(summaries.clone()), sorted(expected.clone()));
    for (found, expected) in summaries.iter().zip(&expected) {
        assert_eq!(found.findings, expected.findings);
    }
}

/// What is asked of a store, by name.
type Behaviour = (&'static str, fn(&Place));

/// Every behaviour, each with an empty store.
const ALL: [Behaviour; 5] = [
    ("keeps", keeps_what_it_is_given),
    ("once", is_idempotent),
    ("bare", keeps_a_summary_alone),
    ("answered", knows_what_was_answered),
    ("writers", is_safe_under_concurrent_writers),
];

#[test]
fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    for (name, behaviour) in ALL {
        eprintln!("{name}");
        behaviour(&Place::Sqlite(folder.path().join(name).join("survey.sqlite")));
    }
}

#[test]
fn postgres() {
    let Some(server) = Server::start() else { return };
    for (name, behaviour) in ALL {
        eprintln!("{name}");
        behaviour(&Place::parse(&server.database(name)).unwrap());
    }
}

#[test]
fn both_keep_the_same() {
    let Some(server) = Server::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let places = [
        Place::Sqlite(folder.path().join("survey.sqlite")),
        Place::parse(&server.database("same")).unwrap(),
    ];
    let entries: Vec<Entry> = (0..9).map(entry).collect();
    let [one, two] = places.map(|place| {
        let mut store = Store::open(&place).unwrap();
        store.insert(&entries).unwrap();
        (store.summaries().unwrap(), store.list().unwrap())
    });
    assert_eq!(one, two);
}

#[test]
fn a_server_is_spoken_to_by_tls_and_only_if_its_certificate_is_good() {
    let Some(server) = Server::start() else { return };
    server.database("tls");
    let url = |rest: &str| Place::parse(&server.tcp("tls", rest)).unwrap();
    let roots = server.certificate().display().to_string();
    let mut store = Store::open(&url(&format!("sslmode=verify-full&sslrootcert={roots}"))).unwrap();
    assert_eq!(store.insert(&[entry(1)]).unwrap(), [Added::New]);
    // Without its authority the certificate is not trusted, and the server gets no password.
    for mode in ["sslmode=require", "sslmode=prefer"] {
        let error = Store::open(&url(mode)).err().expect("an untrusted certificate").to_string();
        assert!(error.contains("sslrootcert=FILE"), "{error}");
    }
    assert!(Store::open(&url("sslmode=disable")).is_ok());
}

#[test]
fn what_cannot_be_opened_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    std::fs::write(&file, "this is no database at all, and long enough to be seen as none")
        .unwrap();
    let error = Store::open(&Place::Sqlite(file.clone())).err().unwrap().to_string();
    assert!(error.contains("not a SQLite file") && error.contains("text"), "{error}");
    let none = Place::Sqlite(folder.path().join("none"));
    let error = Store::open_existing(&none).err().unwrap().to_string();
    assert!(error.contains("no such file"), "{error}");
    assert!(!folder.path().join("none").exists());
    let place = Place::parse("postgresql://me:secret@127.0.0.1:1/db").unwrap();
    let error = Store::open(&place).err().unwrap().to_string();
    assert!(error.contains("127.0.0.1") && !error.contains("secret"), "{error}");
}

#[test]
fn a_damaged_record_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("survey.sqlite");
    let one = entry(1);
    let id = &one.summary.record;
    let mut store = Store::open(&Place::Sqlite(file.clone())).unwrap();
    store.insert(std::slice::from_ref(&one)).unwrap();
    let change = |sql: &str| {
        rusqlite::Connection::open(&file).unwrap().execute(sql, [&id.0]).unwrap();
    };
    change("UPDATE ntcopy_record SET digest = 'other' WHERE id = ?1");
    let error = store.raw(id).unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains(&id.0), "{error}");
    change("UPDATE ntcopy_record SET raw = x'00112233' WHERE id = ?1");
    assert!(store.raw(id).unwrap_err().to_string().contains("does not unpack"));
}

#[test]
fn a_store_of_a_newer_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("survey.sqlite");
    let place = Place::Sqlite(file.clone());
    drop(Store::open(&place).unwrap());
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute("INSERT INTO ntcopy_schema VALUES (99, '9.9', 0)", []).unwrap();
    let error = Store::open(&place).err().unwrap().to_string();
    assert!(error.contains("99") && error.contains("newer"), "{error}");
}
