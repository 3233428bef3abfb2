//! Values, put into a program one after the other.

use std::io::{BufRead as _, BufReader, Error, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::plan::{APP, Plan};
use super::wire::{Value, memcached, unexpected};
use crate::run::{Failure, Stop, pattern};

/// Bytes that are made at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Stores every value.
pub fn fill(plan: &Plan, at: &Path, (patience, stop): (Duration, &Stop)) -> Result<(), Failure> {
    let mut store = Store::open(at, patience)?;
    let data = &plan.data;
    let small = (0..data.small_keys).map(|key| data.small(key));
    for value in small.chain((0..data.large_values).map(|number| data.large(number))) {
        stop.check()?;
        store.set(&value)?;
    }
    Ok(())
}

struct Store {
    stream: BufReader<UnixStream>,
    room: Vec<u8>,
}

fn failed(what: &'static str) -> impl Fn(Error) -> Failure {
    move |error| Failure::Answer(format!("{what} {APP}: {error}"))
}

impl Store {
    fn open(at: &Path, patience: Duration) -> Result<Store, Failure> {
        let failed = failed("cannot connect to");
        let stream = UnixStream::connect(at).map_err(&failed)?;
        stream.set_read_timeout(Some(patience)).map_err(&failed)?;
        stream.set_write_timeout(Some(patience)).map_err(&failed)?;
        Ok(Store { stream: BufReader::new(stream), room: vec![0; CHUNK_BYTES] })
    }

    fn set(&mut self, value: &Value) -> Result<(), Failure> {
        let to = self.stream.get_mut();
        to.write_all(&memcached::set(value))
            .and_then(|()| pattern::write(value.seed(), value.bytes, &mut self.room, to))
            .and_then(|()| to.write_all(memcached::LINE_END))
            .map_err(failed("cannot send to"))?;
        self.expect(value, memcached::STORED)
    }

    /// Reads what has to come now, and not a byte behind it.
    fn expect(&mut self, value: &Value, right: &[u8]) -> Result<(), Failure> {
        let mut came = Vec::new();
        while came.len() < right.len() {
            let there = self.stream.fill_buf().map_err(failed("no answer from"))?;
            if there.is_empty() {
                return Err(Failure::Answer(format!("{APP} closed a connection")));
            }
            let taken = there.len().min(right.len() - came.len());
            came.extend(&there[..taken]);
            self.stream.consume(taken);
            if !right.starts_with(&came) {
                // The rest of a refusal is in the buffer.
                came.extend(self.stream.buffer());
                return Err(unexpected(value, &came));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_refusal_is_told_as_a_whole_and_not_as_a_wrong_byte() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("s");
        let listener = UnixListener::bind(&at).unwrap();
        let mut store = Store::open(&at, Duration::from_secs(60)).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // In two pieces, after the first of which the other end may leave.
            stream.write_all(b"SERVER_ERROR out of mem").unwrap();
            let _ = stream.write_all(b"ory storing object\r\n");
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let value = Value { is_small: true, number: 7, bytes: 5 };
        let failure = store.set(&value).unwrap_err().to_string();
        let words = "memcached refuses what it was asked of s00000007: SERVER_ERROR out of memory \
                     storing object";
        // The failure names what came until then; the rest may have been under way.
        assert!(words.starts_with(&failure) && failure.contains("SERVER_ERROR"), "{failure}");
        drop(store);
        server.join().unwrap();
    }
}
