//! One connection of the client: a request, then its answer, then the next.

use rustix::io::Errno;

use super::body_reader::{BodyReader, Received};
use super::wire::Wire;
use crate::run::Failure;
use crate::run::load::Step;

/// A head that is longer is not from one of these proxies.
const HEAD_BYTES: usize = 4096;
/// Bytes of an answer that are read at first: most heads fit, and what comes of the body
/// with them is copied, in every mode alike.
const FIRST_READ_BYTES: usize = 512;
/// The most lines of a head from a server that is measured.
const MOST_LINES: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Head,
    Body,
}

pub struct Conn {
    pub wire: Wire,
    /// When the request under way was due, nanoseconds on the client's clock.
    pub due_ns: u64,
    number: u32,
    phase: Phase,
    head: [u8; HEAD_BYTES],
    head_len: usize,
    object: u64,
    at: u64,
    length: u64,
}

impl Conn {
    /// A connection that has not asked yet. Every body of its answers has `length` bytes.
    pub fn new(wire: Wire, number: u32, length: u64) -> Conn {
        Conn {
            wire,
            due_ns: 0,
            number,
            phase: Phase::Idle,
            head: [0; HEAD_BYTES],
            head_len: 0,
            object: 0,
            at: 0,
            length,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    pub fn ask(&mut self, request: &[u8], object: u64, due_ns: u64) -> Result<(), Failure> {
        debug_assert!(self.is_idle());
        self.wire.send(request).map_err(Failure::os("cannot send a request"))?;
        self.phase = Phase::Head;
        (self.head_len, self.at) = (0, 0);
        (self.object, self.due_ns) = (object, due_ns);
        Ok(())
    }

    /// Reads what is there, until there is no more or the answer is complete.
    pub fn advance(&mut self, look: &mut BodyReader) -> Result<Step, Failure> {
        let mut step = Step::default();
        loop {
            let more = match self.phase {
                Phase::Idle => return self.unasked(),
                Phase::Head => self.read_head(look, &mut step)?,
                Phase::Body => self.read_body(look, &mut step)?,
            };
            if self.phase == Phase::Body && self.at == self.length {
                self.phase = Phase::Idle;
                step.answered = true;
                return Ok(step);
            }
            if !more {
                return Ok(step);
            }
        }
    }

    /// Something came that was not asked for.
    fn unasked(&mut self) -> Result<Step, Failure> {
        let mut byte = [0];
        match self.wire.read(&mut byte).map_err(broken)? {
            Received::Blocked => Ok(Step::default()),
            Received::End => {
                Err(Failure::Answer("the proxy closed a connection that is kept".into()))
            }
            Received::Bytes(_) => Err(Failure::Answer("bytes came that were not asked for".into())),
        }
    }

    /// True if there may be more to read.
    fn read_head(&mut self, look: &mut BodyReader, step: &mut Step) -> Result<bool, Failure> {
        let most = if self.head_len < FIRST_READ_BYTES { FIRST_READ_BYTES } else { HEAD_BYTES };
        let got = self.wire.read(&mut self.head[self.head_len..most]).map_err(broken)?;
        let bytes = self.taken(got)?;
        self.head_len += bytes;
        if bytes == 0 {
            return Ok(false);
        }
        match response_end(&self.head[..self.head_len], self.length).map_err(Failure::Answer)? {
            Some(end) => {
                let body = &self.head[end..self.head_len];
                look.compare(self.number, self.object, 0, body)?;
                self.at = body.len() as u64;
                step.bytes += self.at;
                self.phase = Phase::Body;
                Ok(true)
            }
            None if self.head_len == HEAD_BYTES => {
                Err(Failure::Answer(format!("a head of more than {HEAD_BYTES} bytes")))
            }
            None => Ok(true),
        }
    }

    /// True if there may be more to read: a read that was not filled has emptied the socket.
    fn read_body(&mut self, look: &mut BodyReader, step: &mut Step) -> Result<bool, Failure> {
        let left = self.length - self.at;
        let compares = look.compares();
        let room = look.room(usize::try_from(left).unwrap_or(usize::MAX));
        let wanted = room.len();
        let got = if compares { self.wire.read(room) } else { self.wire.discard(room) };
        let bytes = self.taken(got.map_err(broken)?)?;
        look.compare_room(self.number, self.object, self.at, bytes)?;
        self.at += bytes as u64;
        step.bytes += bytes as u64;
        Ok(bytes == wanted)
    }

    fn taken(&self, got: Received) -> Result<usize, Failure> {
        match got {
            Received::Bytes(bytes) => Ok(bytes),
            Received::Blocked => Ok(0),
            Received::End => Err(Failure::Answer(format!(
                "the proxy ended a connection after {} of {} bytes of a body",
                self.at, self.length
            ))),
        }
    }
}

fn broken(errno: Errno) -> Failure {
    Failure::os("cannot read an answer")(errno)
}

/// Where a head ends, if it is whole: it has to be of status 200, with a body of this length.
fn response_end(bytes: &[u8], length: u64) -> Result<Option<usize>, String> {
    let mut lines = [httparse::EMPTY_HEADER; MOST_LINES];
    let mut response = httparse::Response::new(&mut lines);
    let end = match response.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(format!("an answer that is not HTTP: {error}")),
    };
    if response.code != Some(200) {
        return Err(format!("an answer of status {}", response.code.unwrap_or(0)));
    }
    let mut lengths = response
        .headers
        .iter()
        .filter(|line| line.name.eq_ignore_ascii_case("content-length"))
        .map(|line| std::str::from_utf8(line.value).ok().and_then(|text| text.parse::<u64>().ok()));
    match lengths.next() {
        Some(Some(found)) if found == length => Ok(Some(end)),
        Some(Some(found)) => Err(format!("a body of {found} bytes, where {length} are due")),
        _ => Err("an answer without the length of its body".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::super::body_reader::seed;
    use super::super::wire::Target;
    use super::*;
    use crate::run::pattern;

    const LENGTH: u64 = 100_000;

    fn pair() -> (Conn, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let target = Target { address, patience: Duration::from_secs(60) };
        let conn = Conn::new(Wire::open(&target).unwrap(), 5, LENGTH);
        (conn, listener.accept().unwrap().0)
    }

    fn body(object: u64) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH as usize];
        pattern::fill(seed(object), 0, &mut bytes);
        bytes
    }

    fn head() -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: {LENGTH}\r\n\r\n").into_bytes()
    }

    /// Asks for object 3, is answered with these bytes, and reads until that is over.
    fn answered_with(answer: &[u8], look: &mut BodyReader) -> Result<(u64, Conn), Failure> {
        let (mut conn, mut peer) = pair();
        conn.ask(b"GET / HTTP/1.1\r\n\r\n", 3, 0).unwrap();
        let answer = answer.to_vec();
        let writer = std::thread::spawn(move || {
            // A client that has seen enough goes away.
            let _ = peer.write_all(&answer);
            peer
        });
        let mut bytes = 0;
        let result = loop {
            match conn.advance(look) {
                Ok(step) => bytes += step.bytes,
                Err(failure) => break Err(failure),
            }
            if conn.is_idle() {
                break Ok((bytes, conn));
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        drop(writer.join());
        result
    }

    #[test]
    fn a_body_is_counted_whether_it_is_looked_at_or_not() {
        for mut look in [BodyReader::discarding(), BodyReader::comparing(false)] {
            let (bytes, conn) = answered_with(&[head(), body(3)].concat(), &mut look).unwrap();
            assert_eq!(bytes, LENGTH);
            assert!(conn.is_idle());
        }
    }

    #[test]
    fn another_object_s_bytes_are_wrong_ones_and_only_comparing_sees_it() {
        let answer = [head(), body(4)].concat();
        assert!(answered_with(&answer, &mut BodyReader::discarding()).is_ok());
        match answered_with(&answer, &mut BodyReader::comparing(false)) {
            Err(Failure::WrongByte(wrong)) => {
                assert_eq!((wrong.socket, wrong.position), (Some(5), 0));
            }
            other => panic!("{:?}", other.map(|(bytes, _)| bytes)),
        }
        let mut changed = [head(), body(3)].concat();
        *changed.last_mut().unwrap() ^= 1;
        match answered_with(&changed, &mut BodyReader::comparing(false)) {
            Err(Failure::WrongByte(wrong)) => assert_eq!(wrong.position, LENGTH - 1),
            other => panic!("{:?}", other.map(|(bytes, _)| bytes)),
        }
    }

    #[test]
    fn answers_that_were_not_asked_for_are_named() {
        let with = |text: &str| {
            answered_with(text.as_bytes(), &mut BodyReader::discarding()).err().unwrap().to_string()
        };
        assert!(with("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n").contains("status 503"));
        assert!(with("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n").contains("7 bytes"));
        assert!(with("HTTP/1.1 200 OK\r\n\r\n").contains("without the length"));
        assert!(with("SSH-2.0-x\r\n").contains("not HTTP"));
    }

    #[test]
    fn a_head_comes_in_pieces() {
        let (mut conn, mut peer) = pair();
        conn.ask(b"GET / HTTP/1.1\r\n\r\n", 3, 0).unwrap();
        let mut look = BodyReader::comparing(false);
        let answer = [head(), body(3)].concat();
        let mut bytes = 0;
        for piece in [&answer[..10], &answer[10..50], &answer[50..]] {
            peer.write_all(piece).unwrap();
            // Over the loopback what was written is there.
            bytes += conn.advance(&mut look).unwrap().bytes;
        }
        while !conn.is_idle() {
            bytes += conn.advance(&mut look).unwrap().bytes;
        }
        assert_eq!(bytes, LENGTH);
    }

    #[test]
    fn an_end_in_the_middle_says_where() {
        let (mut conn, mut peer) = pair();
        conn.ask(b"GET / HTTP/1.1\r\n\r\n", 3, 0).unwrap();
        peer.write_all(&[&head()[..], &body(3)[..1000]].concat()).unwrap();
        drop(peer);
        let mut look = BodyReader::discarding();
        let failure = loop {
            match conn.advance(&mut look) {
                Ok(_) => std::thread::sleep(Duration::from_millis(1)),
                Err(failure) => break failure.to_string(),
            }
        };
        assert!(failure.contains("after 1000 of 100000") || failure.contains("reset"), "{failure}");
    }
}
