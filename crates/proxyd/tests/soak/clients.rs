//! Clients that read, that write, and that do not behave. What these do to others shows with the
//! others. What hangs or is nonsense panics in [`Peer`].

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;
use httpd::Address;
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};

use crate::daemons::Target;
use crate::model::{Model, TORN, content, path, state, version_of};
use crate::over_tls::over;
use crate::peer::{Answer, PATIENCE, Peer, in_chunks};

/// Clients that write; each key has a writer of its own.
pub const WRITERS: usize = 12;

/// What the clients of a storm share.
pub struct Shared {
    pub model: Arc<Model>,
    pub target: Target,
    pub over: AtomicBool,
    /// Exchanges that were checked.
    pub done: Arc<AtomicU64>,
    /// Nothing is killed.
    pub calm: bool,
}

/// Why something did not come to its end.
enum Trouble {
    /// As it may where backends are killed.
    Failed(String),
    Wrong(String),
}

fn failed(what: impl ToString) -> Trouble {
    Trouble::Failed(what.to_string())
}

fn millis(random: &mut Rng, limit: u64) -> Duration {
    Duration::from_millis(random.u64(..limit))
}

fn connect(target: &Target, random: &mut Rng) -> Result<Peer, Trouble> {
    match random.u8(..3) {
        0 => return Ok(Peer::connect(&Address::Unix(target.unix.clone()))),
        1 => return Ok(Peer::connect(&Address::Tcp(target.tcp))),
        _ => {}
    }
    let stream = TcpStream::connect(target.tls).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    over(stream, &target.config).map(Peer::new).map_err(failed)
}

/// An answer that came whole.
fn answer(peer: &mut Peer, method: &str) -> Result<Answer, Trouble> {
    let answer = peer.answer_to(method).ok_or_else(|| failed("no answer"))?;
    let length = answer.header("content-length").filter(|_| method != "HEAD");
    match length.map_or(Ok(answer.body.len()), str::parse) {
        Ok(length) if length == answer.body.len() => Ok(answer),
        _ => Err(failed("cut off")),
    }
}

/// Does what that client does, until all is over or something is wrong.
pub fn run(shared: &Shared, number: usize, mut random: Rng) -> Result<(), String> {
    let (mut kept, mut key) = (None, None);
    while !shared.over.load(Ordering::SeqCst) {
        let random = &mut random;
        let (what, result) = match number {
            ..WRITERS => ("a writer", write(shared, &mut kept, &mut key, random)),
            _ if number.is_multiple_of(2) => ("a reader", read(shared, &mut kept, random)),
            _ => ("one that misbehaves", misbehave(shared, random)),
        };
        match result {
            Ok(()) => {}
            Err(Trouble::Wrong(why)) => return Err(format!("{what}: {why}")),
            Err(Trouble::Failed(why)) if shared.calm => {
                return Err(format!("{what}, where nothing was killed: {why}"));
            }
            Err(Trouble::Failed(_)) => {
                (kept, key) = (None, None);
                sleep(millis(random, 30));
            }
        }
    }
    Ok(())
}

/// The kept connection, or a new one.
fn peer<'p>(
    shared: &Shared,
    kept: &'p mut Option<Peer>,
    random: &mut Rng,
) -> Result<&'p mut Peer, Trouble> {
    if random.u8(..20) == 0 {
        *kept = None;
    }
    let new = if kept.is_none() { Some(connect(&shared.target, random)?) } else { None };
    Ok(kept.get_or_insert_with(|| new.expect("there was none")))
}

fn request(key: u32, method: &str) -> String {
    format!("{method} {} HTTP/1.1\r\nHost: soak\r\n\r\n", path(key))
}

/// Reads some objects, pipelined and at times slowly, and checks every byte.
fn read(shared: &Shared, kept: &mut Option<Peer>, random: &mut Rng) -> Result<(), Trouble> {
    let peer = peer(shared, kept, random)?;
    let asked: Vec<_> = (0..=random.u8(..4))
        .map(|_| {
            let key = shared.model.any_key(random);
            let method = if random.u8(..6) == 0 { "HEAD" } else { "GET" };
            (key, method, shared.model.before(key))
        })
        .collect();
    peer.try_send(asked.iter().map(|(key, method, _)| request(*key, method)).collect::<String>());
    peer.pause = if random.u8(..4) == 0 { millis(random, 30) } else { Duration::ZERO };
    for (key, method, before) in asked {
        let answer = answer(peer, method)?;
        let found = match (answer.status, method) {
            (404, _) => None,
            (200, "HEAD") => continue,
            (200, _) => Some(version_of(key, &answer.body).map_err(Trouble::Wrong)?),
            (502..=504, _) => return Err(failed(answer.status)),
            (status, _) => return Err(Trouble::Wrong(format!("{status} for an object"))),
        };
        shared.model.check(key, before, found).map_err(Trouble::Wrong)?;
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// One change of a key whose only writer this is, in one of both framings. The status says whether
/// something was there, and so whether the change was made once.
fn write(
    shared: &Shared,
    kept: &mut Option<Peer>,
    key: &mut Option<u32>,
    random: &mut Rng,
) -> Result<(), Trouble> {
    let peer = peer(shared, kept, random)?;
    let key = *key.get_or_insert_with(|| shared.model.new_key());
    let changes = shared.model.ask(key);
    let right = if state(changes - 1).is_some() { 204 } else { 201 };
    let bytes = match state(changes) {
        None => request(key, "DELETE").into_bytes(),
        Some(version) => put(key, version, random.bool()),
    };
    // In two parts, perhaps, with a pause between them.
    let part = if random.bool() { random.usize(..bytes.len()) } else { 0 };
    peer.try_send(&bytes[..part]);
    sleep(if part > 0 { millis(random, 20) } else { Duration::ZERO });
    peer.try_send(&bytes[part..]);
    match answer(peer, "PUT")?.status {
        status if status == right => shared.model.acknowledge(key),
        status @ 502..=504 => return Err(failed(status)),
        status => return Err(Trouble::Wrong(format!("{status} where {right} is right"))),
    }
    shared.done.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn put(key: u32, version: u32, chunked: bool) -> Vec<u8> {
    let body = content(key, version);
    let head = format!("PUT {} HTTP/1.1\r\nHost: soak\r\n", path(key));
    if !chunked {
        let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
        return [head.as_bytes(), &body].concat();
    }
    let head = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    [head.as_bytes(), &in_chunks(&body, 30_000)].concat()
}

/// What is no request; tests/hostile has what is answered.
const BAD: [&str; 2] = ["GET / HTTP/1.1\nHost: a\n\n", "\x16\x03\x01\x02\0\x01"];

fn misbehave(shared: &Shared, random: &mut Rng) -> Result<(), Trouble> {
    let mut peer = connect(&shared.target, random)?;
    let key = shared.model.any_key(random);
    match random.u8(..6) {
        // Goes away within an answer, or with several that it does not read.
        0 => {
            peer.try_send(request(key, "GET").repeat(random.usize(1..13)));
            if random.bool() {
                peer.more();
            }
        }
        1 => {
            let _ = set_socket_recv_buffer_size(peer.socket(), 4096);
            peer.try_send(request(key, "GET").repeat(3));
            sleep(millis(random, 1_500));
        }
        // Goes away within a request, and never sends all of it.
        2 => {
            let bytes = put(key, TORN | random.u32(..1000), false);
            peer.try_send(&bytes[..random.usize(..bytes.len())]);
            sleep(millis(random, 50));
        }
        // Drips in until it is cut off.
        3 => {
            let pause = millis(random, 200);
            peer.try_send("GET / HTTP/1.1\r\nHost: s\r\n");
            while peer.try_send("a: b\r\n") && !shared.over.load(Ordering::SeqCst) {
                sleep(pause);
            }
        }
        _ => {
            peer.try_send(BAD[random.usize(..BAD.len())]);
            peer.rest();
        }
    }
    if random.bool() {
        // It goes with a reset.
        let _ = set_socket_linger(peer.socket(), Some(Duration::ZERO));
    }
    Ok(())
}
