//! Where varnish gets each value, once: while its cache is filled.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rustix::net::{Shutdown, shutdown};

use super::connection::{fill, room};
use super::wire::{Value, path};
use crate::run::Failure;

/// Where it listens, for a server that listens there.
pub fn socket(at: &Path) -> PathBuf {
    at.with_file_name("origin.sock")
}

/// The origin. Dropped, it is gone: what varnish has not kept by then is an error to its client.
pub struct Origin {
    listener: UnixListener,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    /// Listens, and gives each of these values to the first who asks.
    pub fn start(at: &Path, values: impl Iterator<Item = Value>) -> Result<Origin, Failure> {
        let failed = || Failure::io(format!("cannot listen at {}", at.display()));
        // One that was there before has left its name.
        let _ = std::fs::remove_file(at);
        let listener = UnixListener::bind(at).map_err(failed())?;
        let asked = listener.try_clone().map_err(failed())?;
        let mut values = values.map(|value| (path(&value), value)).collect();
        let thread = std::thread::spawn(move || {
            for stream in asked.incoming().map_while(Result::ok) {
                // The comparison of the value finds what is missing of it.
                let _ = answer(&stream, &mut values);
            }
        });
        Ok(Origin { listener, thread: Some(thread) })
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // It wakes the thread, which ends.
        let _ = shutdown(&self.listener, Shutdown::Both);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Answers one request, and the connection ends with that: while one waits no other is served.
fn answer(mut stream: &UnixStream, values: &mut BTreeMap<String, Value>) -> Result<(), Failure> {
    let failed = || Failure::io("cannot answer");
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let asked = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let value = values.remove(asked);
    let (status, bytes) = value.map_or(("404 Not Found", 0), |value| ("200 OK", value.bytes));
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).map_err(failed())?;
    let Some(value) = value else { return Ok(()) };
    fill(&value, &mut room(), |bytes| stream.write_all(bytes).map_err(failed()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::app::ask::App;
    use crate::experiments::app::connection::Connection;
    use std::time::Duration;

    #[test]
    fn a_value_is_given_once_and_after_the_end_nobody_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let at = socket(&folder.path().join("copy.sock"));
        let value = Value { is_small: false, number: 7, bytes: 150_000 };
        let origin = Origin::start(&at, [value].into_iter()).unwrap();
        let ask = || {
            let mut asking = Connection::open(App::Varnish, &at, Duration::from_secs(60))?;
            asking.compare(&value, &mut room())
        };
        ask().unwrap();
        let again = ask().unwrap_err().to_string();
        assert!(again.contains("404 Not Found"), "{again}");
        drop(origin);
        assert!(ask().unwrap_err().to_string().contains("cannot connect"));
    }
}
