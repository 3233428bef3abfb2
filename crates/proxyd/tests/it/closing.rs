//! A backend that closes at every byte: of a request that it reads, of an answer that it writes.
//!
//! The model: whatever is cut where, a client gets the right answer or an error that says so, a
//! backend never sees a request that no client sent, nor a body with other bytes, and what changes
//! something is done at most once. Every body contains a request of its own, so that whoever
//! loses count of the framing serves it, and is seen.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use proxyd::server::Server;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, recv};

use crate::anything::decode;
use crate::common::{Backend, Peer, connect, header, proxy};

/// What bodies say: a request, for whoever takes it for one.
const PAYLOAD: &str = "x0\r\n\r\nPUT /smuggled HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n";
/// How long a client waits for what its backend does next, where that may be nothing. It decides
/// only which interleaving is tried: each must come out right.
const MOMENT: Duration = Duration::from_micros(600);
/// What the proxy makes of a request is longer than the request by less than this.
const LONGER: usize = 260;
/// How an answer begins whose body ends with the connection.
const UNTIL_CLOSE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n";

/// What a backend does to the first request of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Closes once this number of its bytes was read. With 0 it closes as soon as there is one.
    Request(usize),
    /// Reads it whole, and closes after this number of bytes of the answer.
    Answer(usize),
    /// Closes as soon as it is connected to.
    Accept,
}

/// How an answer's body ends; with `Close` what is cut off can't be distinguished from a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    Length,
    Chunked,
    /// With an interim answer before it.
    Interim,
    Bodiless,
    Close,
}

/// Method, path and body of a request, as a backend has understood it.
type Act = (String, String, Vec<u8>);

/// What the backend and the test share.
struct Desk {
    /// For the next request that comes, or the next connection.
    cut: Mutex<Option<Cut>>,
    answered: Mutex<Answered>,
    acts: Mutex<Vec<Act>>,
    /// Connections that have come to their end.
    cuts: AtomicUsize,
}

impl Desk {
    fn take(&self, wanted: impl Fn(Cut) -> bool) -> Option<Cut> {
        let mut cut = self.cut.lock().unwrap();
        if cut.is_some_and(wanted) { cut.take() } else { None }
    }

    /// Serves a connection until it ends or is cut.
    fn serve(&self, peer: &mut Peer) {
        let mut seen = Vec::new();
        let mut goes_on = self.take(|cut| cut == Cut::Accept).is_none();
        while goes_on
            && (!seen.is_empty()
                || matches!(recv(peer.socket(), &mut [0; 1], RecvFlags::PEEK), Ok((1, _))))
        {
            let cut = self.take(|cut| cut != Cut::Accept);
            let limit = if let Some(Cut::Request(bytes)) = cut { bytes } else { usize::MAX };
            let act = read_request(peer, &mut seen, limit);
            self.acts.lock().unwrap().extend(act.clone());
            let all = act
                .filter(|_| limit == usize::MAX)
                .map_or(String::new(), |act| answer(&act, *self.answered.lock().unwrap()));
            let at = if let Some(Cut::Answer(bytes)) = cut { bytes } else { usize::MAX };
            let written = peer.try_send(&all.as_bytes()[..at.min(all.len())]);
            let closes = all.starts_with(UNTIL_CLOSE) && !all.ends_with("\r\n\r\n");
            goes_on = !all.is_empty() && cut.is_none() && written && !closes;
        }
        self.cuts.fetch_add(1, Ordering::SeqCst);
    }
}

/// A whole request out of at most `limit` bytes; `None` if the end comes first, or what comes is
/// none.
fn read_request(peer: &Peer, seen: &mut Vec<u8>, limit: usize) -> Option<Act> {
    loop {
        if let Some((act, used)) = understand(seen) {
            seen.drain(..used);
            return Some(act);
        }
        let mut piece = [0; 4096];
        let room = piece.len().min(limit.saturating_sub(seen.len()));
        match recv(peer.socket(), &mut piece[..room], RecvFlags::empty()) {
            Ok((bytes @ 1.., _)) => seen.extend_from_slice(&piece[..bytes]),
            _ => return None,
        }
    }
}

/// The first request of these bytes, and how many they are.
fn understand(bytes: &[u8]) -> Option<(Act, usize)> {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let rest = &bytes[at..];
    let (body, used) = match header(&head, "content-length") {
        Some(length) => (rest.get(..length.parse().unwrap())?.to_vec(), length.parse().unwrap()),
        None if header(&head, "transfer-encoding").is_some() => decode(rest, || rest.len().max(1))?,
        None => (Vec::new(), 0),
    };
    Some(((method, path, body), at + used))
}

/// What the right answer to a request says.
fn said((method, path, body): &Act) -> String {
    let sum = body.iter().fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
    format!("{method} {path} {} {sum:x}", body.len())
}

fn answer(act: &Act, how: Answered) -> String {
    let text = said(act);
    let head = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
    let length = head(&format!("Content-Length: {}\r\n", text.len()));
    let body = if act.0 == "HEAD" { "" } else { &text };
    match how {
        Answered::Length => length + body,
        Answered::Interim => format!("HTTP/1.1 103 Early Hints\r\n\r\n{length}{body}"),
        Answered::Bodiless => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        Answered::Close => format!("{UNTIL_CLOSE}\r\n{body}"),
        Answered::Chunked if body.is_empty() => head("Transfer-Encoding: chunked\r\n"),
        Answered::Chunked => {
            let (one, two) = body.split_at(5);
            let chunks = format!("5\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", two.len());
            head("Transfer-Encoding: chunked\r\n") + &chunks
        }
    }
}

/// A request: its method, the lines about its body, the body as it is sent, and what it says.
type Sent = (&'static str, String, String, &'static str);

fn requests() -> Vec<Sent> {
    let length = |payload: &str| format!("Content-Length: {}\r\n", payload.len());
    let chunked = "Transfer-Encoding: chunked\r\n";
    let one_chunk = format!("{:x}\r\n{PAYLOAD}\r\n0\r\n\r\n", PAYLOAD.len());
    let (one, rest) = PAYLOAD.split_at(1);
    let (two, three) = rest.split_at(9);
    let chunks = format!(
        "1\r\n{one}\r\n{:X};a=b\r\n{two}\r\n{:x}\r\n{three}\r\n0\r\nT: x\r\n\r\n",
        two.len(),
        three.len()
    );
    let mut all: Vec<Sent> = Vec::new();
    let mut add = |methods: &[&'static str], lines: &str, body: &str, says| {
        all.extend(methods.iter().map(|method| (*method, lines.to_owned(), body.to_owned(), says)));
    };
    add(&["PUT"], &length(""), "", "");
    add(&["GET", "HEAD", "OPTIONS", "DELETE", "POST"], "", "", "");
    add(&["PUT", "PATCH"], &length(PAYLOAD), PAYLOAD, PAYLOAD);
    add(&["PUT", "POST", "DELETE"], chunked, &one_chunk, PAYLOAD);
    add(&["PUT", "PATCH"], chunked, &chunks, PAYLOAD);
    add(&["GET", "POST"], chunked, "0\r\n\r\n", "");
    all
}

fn bytes((method, lines, body, _): &Sent, path: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: t\r\n{lines}\r\n{body}").into_bytes()
}

#[derive(Debug, Clone, Copy)]
struct Case {
    /// Whether the backend's connection has served before.
    kept: bool,
    cut: Cut,
    answered: Answered,
    /// Where the client waits a moment.
    split: usize,
}

/// The proxies and the backend of one kind of request.
struct Bench<'r> {
    desk: Arc<Desk>,
    keeping: Server,
    closing: Server,
    request: &'r Sent,
    cases: usize,
    /// How often each kind of end was seen: right, error, cut off.
    ends: [usize; 3],
}

impl Bench<'_> {
    fn run(&mut self, case: Case) {
        self.cases += 1;
        let server = if case.kept { &self.keeping } else { &self.closing };
        let desk = &self.desk;
        *desk.cut.lock().unwrap() = None;
        *desk.answered.lock().unwrap() = Answered::Length;
        if case.kept {
            let warm = b"GET /warm HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
            let got = exchange(server, &[warm], |_| {});
            assert!(got.starts_with(b"HTTP/1.1 200"), "{}", got.escape_ascii());
            assert_eq!(std::mem::take(&mut *desk.acts.lock().unwrap()).len(), 1);
        }
        let path = format!("/c{}", self.cases);
        let sent = bytes(self.request, &path);
        let split = case.split.min(sent.len());
        *desk.answered.lock().unwrap() = case.answered;
        *desk.cut.lock().unwrap() = Some(case.cut);
        let before = desk.cuts.load(Ordering::SeqCst);
        let got = exchange(server, &[&sent[..split], &sent[split..]], |client| {
            // Until the backend has closed and the proxy has answered that, if both will.
            let until = Instant::now() + MOMENT;
            while desk.cuts.load(Ordering::SeqCst) == before && Instant::now() < until {
                thread::yield_now();
            }
            let socket = client.socket();
            let _ =
                poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&MOMENT.try_into().unwrap()));
        });
        let (method, .., says) = self.request;
        let expected = ((*method).to_owned(), path, says.as_bytes().to_vec());
        let acts = std::mem::take(&mut *desk.acts.lock().unwrap());
        let text = || format!("{method} {case:?}: {acts:?}\n{}", got.escape_ascii());
        assert!(acts.iter().all(|act| *act == expected), "another request: {}", text());
        let safe = ["GET", "HEAD", "OPTIONS"].contains(method);
        let most = if safe && case.kept { 2 } else { 1 };
        assert!(acts.len() <= most, "served too often: {}", text());
        let end = judge(case, &expected, &got);
        let end = end.unwrap_or_else(|| panic!("neither right nor an error: {}", text()));
        assert!(end != 0 || !acts.is_empty(), "answered, but not done: {}", text());
        self.ends[end] += 1;
    }
}

/// 0: the right answer; 1: an error that says so; 2: cut off, and that can be seen.
fn judge(case: Case, act: &Act, mut got: &[u8]) -> Option<usize> {
    let head_of = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n");
    while got.starts_with(b"HTTP/1.1 103 ") {
        let Some(end) = head_of(got) else { return Some(2) };
        got = &got[end + 4..];
    }
    let Some(at) = head_of(got) else {
        return (got.is_empty() && case.answered == Answered::Interim).then_some(2);
    };
    let (head, body) = got.split_at(at + 4);
    let (head, is_head) = (std::str::from_utf8(head).ok()?, act.0 == "HEAD");
    let length: Option<usize> = header(head, "content-length").map(|text| text.parse().unwrap());
    let right = said(act).into_bytes();
    let (cut, whole) = (body.len() < right.len() && right.starts_with(body), body == right);
    match &head[9..12] {
        "502" | "503" => {
            let said_close = header(head, "connection") == Some("close");
            (said_close && body.len() == if is_head { 0 } else { length? }).then_some(1)
        }
        "204" => (case.answered == Answered::Bodiless && body.is_empty()).then_some(0),
        "200" if is_head => body.is_empty().then_some(0),
        "200" if header(head, "transfer-encoding").is_some() => {
            match decode(body, || body.len().max(1)) {
                None => Some(2),
                Some((payload, used)) => (used == body.len() && payload == right).then_some(0),
            }
        }
        "200" if cut => (case.answered == Answered::Close || body.len() < length?).then_some(2),
        "200" => whole.then_some(0),
        _ => None,
    }
}

/// Sends the parts, and reads all that comes until the end.
fn exchange(server: &Server, parts: &[&[u8]], mut between: impl FnMut(&Peer)) -> Vec<u8> {
    let mut client = connect(server);
    for (at, part) in parts.iter().enumerate() {
        if at > 0 && !part.is_empty() && !parts[at - 1].is_empty() {
            between(&client);
        }
        // It may have been answered and closed by then.
        client.try_send(part);
    }
    client.half_close();
    client.rest()
}

/// Runs the cases of each request in a thread of its own.
fn for_each_request(what: &str, cases: impl Fn(&Sent, &mut dyn FnMut(Case), Case) + Sync) {
    let (requests, cases) = (requests(), &cases);
    let all = thread::scope(|scope| {
        let run = |request| {
            scope.spawn(move || {
                let desk = Arc::new(Desk {
                    cut: Mutex::new(None),
                    answered: Mutex::new(Answered::Length),
                    acts: Mutex::default(),
                    cuts: AtomicUsize::new(0),
                });
                let serving = Arc::clone(&desk);
                let backend = Backend::new(move |peer, _| serving.serve(peer));
                let server = |idle| proxy(&backend, |config| config.backend_idle = idle);
                let (keeping, closing) = (server(1), server(0));
                let mut bench = Bench { desk, keeping, closing, request, cases: 0, ends: [0; 3] };
                for kept in [true, false] {
                    let (cut, answered, split) = (Cut::Accept, Answered::Length, 0);
                    cases(
                        request,
                        &mut |case| bench.run(case),
                        Case { kept, cut, answered, split },
                    );
                }
                (bench.cases, bench.ends)
            })
        };
        let running: Vec<_> = requests.iter().map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let cases: usize = all.iter().map(|(cases, _)| cases).sum();
    let ends = [0, 1, 2].map(|end| all.iter().map(|(_, ends)| ends[end]).sum::<usize>());
    println!("{what}: {cases} cases; {} right, {} errors, {} cut off", ends[0], ends[1], ends[2]);
    assert!(ends[0] > 0 && ends[1] > 0, "{what}: only one kind of end was seen");
}

#[test]
fn a_backend_may_close_at_every_byte_of_a_request() {
    for_each_request("requests cut by the backend", |request, run, case| {
        run(case);
        for at in 0..bytes(request, "/c100").len() + LONGER {
            run(Case { cut: Cut::Request(at), ..case });
        }
    });
}

#[test]
fn a_backend_may_close_at_every_byte_of_an_answer() {
    use Answered::{Bodiless, Chunked, Close, Interim, Length};
    for_each_request("answers cut by the backend", |request, run, case| {
        for answered in [Length, Chunked, Interim, Bodiless, Close] {
            let act = (request.0.to_owned(), "/c1000".to_owned(), request.3.as_bytes().to_vec());
            for at in 0..=answer(&act, answered).len() {
                run(Case { cut: Cut::Answer(at), answered, ..case });
            }
        }
    });
}

/// The client's request comes in two parts, and the backend is gone when the second does.
#[test]
fn a_request_may_be_split_at_every_byte_while_its_backend_closes() {
    for_each_request("requests in two parts, backends gone between them", |request, run, case| {
        let splits = if request.2.is_empty() { 0..0 } else { 1..bytes(request, "/c1000").len() };
        for split in splits {
            for cut in [Cut::Accept, Cut::Request(0), Cut::Request(1), Cut::Request(150)] {
                run(Case { cut, split, ..case });
            }
        }
    });
}
