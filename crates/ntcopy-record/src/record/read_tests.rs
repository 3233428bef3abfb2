use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::super::testing::{crossover, error, pairs, unavailable};
use super::super::{End, Line, Look, LookEnd};
use super::*;
use crate::record::testing;

fn lines(record: &Record) -> Vec<Line> {
    let mut lines =
        vec![Line::Header(record.header.clone()), Line::Machine(Box::new(record.machine.clone()))];
    lines.extend(record.unavailable.iter().cloned().map(Line::Unavailable));
    lines.extend(record.cells.iter().cloned().map(Line::Cell));
    lines.extend(record.errors.iter().cloned().map(Line::Error));
    lines.extend(record.samples.iter().cloned().map(Line::Sample));
    lines.extend(record.looks.iter().copied().map(Line::Look));
    if record.complete {
        let samples = record.samples.len() as u64;
        lines.push(Line::End(End { samples, ended_unix_ns: 2, beside: record.beside.clone() }));
    }
    lines
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
}

fn example() -> Record {
    let mut record = crossover(&[(1 << 20, 80), (2 << 20, 120)]);
    record.unavailable.push(unavailable("vmsplice", "why \"not\""));
    record.errors.push(error("hinted", true));
    record.looks.push(Look { cell: 1, pairs: 5, misses_permille: 10, end: LookEnd::Resolved });
    record.beside = [7].into();
    record
}

fn parse(text: &str) -> Result<Record, ReadError> {
    Record::parse(Path::new("dir/record.jsonl"), text.as_bytes())
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn what_was_written_reads_back() {
    let record = example();
    assert_eq!(parse(&text(&lines(&record))).unwrap(), record);
}

#[test]
fn a_look_widens_the_intervals_of_its_cell() {
    let record = example();
    assert_eq!([0, 1].map(|cell| record.misses_permille(cell)), [50, 10]);
    let text = text(&lines(&record));
    assert!(text.contains(r#""misses_permille":10,"end":"resolved""#), "{text}");
    let error = refused(&text.replace("\"misses_permille\":10", "\"misses_permille\":0"));
    assert!(error.contains("from 1 to 50"), "{error}");
}

#[test]
fn a_directory_and_its_file_are_the_same_record() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join(FILE_NAME);
    fs::write(&file, text(&lines(&example()))).unwrap();
    assert_eq!(Record::read(place.path()).unwrap(), Record::read(&file).unwrap());
}

#[test]
fn an_absent_file_is_named() {
    let error = Record::read("/nonexistent/record").unwrap_err().to_string();
    assert!(error.contains("/nonexistent/record"), "{error}");
}

#[test]
fn a_newer_format_is_refused_whatever_else_the_line_holds() {
    let error = refused("{\"type\":\"preamble\",\"format\":4}\n");
    assert!(error.contains("format 4") && error.contains("newer ntcopy"), "{error}");
}

#[test]
fn fields_that_are_unknown_are_skipped() {
    let text = text(&lines(&example())).replace("\"cell\":0,", "\"cell\":0,\"colour\":\"red\",");
    assert_eq!(parse(&text).unwrap(), example());
}

#[test]
fn bad_lines_are_named_by_file_and_number() {
    let good = lines(&example());
    type Spoil = fn(&mut Vec<Line>);
    let cases: [(&str, Spoil); 7] = [
        (":1: the record ends before its line of type `header`", |lines| lines.clear()),
        (":2: the record ends before its line of type `machine`", |lines| lines.truncate(1)),
        (":1: the first line is not of type `header`", |lines| drop(lines.remove(0))),
        (":2: the second line is not of type `machine`", |lines| drop(lines.remove(1))),
        (":3: a second line of type `machine`", |lines| lines.insert(2, lines[1].clone())),
        (":5: a second cell with number 0", |lines| lines.insert(4, lines[3].clone())),
        ("cell 0 is used before its own line", |lines| drop(lines.remove(3))),
    ];
    for (words, spoil) in cases {
        let mut lines = good.clone();
        spoil(&mut lines);
        let error = refused(&text(&lines));
        assert!(error.starts_with("dir/record.jsonl") && error.contains(words), "{error}");
    }
}

#[test]
fn an_end_must_be_the_last_line_and_count_right() {
    let mut wrong = lines(&example());
    let Some(Line::End(end)) = wrong.last_mut() else { panic!("an end") };
    end.samples += 1;
    assert!(refused(&text(&wrong)).contains("the end counts 21 samples, the record holds 20"));
    let mut twice = lines(&example());
    twice.push(twice[3].clone());
    assert!(refused(&text(&twice)).contains("a line after the line of type `end`"));
}

#[test]
fn a_sample_that_took_no_time_is_no_sample() {
    let mut record = pairs(&["plain"], 1, &[1000]);
    record.samples[0].elapsed_ns = 0;
    assert!(refused(&text(&lines(&record))).contains("took no time"));
}

#[test]
fn rubbish_in_the_middle_is_an_error_not_an_end() {
    let mut text = text(&lines(&example()));
    let at = text.match_indices('\n').nth(4).unwrap().0;
    text.insert_str(at + 1, "{\"type\":\"sam\n");
    assert!(refused(&text).starts_with("dir/record.jsonl:6: not a line of a record"));
}

proptest! {
    #[test]
    fn a_record_cut_anywhere_after_its_machine_still_reads(cut in any::<prop::sample::Index>()) {
        let record = example();
        let text = text(&lines(&record));
        let head = text.match_indices('\n').nth(1).unwrap().0 + 1;
        let cut = head + cut.index(text.len() - head);
        let read = parse(&text[..cut]).unwrap();
        prop_assert!(!read.complete);
        prop_assert!(record.samples.starts_with(&read.samples));
        prop_assert_eq!(read.header, record.header);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Record::parse(Path::new("x"), &bytes);
    }
}

#[test]
fn congestion_control_is_told_of_cells_with_tcp_and_their_own_goes_first() {
    let of = |machine: Option<&str>, cells: [&[(&str, &str)]; 2]| {
        let mut record = testing::record(&["plain", "hinted"], &[&[], &[]]);
        record.machine.tcp_congestion_control = machine.map(str::to_owned);
        for (cell, params) in record.cells.iter_mut().zip(cells) {
            for (name, value) in params {
                cell.params.insert((*name).into(), (*value).into());
            }
        }
        record.tcp_congestion_controls().join(" ")
    };
    let http = [("scheme", "plain"), ("transport", "unix")];
    let chosen = [("scheme", "tls"), ("transport", "unix"), ("congestion", "reno")];
    assert_eq!(of(Some("bbr"), [&http, &http]), "bbr");
    assert_eq!(of(None, [&http, &http]), "", "an old record does not say");
    assert_eq!(of(Some("bbr"), [&http, &chosen]), "bbr reno");
    assert_eq!(of(Some("bbr"), [&chosen, &chosen]), "reno");
    assert_eq!(of(Some("bbr"), [&[("family", "unix")], &[("family", "udp6")]]), "");
    assert_eq!(of(Some("bbr"), [&[("family", "unix")], &[("family", "tcp6")]]), "bbr");
}

#[test]
fn samples_that_unpack_to_more_than_memory_holds_are_refused() {
    let mut record = pairs(&["plain"], 1, &[1000]);
    let packed: Vec<u64> = (1..=2000).collect();
    let series = [("latency_ns".to_owned(), packed), ("answers".to_owned(), vec![1; 2000])];
    record.samples[0].series = series.into();
    let [header, machine, cell, sample, ..] = &lines(&record)[..] else { panic!("a sample") };
    let [head, sample] = [[header, machine, cell].as_slice(), &[sample]]
        .map(|lines| text(&lines.iter().map(|line| (*line).clone()).collect::<Vec<_>>()));
    assert!(sample.contains("histograms"), "{sample}");
    let most = MOST_NUMBERS / 4000;
    assert!(parse(&(head.clone() + &sample.repeat(most))).is_ok());
    let error = refused(&(head + &sample.repeat(most + 1)));
    assert!(error.contains("of more than 16777216 numbers"), "{error}");
}
