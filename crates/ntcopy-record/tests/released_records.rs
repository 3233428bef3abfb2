//! Records of every release can be read, and a reader of that release finds in today's lines all
//! that it knew; docs/design/versioning.md.

use std::fs;
use std::path::{Path, PathBuf};

use ntcopy_record::{FORMAT, Line, Record};
use serde_json::Value;

const FORMAT_RELEASED: u32 = 1;
/// Records of 2 were kept and never released.
const NEVER_RELEASED: [u32; 1] = [2];

/// A record of each release, with every line and field that it had.
fn records() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/abi");
    let releases = fs::read_dir(folder).expect("packaging/abi");
    let records: Vec<_> = releases
        .map(|entry| entry.expect("an entry").path().join("record.jsonl"))
        .filter(|path| path.is_file())
        .collect();
    assert!(!records.is_empty(), "a release to compare with");
    records
}

/// What a value of a release has that today's lacks or tells otherwise, by its path.
fn mistakes(path: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (name, value) in then {
                let path = format!("{path}.{name}");
                match now.get(name) {
                    Some(other) => mistakes(&path, value, other, found),
                    None => found.push(format!("{path} is gone")),
                }
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (index, (value, other)) in then.iter().zip(now).enumerate() {
                mistakes(&format!("{path}[{index}]"), value, other, found);
            }
        }
        (then, now) if then == now => {}
        (then, now) => found.push(format!("{path} was {then}, and is {now}")),
    }
}

#[test]
fn a_record_of_every_release_is_read_whole() {
    for path in records() {
        let record = Record::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let name = path.display();
        assert!(record.complete, "{name}");
        assert!(record.header.format <= FORMAT, "{name}");
        let counts = [
            record.cells.len(),
            record.samples.len(),
            record.unavailable.len(),
            record.errors.len(),
        ];
        assert!(!counts.contains(&0), "{name} has lines of every type: {counts:?}");
    }
}

#[test]
fn what_a_release_wrote_is_written_alike_today() {
    for path in records() {
        let text = fs::read_to_string(&path).expect("a record is text");
        for (number, line) in (1..).zip(text.lines()) {
            let then: Value = serde_json::from_str(line).expect("JSON");
            let read: Line = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{}:{number}: {error}", path.display()));
            let now = serde_json::to_value(read).expect("a line is JSON");
            let mut found = Vec::new();
            mistakes("line", &then, &now, &mut found);
            assert_eq!(found, [""; 0], "{}:{number}", path.display());
        }
    }
}

#[test]
fn the_formats_number_is_that_of_the_release_or_the_next() {
    let newest = records()
        .iter()
        .map(|path| Record::read(path).expect("it is read above").header.format)
        .max();
    assert_eq!(newest, Some(FORMAT_RELEASED));
    let mut later = (FORMAT_RELEASED + 1..).filter(|format| !NEVER_RELEASED.contains(format));
    let allowed = [Some(FORMAT_RELEASED), later.next()];
    assert!(allowed.contains(&Some(FORMAT)), "one release raises the number once at the most");
}
