//! A backend that closes at every byte: of a request that it reads, of an answer that it writes.
//!
//! The model: whatever is cut where, a client gets the right answer or an error that says so, a
//! backend never sees a request that no client sent, nor a body with other bytes, and what changes
//! something is done at most once. Every body contains a request of its own, so that whoever
//! loses count of the framing serves it, and is seen.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use proxyd::config::Config;
use proxyd::net::Address;
use proxyd::server::Server;
use tempfile::TempDir;

use crate::common::{Backend, proxy};

/// What each body says: a request, for whoever takes it for one.
pub const PAYLOAD: &str =
    "x0\r\n\r\nPUT /smuggled HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n";
/// How long a hang takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a client waits for what its backend does next, where that may be nothing. It decides
/// only which interleaving is tried: each must come out right.
const MOMENT: Duration = Duration::from_micros(600);

/// How an answer begins whose body ends with the connection.
const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n";

/// What a backend does to the first request of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Closes once this number of its bytes was read. With 0 it closes as soon as there is one.
    Request(usize),
    /// Reads it whole, and closes after this number of bytes of the answer.
    Answer(usize),
    /// Closes as soon as it is connected to.
    Accept,
}

/// How an answer's body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Length,
    Chunked,
    /// With an interim answer before it.
    Interim,
    Bodiless,
    /// With the connection, so that what is cut off within it can't be distinguished from a
    /// whole.
    Close,
}

/// A request as a backend has understood it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    pub method: String,
    pub path: String,
    pub body: Vec<u8>,
}

/// What the backend and the test share.
#[derive(Default)]
pub struct Desk {
    /// For the next request that comes, or the next connection.
    cut: Mutex<Option<Cut>>,
    answered: Mutex<Option<Answered>>,
    acts: Mutex<Vec<Act>>,
    /// Connections that were cut.
    cuts: AtomicUsize,
}

impl Desk {
    pub fn order(&self, cut: Cut, answered: Answered) {
        *self.cut.lock().unwrap() = Some(cut);
        *self.answered.lock().unwrap() = Some(answered);
    }

    /// What was done since the last call.
    pub fn acts(&self) -> Vec<Act> {
        std::mem::take(&mut *self.acts.lock().unwrap())
    }

    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }

    fn take(&self, wanted: impl Fn(Cut) -> bool) -> Option<Cut> {
        let mut cut = self.cut.lock().unwrap();
        if cut.is_some_and(wanted) { cut.take() } else { None }
    }

    /// No case is under way.
    pub fn clear(&self) {
        *self.cut.lock().unwrap() = None;
        *self.answered.lock().unwrap() = None;
    }
}

/// The backend; its folder goes with it.
pub struct Cutter {
    pub desk: Arc<Desk>,
    pub address: Address,
    _folder: TempDir,
}

impl Cutter {
    pub fn new() -> Cutter {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let desk = Arc::new(Desk::default());
        let shared = Arc::clone(&desk);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, desk) = (stream.unwrap(), Arc::clone(&shared));
                if desk.take(|cut| cut == Cut::Accept).is_some() {
                    drop(stream);
                    desk.cuts.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                thread::spawn(move || serve(stream, &desk));
            }
        });
        Cutter { desk, address: Address::Unix(path), _folder: folder }
    }
}

/// Serves a connection until it ends or is cut.
fn serve(mut stream: UnixStream, desk: &Desk) {
    let mut seen = Vec::new();
    loop {
        if seen.is_empty() && !wait(&stream) {
            return;
        }
        let cut = desk.take(|cut| cut != Cut::Accept);
        let limit = match cut {
            Some(Cut::Request(bytes)) => bytes,
            _ => usize::MAX,
        };
        let request = read_request(&mut stream, &mut seen, limit);
        if let Some(act) = &request {
            desk.acts.lock().unwrap().push(act.clone());
        }
        let is_cut = matches!(cut, Some(Cut::Request(_)));
        let (Some(act), false) = (request, is_cut) else {
            drop(stream);
            desk.cuts.fetch_add(usize::from(is_cut), Ordering::SeqCst);
            return;
        };
        let answer = answer(&act, desk.answered.lock().unwrap().unwrap_or(Answered::Length));
        let at = match cut {
            Some(Cut::Answer(bytes)) => bytes.min(answer.len()),
            _ => answer.len(),
        };
        let whole = stream.write_all(&answer[..at]).is_ok();
        let closes = act.method != "HEAD" && answer.starts_with(UNTIL_CLOSE);
        if !whole || cut.is_some() || closes {
            drop(stream);
            desk.cuts.fetch_add(usize::from(cut.is_some()), Ordering::SeqCst);
            return;
        }
    }
}

/// Waits for a byte, and leaves it where it is; false at the end.
fn wait(stream: &UnixStream) -> bool {
    let flags = rustix::net::RecvFlags::PEEK;
    matches!(rustix::net::recv(stream, &mut [0; 1], flags), Ok((1, _)))
}

/// A whole request out of at most `limit` bytes; `None` if the end comes first, or what comes is
/// none.
fn read_request(stream: &mut UnixStream, seen: &mut Vec<u8>, limit: usize) -> Option<Act> {
    let mut got = seen.len();
    loop {
        if let Some((act, used)) = understand(seen) {
            seen.drain(..used);
            return Some(act);
        }
        let mut piece = [0; 4096];
        let room = piece.len().min(limit.saturating_sub(got));
        match stream.read(&mut piece[..room]) {
            Ok(0) | Err(_) => return None,
            Ok(bytes) => seen.extend_from_slice(&piece[..bytes]),
        }
        got = seen.len();
    }
}

/// The first request of these bytes, and how many they are.
fn understand(bytes: &[u8]) -> Option<(Act, usize)> {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let rest = &bytes[at..];
    let (body, used) = match crate::common::header(&head, "content-length") {
        Some(length) => {
            let length: usize = length.parse().unwrap();
            (rest.get(..length)?.to_vec(), length)
        }
        None if crate::common::header(&head, "transfer-encoding").is_some() => dechunk(rest)?,
        None => (Vec::new(), 0),
    };
    Some((Act { method, path, body }, at + used))
}

/// The payload of a complete chunked body, and the bytes that it takes.
fn dechunk(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let line = at + bytes[at..].windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[at..line]).ok()?, 16).ok()?;
        at = line + 2;
        body.extend_from_slice(bytes.get(at..at + size)?);
        at += size;
        bytes.get(at..at + 2)?;
        at += 2;
        if size == 0 {
            return Some((body, at));
        }
    }
}

/// What the right answer to a request says.
pub fn said(method: &str, path: &str, body: &[u8]) -> String {
    let sum = body.iter().fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
    format!("{method} {path} {} {sum:x}", body.len())
}

fn answer(act: &Act, how: Answered) -> Vec<u8> {
    let text = said(&act.method, &act.path, &act.body);
    let head = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
    let length = head(&format!("Content-Length: {}\r\n", text.len()));
    let body = if act.method == "HEAD" { "" } else { &text };
    match how {
        Answered::Length => length + body,
        Answered::Interim => format!("HTTP/1.1 103 Early Hints\r\n\r\n{length}{body}"),
        Answered::Bodiless => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        Answered::Close => head("Connection: close\r\n") + body,
        Answered::Chunked if body.is_empty() => head("Transfer-Encoding: chunked\r\n"),
        Answered::Chunked => {
            let (one, two) = body.split_at(5);
            let chunks = format!("5\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n", two.len());
            head("Transfer-Encoding: chunked\r\n") + &chunks
        }
    }
    .into_bytes()
}

/// How a client frames its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    None,
    Empty,
    Length,
    /// In one chunk.
    Chunk,
    /// In three, with extensions and a trailer.
    Chunks,
    EmptyChunked,
}

impl Body {
    fn bytes(self) -> &'static [u8] {
        match self {
            Body::None | Body::Empty | Body::EmptyChunked => b"",
            Body::Length | Body::Chunk | Body::Chunks => PAYLOAD.as_bytes(),
        }
    }

    fn write(self, method: &str, path: &str) -> Vec<u8> {
        let len = PAYLOAD.len();
        let (one, rest) = PAYLOAD.split_at(1);
        let (two, three) = rest.split_at(9);
        let (lines, body) = match self {
            Body::None => (String::new(), String::new()),
            Body::Empty => ("Content-Length: 0\r\n".to_owned(), String::new()),
            Body::Length => (format!("Content-Length: {len}\r\n"), PAYLOAD.to_owned()),
            Body::Chunk => (String::new(), format!("{len:x}\r\n{PAYLOAD}\r\n0\r\n\r\n")),
            Body::Chunks => {
                let (two_len, three_len) = (two.len(), three.len());
                let chunks = format!(
                    "1\r\n{one}\r\n{two_len:X};a=b\r\n{two}\r\n{three_len:x}\r\n{three}\r\n0\r\nT: x\r\n\r\n"
                );
                (String::new(), chunks)
            }
            Body::EmptyChunked => (String::new(), "0\r\n\r\n".to_owned()),
        };
        let chunked = matches!(self, Body::Chunk | Body::Chunks | Body::EmptyChunked);
        let coding = if chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
        format!("{method} {path} HTTP/1.1\r\nHost: t\r\n{lines}{coding}\r\n{body}").into_bytes()
    }
}

/// One case.
#[derive(Debug, Clone, Copy)]
struct Case {
    method: &'static str,
    body: Body,
    /// Whether the backend's connection has served before.
    kept: bool,
    cut: Cut,
    answered: Answered,
    /// Where the client waits a moment.
    split: usize,
}

/// The proxies and the backend of one thread.
struct Bench {
    cutter: Cutter,
    keeping: Server,
    closing: Server,
    cases: usize,
    /// How often each kind of end was seen: right, error, cut off.
    ends: [usize; 3],
}

impl Bench {
    fn new() -> Bench {
        let cutter = Cutter::new();
        let unused = Backend::standard();
        let server = |idle| {
            proxy(&unused, |config: &mut Config| {
                config.backends = vec![cutter.address.clone().into()];
                config.limits.backend_idle = idle;
                config.health.failures = u32::MAX;
            })
        };
        let (keeping, closing) = (server(1), server(0));
        Bench { cutter, keeping, closing, cases: 0, ends: [0; 3] }
    }

    fn run(&mut self, case: Case) {
        self.cases += 1;
        let server = if case.kept { &self.keeping } else { &self.closing };
        let desk = &self.cutter.desk;
        if case.kept {
            desk.clear();
            let got = exchange(
                server,
                &[b"GET /warm HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"],
                |_| {},
            );
            assert!(got.starts_with(b"HTTP/1.1 200"), "{}", got.escape_ascii());
            assert_eq!(desk.acts().len(), 1);
        }
        let path = format!("/c{}", self.cases);
        let request = case.body.write(case.method, &path);
        let split = case.split.min(request.len());
        desk.order(case.cut, case.answered);
        let before = desk.cuts();
        let got = exchange(server, &[&request[..split], &request[split..]], |client| {
            // Until the backend has closed and the proxy has answered that, if both will.
            let until = std::time::Instant::now() + MOMENT;
            while desk.cuts() == before && std::time::Instant::now() < until {
                thread::yield_now();
            }
            let _ = client.set_read_timeout(Some(MOMENT));
            let _ = client.peek(&mut [0; 1]);
        });
        desk.clear();
        self.check(case, &path, &got);
    }

    fn check(&mut self, case: Case, path: &str, got: &[u8]) {
        let acts = self.cutter.desk.acts();
        let text = || got.escape_ascii().to_string();
        let expected = Act {
            method: case.method.to_owned(),
            path: path.to_owned(),
            body: case.body.bytes().to_vec(),
        };
        assert!(acts.iter().all(|act| *act == expected), "{case:?}: {acts:?}\n{}", text());
        let safe = ["GET", "HEAD", "OPTIONS"].contains(&case.method);
        let most = if safe && case.kept { 2 } else { 1 };
        assert!(acts.len() <= most, "{case:?}: served {} times\n{}", acts.len(), text());
        let end = judge(case, path, got);
        assert!(end.is_some(), "{case:?}: neither right nor an error\n{}", text());
        let end = end.unwrap();
        assert!(end != 0 || !acts.is_empty(), "{case:?}: answered, but not done\n{}", text());
        self.ends[end] += 1;
    }
}

/// 0: the right answer; 1: an error that says so; 2: cut off, and that can be seen.
fn judge(case: Case, path: &str, mut got: &[u8]) -> Option<usize> {
    while let Some(rest) = got.strip_prefix(b"HTTP/1.1 103 ") {
        let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Some(2);
        };
        got = &rest[end + 4..];
    }
    let Some(at) = got.windows(4).position(|four| four == b"\r\n\r\n") else {
        return (got.is_empty() && case.answered == Answered::Interim).then_some(2);
    };
    let (head, body) = got.split_at(at + 4);
    let head = std::str::from_utf8(head).ok()?;
    let status: u16 = head[9..12].parse().ok()?;
    if status == 502 || status == 503 {
        let length: usize = crate::common::header(head, "content-length")?.parse().ok()?;
        let said_close = crate::common::header(head, "connection") == Some("close");
        let whole = body.len() == if case.method == "HEAD" { 0 } else { length };
        return (said_close && whole).then_some(1);
    }
    let right = said(case.method, path, case.body.bytes()).into_bytes();
    let whole = match status {
        204 => return (case.answered == Answered::Bodiless && body.is_empty()).then_some(0),
        200 if case.method == "HEAD" => return body.is_empty().then_some(0),
        200 if head.contains("Transfer-Encoding: chunked") => {
            let Some((payload, used)) = dechunk(body) else { return Some(2) };
            if used != body.len() {
                return None;
            }
            payload
        }
        200 if case.answered == Answered::Close => {
            let cut = body.len() < right.len() && right.starts_with(body);
            return if cut { Some(2) } else { (body == right).then_some(0) };
        }
        200 => {
            let length: usize = crate::common::header(head, "content-length")?.parse().ok()?;
            if body.len() < length && right.starts_with(body) {
                return Some(2);
            }
            body.to_vec()
        }
        _ => return None,
    };
    (whole == right).then_some(0)
}

/// Sends the parts, and reads all that comes until the end.
fn exchange(server: &Server, parts: &[&[u8]], mut between: impl FnMut(&TcpStream)) -> Vec<u8> {
    let Address::Tcp(address) = server.addresses().plain[0] else { panic!() };
    let mut client = TcpStream::connect(address).unwrap();
    client.set_nodelay(true).unwrap();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 && !part.is_empty() && !parts[at - 1].is_empty() {
            between(&client);
        }
        // It may have been answered and closed by then.
        let _ = client.write_all(part);
    }
    let _ = client.shutdown(std::net::Shutdown::Write);
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = Vec::new();
    match client.read_to_end(&mut got) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error} after {}", got.escape_ascii()),
    }
    got
}

/// Every request that a case can have.
const REQUESTS: [(&str, Body); 15] = [
    ("GET", Body::None),
    ("HEAD", Body::None),
    ("OPTIONS", Body::None),
    ("DELETE", Body::None),
    ("POST", Body::None),
    ("PUT", Body::Empty),
    ("PUT", Body::Length),
    ("PUT", Body::Chunk),
    ("PUT", Body::Chunks),
    ("PATCH", Body::Length),
    ("PATCH", Body::Chunks),
    ("POST", Body::Chunk),
    ("DELETE", Body::Chunk),
    ("GET", Body::EmptyChunked),
    ("POST", Body::EmptyChunked),
];

const ANSWERS: [Answered; 5] =
    [Answered::Length, Answered::Chunked, Answered::Interim, Answered::Bodiless, Answered::Close];

/// What the proxy makes of a request is longer than the request by less than this.
const LONGER: usize = 260;

fn report(what: &str, benches: Vec<Bench>) {
    let cases: usize = benches.iter().map(|bench| bench.cases).sum();
    let ends = benches.iter().fold([0; 3], |sum, bench| {
        [sum[0] + bench.ends[0], sum[1] + bench.ends[1], sum[2] + bench.ends[2]]
    });
    println!("{what}: {cases} cases; {} right, {} errors, {} cut off", ends[0], ends[1], ends[2]);
    assert!(ends[0] > 0 && ends[1] > 0, "{what}: only one kind of end was seen");
}

/// Runs the cases of each request in a thread of its own.
fn for_each_request(
    requests: &[(&'static str, Body)],
    cases: impl Fn(&mut dyn FnMut(Case), Case) + Sync,
) -> Vec<Bench> {
    let cases = &cases;
    thread::scope(|scope| {
        let run = |(method, body): (&'static str, Body)| {
            scope.spawn(move || {
                let mut bench = Bench::new();
                for kept in [true, false] {
                    let case = Case {
                        method,
                        body,
                        kept,
                        cut: Cut::Accept,
                        answered: Answered::Length,
                        split: 0,
                    };
                    cases(&mut |case| bench.run(case), case);
                }
                bench
            })
        };
        let running: Vec<_> = requests.iter().copied().map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_backend_may_close_at_every_byte_of_a_request() {
    let benches = for_each_request(&REQUESTS, |run, case| {
        run(case);
        let len = case.body.write(case.method, "/c100").len();
        for at in 0..len + LONGER {
            run(Case { cut: Cut::Request(at), ..case });
        }
    });
    report("requests cut by the backend", benches);
}

#[test]
fn a_backend_may_close_at_every_byte_of_an_answer() {
    let benches = for_each_request(&REQUESTS, |run, case| {
        for answered in ANSWERS {
            let act = Act {
                method: case.method.to_owned(),
                path: "/c1000".to_owned(),
                body: case.body.bytes().to_vec(),
            };
            for at in 0..=answer(&act, answered).len() {
                run(Case { cut: Cut::Answer(at), answered, ..case });
            }
        }
    });
    report("answers cut by the backend", benches);
}

/// The client's request comes in two parts, and the backend is gone when the second does.
#[test]
fn a_request_may_be_split_at_every_byte_while_its_backend_closes() {
    let requests: Vec<_> = REQUESTS
        .into_iter()
        .filter(|(_, body)| !matches!(body, Body::None | Body::Empty))
        .collect();
    let benches = for_each_request(&requests, |run, case| {
        let len = case.body.write(case.method, "/c1000").len();
        for split in 1..len {
            for cut in [Cut::Accept, Cut::Request(0), Cut::Request(1), Cut::Request(150)] {
                run(Case { cut, split, ..case });
            }
        }
    });
    report("requests in two parts, backends gone between them", benches);
}
