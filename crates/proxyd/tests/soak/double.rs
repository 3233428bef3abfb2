//! A store that does wrong, to see that it would be noticed.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tempfile::TempDir;

/// What it does wrong, once in a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Nothing,
    /// Answers with another client's object, its right length included.
    AnotherObject,
    /// Ends a body with bytes of another's.
    AnotherEnd,
    /// Acknowledges a change that it doesn't make.
    Forgets,
    /// Keeps what came of a PUT that was broken off.
    KeepsTorn,
    /// Leaves one byte of a body out, and adds one at its end.
    Shifts,
    /// Says nothing of a body's last bytes, and closes.
    CutsOff,
}

/// One answer in this number is wrong.
const EVERY: u64 = 60;

#[derive(Debug)]
struct Store {
    fault: Fault,
    objects: Mutex<HashMap<String, Arc<Vec<u8>>>>,
    turns: AtomicU64,
}

/// The store; it ends with the process.
#[derive(Debug)]
pub struct Double {
    pub socket: PathBuf,
    _folder: TempDir,
}

impl Double {
    pub fn new(fault: Fault) -> Double {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("d.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (objects, turns) = (Mutex::default(), AtomicU64::new(0));
        let store = Arc::new(Store { fault, objects, turns });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = Arc::clone(&store);
                thread::spawn(move || {
                    let mut peer = Peer { stream, unread: Vec::new() };
                    while let Some(true) = store.serve(&mut peer) {}
                });
            }
        });
        Double { socket, _folder: folder }
    }
}

struct Peer {
    stream: UnixStream,
    unread: Vec<u8>,
}

impl Peer {
    fn more(&mut self) -> Option<()> {
        let mut piece = vec![0; 64 << 10];
        let bytes = self.stream.read(&mut piece).ok().filter(|bytes| *bytes > 0)?;
        self.unread.extend_from_slice(&piece[..bytes]);
        Some(())
    }

    fn until(&mut self, end: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|bytes| bytes == end) {
                let rest = self.unread.split_off(at + end.len());
                let taken = std::mem::replace(&mut self.unread, rest);
                return String::from_utf8(taken).ok();
            }
            self.more()?;
        }
    }

    /// `count` bytes, or what there is of them.
    fn bytes(&mut self, count: usize) -> (Vec<u8>, bool) {
        while self.unread.len() < count && self.more().is_some() {}
        let rest = self.unread.split_off(count.min(self.unread.len()));
        let taken = std::mem::replace(&mut self.unread, rest);
        let whole = taken.len() == count;
        (taken, whole)
    }

    /// A request's body, and whether it is whole.
    fn body(&mut self, head: &str) -> (Vec<u8>, bool) {
        if let Some(length) = value(head, "content-length") {
            return self.bytes(length.parse().unwrap_or(0));
        }
        let mut body = Vec::new();
        loop {
            let Some(line) = self.until(b"\r\n") else { return (body, false) };
            let size = line.trim_end().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).unwrap_or(0);
            let (chunk, whole) = self.bytes(size);
            body.extend_from_slice(&chunk);
            if !whole || self.until(b"\r\n").is_none() || size == 0 {
                return (body, whole && size == 0);
            }
        }
    }
}

fn value<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().skip(1).find_map(|line| {
        let (other, value) = line.split_once(": ")?;
        other.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn tag(bytes: &[u8]) -> String {
    let fold = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("\"{:x}\"", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

impl Store {
    fn is_turn(&self, fault: Fault) -> bool {
        self.fault == fault && self.turns.fetch_add(1, Ordering::Relaxed) % EVERY == EVERY - 1
    }

    fn objects(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Vec<u8>>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request; `Some(true)` if the connection goes on.
    fn serve(&self, peer: &mut Peer) -> Option<bool> {
        let head = peer.until(b"\r\n\r\n")?;
        let mut words = head.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        match method.as_str() {
            "PUT" => self.put(peer, &head, path),
            "DELETE" => {
                let there = match self.is_turn(Fault::Forgets) {
                    true => self.objects().contains_key(&path),
                    false => self.objects().remove(&path).is_some(),
                };
                let status = if there { "204 No Content" } else { "404 Not Found" };
                let length = if there { "" } else { "Content-Length: 0\r\n" };
                peer.stream.write_all(format!("HTTP/1.1 {status}\r\n{length}\r\n").as_bytes()).ok()
            }
            _ if path.starts_with("/?") => {
                let list = "{\"objects\":[],\"next\":null}\n";
                let length = list.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{list}");
                peer.stream.write_all(head.as_bytes()).ok()
            }
            _ => return self.get(peer, &head, &method, &path),
        }
        .map(|()| true)
    }

    fn put(&self, peer: &mut Peer, head: &str, path: String) -> Option<()> {
        if value(head, "expect").is_some() {
            peer.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        let (body, whole) = peer.body(head);
        let tag = tag(&body);
        let keeps = self.fault == Fault::KeepsTorn && body.len() > 31;
        if !whole && !keeps {
            return None;
        }
        if !self.is_turn(Fault::Forgets) {
            self.objects().insert(path, Arc::new(body));
        }
        let head = format!("HTTP/1.1 201 Created\r\nETag: {tag}\r\nContent-Length: 0\r\n\r\n");
        peer.stream.write_all(head.as_bytes()).ok()
    }

    fn get(&self, peer: &mut Peer, head: &str, method: &str, path: &str) -> Option<bool> {
        let found = self.objects().get(path).cloned();
        let Some(found) = found else {
            return peer
                .stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                .ok()
                .map(|()| true);
        };
        if value(head, "if-none-match") == Some(&tag(&found)) {
            let head = format!("HTTP/1.1 304 Not Modified\r\nETag: {}\r\n\r\n", tag(&found));
            return peer.stream.write_all(head.as_bytes()).ok().map(|()| true);
        }
        let mut all = found;
        if self.is_turn(Fault::AnotherObject) {
            let objects = self.objects();
            let other = objects.iter().find(|(other, body)| *other != path && body.len() > 1_000);
            if let Some((_, body)) = other {
                all = Arc::clone(body);
            }
        }
        let mut part = 0..all.len();
        let mut about = String::new();
        if let Some(range) = value(head, "range").and_then(|text| text.strip_prefix("bytes=")) {
            let (first, last) = range.split_once('-')?;
            part = first.parse().ok()?..all.len().min(last.parse::<usize>().ok()? + 1);
            if part.start >= all.len() {
                let head = b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n";
                return peer.stream.write_all(head).ok().map(|()| true);
            }
            let (first, last, total) = (part.start, part.end - 1, all.len());
            about = format!("Content-Range: bytes {first}-{last}/{total}\r\n");
        }
        let mut body = all[part].to_vec();
        self.spoil(path, &mut body);
        let status = if about.is_empty() { "200 OK" } else { "206 Partial Content" };
        let (tag, length) = (tag(&all), body.len());
        let head =
            format!("HTTP/1.1 {status}\r\nETag: {tag}\r\n{about}Content-Length: {length}\r\n\r\n");
        peer.stream.write_all(head.as_bytes()).ok()?;
        if method == "HEAD" {
            return Some(true);
        }
        let cut = self.is_turn(Fault::CutsOff);
        let sent = if cut { body.len() / 2 } else { body.len() };
        peer.stream.write_all(&body[..sent]).ok()?;
        Some(!cut)
    }

    fn spoil(&self, path: &str, body: &mut Vec<u8>) {
        if body.len() < 4_000 {
            return;
        }
        let end = body.len();
        if self.is_turn(Fault::AnotherEnd) {
            let objects = self.objects();
            if let Some((_, other)) = objects.iter().find(|(other, _)| *other != path) {
                let bytes = other.len().min(16);
                body[end - bytes..].copy_from_slice(&other[..bytes]);
            }
        }
        if self.is_turn(Fault::Shifts) {
            body.remove(end / 2);
            body.push(0);
        }
    }
}
