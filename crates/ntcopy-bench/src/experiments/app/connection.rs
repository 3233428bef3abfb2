//! A connection that asks for one thing at a time, and waits for it.

use std::io::{BufRead as _, BufReader, Error, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::plan::App;
use super::wire::{Value, unexpected};
use crate::run::{Failure, pattern};

/// Bytes that are read, or made, at a time.
const CHUNK_BYTES: usize = 64 << 10;

pub fn buffer() -> Vec<u8> {
    vec![0; CHUNK_BYTES]
}

pub struct Connection {
    app: App,
    stream: BufReader<UnixStream>,
    /// Make the next byte a wrong one, to see that it is noticed.
    pub spoils: bool,
}

fn failed(app: App, what: &'static str) -> impl Fn(Error) -> Failure {
    move |error| Failure::Answer(format!("{what} {app}: {error}"))
}

impl Connection {
    pub fn open(app: App, at: &Path, patience: Duration) -> Result<Connection, Failure> {
        let failed = failed(app, "cannot connect to");
        let stream = UnixStream::connect(at).map_err(&failed)?;
        stream.set_read_timeout(Some(patience)).map_err(&failed)?;
        stream.set_write_timeout(Some(patience)).map_err(&failed)?;
        Ok(Connection { app, stream: BufReader::new(stream), spoils: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.get_mut().write_all(bytes).map_err(failed(self.app, "cannot send to"))
    }

    pub fn set(&mut self, value: &Value, buffer: &mut [u8]) -> Result<(), Failure> {
        let protocol = self.app.protocol();
        let (head, end) = protocol.set(value);
        self.write(&head)?;
        let written = pattern::write(value.seed(), value.bytes, buffer, self.stream.get_mut());
        written.map_err(failed(self.app, "cannot send to"))?;
        self.write(end)?;
        self.expect(value, protocol.stored())
    }

    pub fn compare_all(&mut self, values: &[Value], buffer: &mut [u8]) -> Result<(), Failure> {
        let protocol = self.app.protocol();
        self.write(&protocol.multiget(values))?;
        if let Some(first) = values.first() {
            self.expect(first, &protocol.opening(values.len()))?;
        }
        for (number, value) in (1..).zip(values) {
            let is_last = number == values.len();
            self.compare_next(value, is_last, buffer)?;
        }
        Ok(())
    }

    pub fn compare(&mut self, value: &Value, buffer: &mut [u8]) -> Result<(), Failure> {
        self.write(&self.app.protocol().get(value))?;
        self.compare_next(value, true, buffer)
    }

    /// Compares the value that comes now, a piece at a time.
    fn compare_next(
        &mut self,
        value: &Value,
        is_last: bool,
        buffer: &mut [u8],
    ) -> Result<(), Failure> {
        let protocol = self.app.protocol();
        self.expect(value, &protocol.head(value))?;
        let mut at = 0;
        while at < value.bytes {
            let bytes = &mut buffer[..CHUNK_BYTES.min((value.bytes - at) as usize)];
            self.stream.read_exact(bytes).map_err(failed(self.app, "no answer from"))?;
            if std::mem::take(&mut self.spoils) {
                bytes[0] ^= 1;
            }
            value.compare(at, bytes)?;
            at += bytes.len() as u64;
        }
        let end = if is_last { protocol.tail() } else { protocol.line_end() };
        self.expect(value, end)
    }

    /// Reads what has to come now, and not a byte behind it.
    fn expect(&mut self, value: &Value, right: &[u8]) -> Result<(), Failure> {
        let mut came = Vec::new();
        while came.len() < right.len() {
            let there = self.stream.fill_buf().map_err(failed(self.app, "no answer from"))?;
            if there.is_empty() {
                return Err(Failure::Answer(format!("{} closed a connection", self.app)));
            }
            let taken = there.len().min(right.len() - came.len());
            came.extend(&there[..taken]);
            self.stream.consume(taken);
            if !right.starts_with(&came) {
                // The rest of a refusal is in the buffer.
                came.extend(self.stream.buffer());
                return Err(unexpected(self.app, value, &came));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    const PATIENCE: Duration = Duration::from_secs(60);
    const VALUE: Value = Value { is_small: true, number: 7, bytes: 5 };

    fn answering(app: App, answer: Vec<u8>) -> (Connection, std::thread::JoinHandle<()>) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("s");
        let listener = UnixListener::bind(&at).unwrap();
        let connection = Connection::open(app, &at, PATIENCE).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // In two pieces: a head may end in the middle of what comes.
            let (one, two) = answer.split_at(answer.len() / 2);
            stream.write_all(one).unwrap();
            stream.write_all(two).unwrap();
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        (connection, server)
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = vec![0; VALUE.bytes as usize];
        pattern::fill(VALUE.seed(), 0, &mut bytes);
        bytes
    }

    #[test]
    fn a_right_value_is_taken_and_a_wrong_byte_of_it_noticed() {
        let answer = [b"$5\r\n", &bytes()[..], b"\r\n"].concat();
        let (mut right, server) = answering(App::Redis, answer.clone());
        right.compare(&VALUE, &mut buffer()).unwrap();
        drop(right);
        server.join().unwrap();
        let (mut spoiled, _server) = answering(App::Redis, answer);
        spoiled.spoils = true;
        let failure = spoiled.compare(&VALUE, &mut buffer()).unwrap_err();
        assert!(matches!(failure, Failure::WrongByte(_)), "{failure}");
    }

    #[test]
    fn a_refusal_is_told_as_a_whole_and_not_as_a_wrong_byte() {
        let answer = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
        let (mut refused, _server) = answering(App::Redis, answer.to_vec());
        let failure = refused.set(&VALUE, &mut buffer()).unwrap_err().to_string();
        let words = "redis refuses what it was asked of s00000007: OOM command not allowed when \
                     used memory > 'maxmemory'.";
        // The failure names what came until then; the rest may have been under way.
        assert!(words.starts_with(&failure) && failure.contains("OOM"), "{failure}");
    }
}
