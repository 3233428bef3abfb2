//! Clients that read, that write, and that do not behave. What these do to others shows with the
//! others.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::daemons::Target;
use crate::model::{KEYS, Model, Random, content, path, version_of};

/// Nothing takes this long; who waits longer hangs, and that is an error.
const PATIENCE: Duration = Duration::from_secs(60);
/// A head that drips has to be cut off long before.
const LORIS_END: Duration = Duration::from_secs(30);

/// What the clients of a storm share.
pub struct Shared {
    pub model: Arc<Model>,
    pub target: Target,
    pub over: Arc<AtomicBool>,
    /// Exchanges that were checked.
    pub done: Arc<AtomicU64>,
    /// Nothing is killed.
    pub calm: bool,
}

trait Stream: Read + Write {
    fn socket(&self) -> BorrowedFd<'_>;
}

impl Stream for TcpStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Stream for UnixStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Stream for StreamOwned<ClientConnection, TcpStream> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.sock.as_fd()
    }
}

/// Why something did not come to its end.
enum Trouble {
    /// As it may where backends are killed.
    Failed(String),
    Wrong(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Trouble::Wrong("it hangs".to_owned()),
            _ => Trouble::Failed(error.to_string()),
        }
    }
}

/// A client's end of a connection, with what was read and not used.
struct Wire {
    stream: Box<dyn Stream>,
    unread: Vec<u8>,
}

impl Wire {
    fn new(target: &Target, random: &mut Random) -> io::Result<Wire> {
        let stream: Box<dyn Stream> = match random.below(3) {
            0 => {
                let stream = UnixStream::connect(&target.unix)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
            kind => {
                let mut stream =
                    TcpStream::connect(if kind == 1 { target.tcp } else { target.tls })?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                if kind == 1 {
                    Box::new(stream)
                } else {
                    let name = ServerName::try_from("localhost").expect("a name");
                    let mut tls = ClientConnection::new(Arc::clone(&target.config), name)
                        .map_err(io::Error::other)?;
                    tls.complete_io(&mut stream)?;
                    Box::new(StreamOwned::new(tls, stream))
                }
            }
        };
        Ok(Wire { stream, unread: Vec::new() })
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref()).and_then(|()| self.stream.flush())
    }

    fn more(&mut self) -> io::Result<()> {
        let mut piece = [0; 64 << 10];
        match self.stream.read(&mut piece)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            bytes => {
                self.unread.extend_from_slice(&piece[..bytes]);
                Ok(())
            }
        }
    }

    /// Status and body of the next answer that is not an interim one; `pause` before each piece.
    fn answer(&mut self, is_head: bool, pause: Duration) -> Result<(u16, Vec<u8>), Trouble> {
        loop {
            let head = loop {
                if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                    let rest = self.unread.split_off(at + 4);
                    break String::from_utf8_lossy(&std::mem::replace(&mut self.unread, rest))
                        .into_owned();
                }
                self.more()?;
            };
            let nonsense = || Trouble::Wrong(format!("where an answer should be: {head}"));
            let status =
                head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
            let status: u16 = status.ok_or_else(nonsense)?;
            if status < 200 {
                continue;
            }
            let lines = head.to_ascii_lowercase();
            let length = lines.lines().find_map(|line| line.strip_prefix("content-length: "));
            let bodiless = is_head || matches!(status, 204 | 304);
            let length = if bodiless { Some("0") } else { length }.ok_or_else(nonsense)?;
            let length: usize = length.parse().map_err(|_| nonsense())?;
            while self.unread.len() < length {
                thread::sleep(pause);
                self.more()?;
            }
            let rest = self.unread.split_off(length);
            return Ok((status, std::mem::replace(&mut self.unread, rest)));
        }
    }

    /// Goes away, perhaps with a reset.
    fn leave(self, random: &mut Random) {
        if random.below(2) == 0 {
            let linger = Some(Duration::ZERO);
            let _ = rustix::net::sockopt::set_socket_linger(self.stream.socket(), linger);
        }
    }
}

/// Does what that client does, until all is over or something is wrong.
pub fn run(shared: &Shared, number: u64, mut random: Random) -> Result<(), String> {
    let mut wire = None;
    while !shared.over.load(Ordering::SeqCst) {
        let random = &mut random;
        let (what, result) = match number {
            ..KEYS => ("a writer", write(shared, &mut wire, number, random)),
            _ if number.is_multiple_of(2) => ("a reader", read(shared, &mut wire, random)),
            _ => ("one that misbehaves", misbehave(shared, random)),
        };
        match result {
            Ok(()) => {}
            Err(Trouble::Wrong(why)) => return Err(format!("{what}: {why}")),
            Err(Trouble::Failed(why)) if shared.calm => {
                return Err(format!("{what}, where nothing was killed: {why}"));
            }
            Err(Trouble::Failed(_)) => {
                wire = None;
                thread::sleep(Duration::from_millis(random.below(30)));
            }
        }
    }
    Ok(())
}

/// The kept connection, or a new one.
fn kept<'w>(
    shared: &Shared,
    wire: &'w mut Option<Wire>,
    random: &mut Random,
) -> io::Result<&'w mut Wire> {
    if wire.is_none() || random.below(20) == 0 {
        *wire = Some(Wire::new(&shared.target, random)?);
    }
    wire.as_mut().ok_or_else(|| ErrorKind::NotConnected.into())
}

fn get(key: u64, method: &str) -> String {
    format!("{method} {} HTTP/1.1\r\nHost: soak\r\n\r\n", path(key))
}

/// Reads some objects, pipelined, and checks every byte.
fn read(shared: &Shared, wire: &mut Option<Wire>, random: &mut Random) -> Result<(), Trouble> {
    let wire = kept(shared, wire, random)?;
    let pause = Duration::from_millis(if random.below(4) == 0 { random.below(30) } else { 0 });
    let asked: Vec<_> = (0..=random.below(4))
        .map(|_| {
            let key = random.below(KEYS);
            let method = if random.below(6) == 0 { "HEAD" } else { "GET" };
            (key, method, shared.model.before(key))
        })
        .collect();
    wire.send(asked.iter().map(|(key, method, _)| get(*key, method)).collect::<String>())?;
    for (key, method, before) in asked {
        let (status, body) = wire.answer(method == "HEAD", pause)?;
        let state = match (status, method) {
            (404, _) => None,
            (200, "HEAD") => continue,
            (200, _) => {
                let known = shared.model.versions(key);
                Some(version_of(key, &body, known).map_err(Trouble::Wrong)?)
            }
            (502..=504, _) => return Err(Trouble::Failed(status.to_string())),
            _ => return Err(Trouble::Wrong(format!("{status} for an object"))),
        };
        shared.model.check(key, &before, state).map_err(Trouble::Wrong)?;
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// One change of a key whose only writer this is.
fn write(
    shared: &Shared,
    wire: &mut Option<Wire>,
    key: u64,
    random: &mut Random,
) -> Result<(), Trouble> {
    let kind = random.below(10);
    let wire = kept(shared, wire, random)?;
    if kind == 0 {
        shared.model.delete(key);
    }
    let asked_at = Instant::now();
    let request = if kind == 0 { get(key, "DELETE").into_bytes() } else { put(shared, key, kind) };
    // In two parts, with a pause between them.
    let part = if kind < 5 { random.below(request.len() as u64) as usize } else { 0 };
    let sent = wire.send(&request[..part]).and_then(|()| {
        thread::sleep(Duration::from_millis(if part > 0 { random.below(20) } else { 0 }));
        wire.send(&request[part..])
    });
    let answer = match sent {
        Ok(()) => wire.answer(false, Duration::ZERO),
        Err(error) => Err(error.into()),
    };
    let acknowledged =
        matches!(answer, Ok((201 | 204, _))) || (kind == 0 && matches!(answer, Ok((404, _))));
    shared.model.ended(key, acknowledged, asked_at);
    match answer {
        Ok(_) if acknowledged => {
            shared.done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        Ok((status @ 502..=504, _)) => Err(Trouble::Failed(status.to_string())),
        Ok((status, _)) => Err(Trouble::Wrong(format!("{status} for a change as it should be"))),
        Err(trouble) => Err(trouble),
    }
}

/// A PUT of a new version, in one of both framings.
fn put(shared: &Shared, key: u64, kind: u64) -> Vec<u8> {
    let body = content(key, shared.model.put(key, true));
    let head = format!("PUT {} HTTP/1.1\r\nHost: soak\r\n", path(key));
    if kind.is_multiple_of(2) {
        let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
        return [head.as_bytes(), &body].concat();
    }
    let mut all = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for chunk in body.chunks(30_000) {
        all.extend(format!("{:x};a=b\r\n", chunk.len()).as_bytes());
        all.extend([chunk, b"\r\n"].concat());
    }
    all.extend(b"0\r\nX: y\r\n\r\n");
    all
}

/// What no proxy may pass on, or answer with anything but an error.
const BAD: [&[u8]; 8] = [
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    b"GET / HTTP/1.1\nHost: a\n\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
    b"GET /%2e HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

fn misbehave(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = Wire::new(&shared.target, random)?;
    let key = random.below(KEYS);
    match random.below(6) {
        // Goes away within an answer, or with several that it does not read.
        0 => {
            wire.send(get(key, "GET").repeat(random.below(12) as usize + 1))?;
            let end = Instant::now() + Duration::from_millis(random.below(1_500));
            while random.below(2) == 0 && Instant::now() < end && wire.more().is_ok() {}
        }
        1 => {
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size(wire.stream.socket(), 4096);
            wire.send(get(key, "GET").repeat(3))?;
            thread::sleep(Duration::from_millis(random.below(1_500)));
        }
        // Goes away within a request, and never sends all of it.
        2 => {
            let body = content(key, shared.model.put(key, false));
            let (path, len) = (path(key), body.len());
            let head =
                format!("PUT {path} HTTP/1.1\r\nHost: soak\r\nContent-Length: {len}\r\n\r\n");
            let request = [head.as_bytes(), &body].concat();
            wire.send(&request[..random.below(request.len() as u64) as usize])?;
            thread::sleep(Duration::from_millis(random.below(50)));
        }
        3 => return loris(shared, wire, random),
        _ => {
            wire.send(BAD[random.below(BAD.len() as u64) as usize])?;
            let _ = rustix::net::shutdown(wire.stream.socket(), rustix::net::Shutdown::Write);
            if let Ok((status @ ..400, _)) = wire.answer(false, Duration::ZERO) {
                return Err(Trouble::Wrong(format!("{status} for what is no request")));
            }
        }
    }
    wire.leave(random);
    Ok(())
}

/// A head that drips in: it is cut off.
fn loris(shared: &Shared, mut wire: Wire, random: &mut Random) -> Result<(), Trouble> {
    let begun = Instant::now();
    let pause = Duration::from_millis(10 + random.below(190));
    wire.send("GET / HTTP/1.1\r\nHost: s\r\n")?;
    while wire.send("a: b\r\n").is_ok() && !shared.over.load(Ordering::SeqCst) {
        if begun.elapsed() > LORIS_END {
            return Err(Trouble::Wrong(format!("a head drips in for {LORIS_END:?} already")));
        }
        thread::sleep(pause);
    }
    Ok(())
}
