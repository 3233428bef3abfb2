use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::super::body_reader::{BodyReader, seed};
use super::super::wire::Target;
use super::*;
use crate::hardware::Hardware;
use crate::run::meter::Events;
use crate::run::{Stop, pattern};

const LENGTH: u64 = 20_000;
const OBJECTS: u64 = 7;

/// Answers requests for objects, on every connection, until the client goes; or never.
fn server(answers: bool) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || serve(stream, answers));
        }
    });
    Target { address, patience: Duration::from_secs(60) }
}

fn serve(mut stream: TcpStream, answers: bool) {
    let mut body = vec![0; LENGTH as usize];
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(bytes @ 1..) = stream.read(&mut piece) {
        seen.extend_from_slice(&piece[..bytes]);
        while let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(seen.drain(..end + 4).collect()).unwrap();
            let object = head.split(' ').nth(1).unwrap().rsplit_once('/').unwrap().1;
            pattern::fill(seed(object.parse().unwrap()), 0, &mut body);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
            if answers && stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
                return;
            }
        }
    }
}

fn client(connections: u32, answers: bool) -> Client {
    Client::to(server(answers), connections, OBJECTS, LENGTH, &Stop::default()).unwrap()
}

fn meter() -> Meter<'static> {
    Meter::new(&|| Ok([0; 3]))
}

#[test]
fn without_a_pause_what_is_counted_is_a_part_of_what_came() {
    let mut client = client(3, true);
    for _ in 0..2 {
        let window =
            client.closed(Duration::from_millis(5), Duration::from_millis(20), meter()).unwrap();
        assert!(window.bytes <= window.all_bytes && window.elapsed_ns >= 20_000_000);
        // Every answer is complete in the end.
        assert_eq!(window.all_bytes % LENGTH, 0);
        assert!(window.all_bytes >= 3 * LENGTH && window.answers.is_none());
        assert!(client.conns.iter().all(|conn| conn.is_idle() && conn.wire.is_quiet()));
    }
}

#[test]
fn while_the_clock_runs_the_events_of_all_who_take_part_are_counted() {
    let Some(events) = Hardware::of_kernel().map(Events::new) else {
        println!("not run: perf_event_open is refused, even for the kernel's own events");
        return;
    };
    let mut client = client(2, true);
    let (warm_up, clocked) = (Duration::from_millis(1), Duration::from_millis(5));
    let closed = client.closed(warm_up, clocked, meter().counting(&events)).unwrap();
    let schedule = Schedule::new(1, 1_000_000, warm_up, Duration::from_millis(20));
    let open = client.open(&schedule, meter().counting(&events)).unwrap();
    let unseen = client.closed(warm_up, clocked, meter()).unwrap();
    for window in [&closed, &open] {
        assert_eq!(window.events.keys().collect::<Vec<_>>(), ["page-faults", "task-clock"]);
        assert!(window.events["task-clock"] > 0);
    }
    assert!(unseen.events.is_empty());
}

#[test]
fn every_byte_can_be_compared_of_as_many_objects_as_asked() {
    let mut client = client(2, true);
    assert_eq!(client.check(OBJECTS, BodyReader::comparing(false)).unwrap(), OBJECTS * LENGTH);
    assert_eq!(client.check(1, BodyReader::comparing(false)).unwrap(), LENGTH);
    let spoilt = client.check(1, BodyReader::comparing(true));
    assert!(matches!(spoilt, Err(Failure::WrongByte(_))));
    // The connection was left in the middle of a body; it is made anew.
    assert_eq!(client.check(2, BodyReader::comparing(false)).unwrap(), 2 * LENGTH);
}

#[test]
fn on_a_schedule_every_request_that_counts_has_a_latency() {
    let mut client = client(2, true);
    let sample = Duration::from_millis(40);
    let schedule = Schedule::new(1, 1_000_000, Duration::from_millis(10), sample);
    let counted = schedule.due_ns.iter().filter(|due| **due >= schedule.counted_from_ns).count();
    assert!(counted > 0 && counted < schedule.due_ns.len());
    let window = client.open(&schedule, meter()).unwrap();
    let answers = window.answers.unwrap();
    let recorded: u64 = answers.latencies.iter().map(|(_, count)| count).sum();
    assert_eq!((recorded, answers.unanswered), (counted as u64, 0));
    assert!(answers.latencies.is_sorted() && answers.latencies[0].0 > 0);
    assert_eq!(window.all_bytes, schedule.due_ns.len() as u64 * LENGTH);
}

#[test]
fn what_is_never_answered_is_counted_as_late_and_not_left_out() {
    let mut client = client(2, false);
    let schedule = Schedule::new(1, 1_000_000, Duration::ZERO, Duration::from_millis(20));
    let window = client.open(&schedule, meter()).unwrap();
    let answers = window.answers.unwrap();
    // Two went out and wait, the others found no connection that had nothing to do.
    assert_eq!(answers.unanswered, schedule.due_ns.len() as u64);
    let recorded: u64 = answers.latencies.iter().map(|(_, count)| count).sum();
    assert_eq!((recorded, window.answered), (answers.unanswered, 0));
    client.revive().unwrap();
    assert!(client.conns.iter().all(super::super::conn::Conn::is_idle));
}

#[test]
fn a_stop_ends_a_run() {
    let stop = Stop::default();
    let mut client = Client::to(server(true), 1, OBJECTS, LENGTH, &stop).unwrap();
    stop.ask(2);
    let failure = client.closed(Duration::ZERO, Duration::from_secs(3600), meter()).unwrap_err();
    assert_eq!(failure, Failure::Stopped(2));
}
