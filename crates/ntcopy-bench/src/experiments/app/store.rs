//! Values, put into a program one after the other.

use std::io::{BufRead as _, BufReader, Error, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::wire::{self, Value, unexpected};
use super::{APP, AppPlan};
use crate::run::{Failure, Patience, pattern};

/// Bytes that are made at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Stores every value.
pub fn fill(plan: &AppPlan, at: &Path, patience: Patience<'_>) -> Result<(), Failure> {
    let mut store = Store::open(at, patience.limit)?;
    let data = &plan.data;
    let small = (0..data.small_keys).map(|key| data.small(key));
    for value in small.chain((0..data.large_values).map(|number| data.large(number))) {
        patience.stop.check()?;
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
        to.write_all(&wire::set(value))
            .and_then(|()| pattern::write(value.seed(), value.bytes, &mut self.room, to))
            .and_then(|()| to.write_all(wire::LINE_END))
            .map_err(failed("cannot send to"))?;
        let mut answer = Vec::new();
        self.stream.read_until(b'\n', &mut answer).map_err(failed("no answer from"))?;
        match &answer[..] {
            wire::STORED => Ok(()),
            [] => Err(Failure::Answer(format!("{APP} closed a connection"))),
            other => Err(unexpected(value, other)),
        }
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
            stream.write_all(b"SERVER_ERROR out of mem").unwrap();
            stream.write_all(b"ory storing object\r\n").unwrap();
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let value = Value { is_small: true, number: 7, bytes: 5 };
        let failure = store.set(&value).unwrap_err().to_string();
        let words = "memcached refuses what it was asked of s00000007: SERVER_ERROR out of memory \
                     storing object";
        assert_eq!(failure, words);
        drop(store);
        server.join().unwrap();
    }
}
