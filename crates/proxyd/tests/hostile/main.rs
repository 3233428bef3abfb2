//! Hostile requests, by RFC 9110 and 9112 and by what others have published of desynchronised
//! proxies; each over a real socket, with a backend behind that keeps what it is sent, byte by
//! byte.
//!
//! A case is refused (a 4xx or 5xx, or the end, and nothing of it at the backend), or made plain
//! (the backend has a request that can be read in one way only, and nothing else), or let through.
//! proxyd lets none through, and refuses those that must be. `make hostile` asks HAProxy and nginx
//! the same: with `HOSTILE_PROXY` and `HOSTILE_BACKEND` another proxy is asked, and its verdicts
//! are printed.

mod cases;
mod plain;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cases::{Case, all};
use clap::Parser;
use httpd::Address;
use proxyd::backend::addresses;
use proxyd::config::Config;
use proxyd::server::Server;

/// What became of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Refused,
    Plain,
    LetThrough,
}

/// What reached the backend, a connection each.
type Seen = Arc<Mutex<Vec<Arc<Mutex<Vec<u8>>>>>>;

/// A backend that answers each head that it can find, and keeps everything.
fn backend(at: SocketAddr) -> (SocketAddr, Seen) {
    let listener = TcpListener::bind(at).unwrap();
    let address = listener.local_addr().unwrap();
    let seen: Seen = Arc::default();
    let keep = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let bytes = Arc::default();
            keep.lock().unwrap().push(Arc::clone(&bytes));
            thread::spawn(move || serve(stream, &bytes));
        }
    });
    (address, seen)
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<u8>>) {
    let (mut piece, mut answered) = ([0; 16 << 10], 0);
    while let Ok(bytes @ 1..) = stream.read(&mut piece) {
        let heads = {
            let mut seen = seen.lock().unwrap();
            seen.extend_from_slice(&piece[..bytes]);
            seen.windows(4).filter(|four| four == b"\r\n\r\n").count()
        };
        if heads > answered {
            answered = heads;
            // One answer, then the end: what follows would be another request's.
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    }
}

/// Sends a case, and reads until the end or until nothing comes any more.
fn ask(proxy: SocketAddr, bytes: &[u8], patience: Duration) -> Vec<u8> {
    let mut client = TcpStream::connect(proxy).unwrap();
    client.set_read_timeout(Some(patience)).unwrap();
    let _ = client.write_all(bytes);
    let _ = client.shutdown(std::net::Shutdown::Write);
    let mut got = Vec::new();
    let _ = client.read_to_end(&mut got);
    got
}

fn judge(answer: &[u8], sent_on: &[Vec<u8>]) -> Verdict {
    let status = answer.strip_prefix(b"HTTP/1.1 ").or(answer.strip_prefix(b"HTTP/1.0 "));
    let refused = status.is_none_or(|rest| matches!(rest.first(), Some(b'4' | b'5')));
    let sent_on: Vec<&Vec<u8>> = sent_on.iter().filter(|bytes| !bytes.is_empty()).collect();
    match (refused, sent_on.as_slice()) {
        (_, []) => Verdict::Refused,
        // It was cut off in its middle: no backend can take that for a request.
        (true, parts) if parts.iter().all(|bytes| !plain::is_whole(bytes)) => Verdict::Refused,
        (_, [bytes]) if plain::is_plain(bytes) => Verdict::Plain,
        _ => Verdict::LetThrough,
    }
}

fn run(proxy: SocketAddr, seen: &Seen, patience: Duration) -> Vec<(Case, Verdict, Vec<u8>)> {
    let mut verdicts = Vec::new();
    for case in all() {
        seen.lock().unwrap().clear();
        let answer = ask(proxy, &case.bytes, patience);
        let sent_on: Vec<Vec<u8>> =
            seen.lock().unwrap().iter().map(|one| one.lock().unwrap().clone()).collect();
        let verdict = judge(&answer, &sent_on);
        let mut what = answer;
        what.truncate(60);
        what.extend(b" | ");
        what.extend(sent_on.concat());
        verdicts.push((case, verdict, what));
    }
    verdicts
}

fn count(verdicts: &[(Case, Verdict, Vec<u8>)], wanted: Verdict) -> usize {
    verdicts.iter().filter(|(_, verdict, _)| *verdict == wanted).count()
}

fn table(name: &str, verdicts: &[(Case, Verdict, Vec<u8>)]) {
    println!(
        "{name}: {} cases: {} refused, {} made plain, {} let through",
        verdicts.len(),
        count(verdicts, Verdict::Refused),
        count(verdicts, Verdict::Plain),
        count(verdicts, Verdict::LetThrough),
    );
    for (case, verdict, what) in verdicts {
        if *verdict == Verdict::LetThrough {
            println!("  {verdict:?}: {}: {}", case.name, what.escape_ascii());
        }
    }
}

#[test]
fn nothing_with_two_readings_goes_through() {
    let (backend, seen) = backend("127.0.0.1:0".parse().unwrap());
    let to = Address::Tcp(backend).to_string();
    let words = ["proxyd", "--listen", "tcp:127.0.0.1:0", "--backend", &to, "--workers", "1"];
    let words = words.into_iter().chain(["--mode", "copy"]);
    let config = Config::parse_from(words);
    let backend = addresses(&config.backend).unwrap();
    let server = Server::start(config, backend).unwrap();
    let Address::Tcp(proxy) = server.http.addresses[0] else { panic!() };
    let verdicts = run(proxy, &seen, Duration::from_secs(60));
    table("proxyd", &verdicts);
    for (case, verdict, what) in &verdicts {
        assert_ne!(*verdict, Verdict::LetThrough, "{}: {}", case.name, what.escape_ascii());
        if case.refused {
            assert_eq!(*verdict, Verdict::Refused, "{}: {}", case.name, what.escape_ascii());
        }
    }
    assert!(count(&verdicts, Verdict::Plain) >= 20, "good requests get through");
}

/// Another proxy, in front of a backend at a port that it knows.
#[test]
#[ignore = "asks another proxy: HOSTILE_PROXY=ADDRESS HOSTILE_BACKEND=ADDRESS"]
fn another_proxy() {
    let address = |name| std::env::var(name).expect(name).parse().expect(name);
    let (_, seen) = backend(address("HOSTILE_BACKEND"));
    let verdicts = run(address("HOSTILE_PROXY"), &seen, Duration::from_millis(1500));
    table(&std::env::var("HOSTILE_NAME").unwrap_or_default(), &verdicts);
}
