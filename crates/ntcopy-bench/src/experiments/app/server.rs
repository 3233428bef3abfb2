//! The program: started for a mode, filled, every value compared, and ended.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ask::{App, AppMode, Plan};
use super::wire::{Multiget, Value, unexpected};
use crate::experiments::turns::program::{Output, Program};
use crate::run::{CpuClock, Failure, Stop, pattern, place};

/// Bytes that are read, or made, at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// What a server may hold, by what is put into it: it must drop nothing.
const ROOM_PERCENT: u64 = 150;
const ROOM_MIB: u64 = 128;

/// The servers of one mode.
pub struct Server {
    app: App,
    /// One, or that of the small values and that of the large ones.
    programs: Vec<Program>,
    clocks: Vec<CpuClock>,
    /// Where small values are asked for.
    pub small: PathBuf,
    /// Where large ones are.
    pub large: PathBuf,
    /// Whether large values are in pieces.
    pub is_chunked: bool,
}

impl Server {
    /// Starts what the mode needs on the server's CPU, and stores all values.
    pub fn start(
        plan: &Plan,
        mode: AppMode,
        folder: &Path,
        patience: Duration,
        stop: &Stop,
    ) -> Result<Server, Failure> {
        let small = folder.join(format!("{mode}.sock"));
        let large = match mode {
            AppMode::SecondInstance => folder.join(format!("{mode}-large.sock")),
            _ => small.clone(),
        };
        let mut places = vec![&small];
        places.extend(Some(&large).filter(|large| **large != small));
        let mut server = Server {
            app: plan.app,
            programs: Vec::new(),
            clocks: Vec::new(),
            is_chunked: mode == AppMode::Chunked,
            small: small.clone(),
            large: large.clone(),
        };
        for place in places {
            server.start_one(plan, mode, place, patience, stop)?;
        }
        server.fill(plan, patience, stop)?;
        server.check(plan, patience, stop)?;
        Ok(server)
    }

    fn start_one(
        &mut self,
        plan: &Plan,
        mode: AppMode,
        at: &Path,
        patience: Duration,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let environment = match plan.hinting.get(&mode) {
            Some(Ok(environment)) => &environment[..],
            _ => &[],
        };
        // One that was there before has left its name.
        let _ = std::fs::remove_file(at);
        let [server_cpu, client_cpu] = plan.cpus;
        // Threads that it starts stay where it is.
        place(Some(server_cpu))?;
        let started = Program::start(&words(plan, at), environment, Output::Dropped);
        place(Some(client_cpu))?;
        let mut program = started?;
        program.is_ready(None, patience, stop)?;
        self.clocks.push(CpuClock::of(program.pid())?);
        self.programs.push(program);
        Ok(())
    }

    /// CPU time of all of it so far, nanoseconds.
    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        self.clocks.iter().map(CpuClock::ns).sum()
    }

    /// What failed, in the server's own words if it is gone.
    pub fn blame(&mut self, failure: Failure) -> Failure {
        let gone = self.programs.iter_mut().find_map(|program| match program.runs() {
            Ok(false) => program.still_runs().err(),
            _ => None,
        });
        gone.unwrap_or(failure)
    }

    /// Stores every value.
    fn fill(&self, plan: &Plan, patience: Duration, stop: &Stop) -> Result<(), Failure> {
        let mut room = vec![0; CHUNK_BYTES];
        let mut small = Connection::open(self.app, &self.small, patience)?;
        for key in 0..plan.data.small_keys {
            small.set(&plan.data.small(key), &mut room)?;
        }
        let mut large = Connection::open(self.app, &self.large, patience)?;
        for value in self.large_values(plan, 0..plan.data.large_values) {
            stop.check()?;
            large.set(&value, &mut room)?;
        }
        Ok(())
    }

    /// Compares every byte of every value.
    pub fn check(&self, plan: &Plan, patience: Duration, stop: &Stop) -> Result<(), Failure> {
        self.check_some(plan, 0..plan.data.large_values, patience, stop, false)
    }

    /// Compares every byte of every hot value, and of some large ones.
    pub fn check_some(
        &self,
        plan: &Plan,
        large: std::ops::Range<u64>,
        patience: Duration,
        stop: &Stop,
        spoil: bool,
    ) -> Result<(), Failure> {
        let mut asking = Connection::open(self.app, &self.small, patience)?;
        asking.spoils = spoil;
        let hot: Vec<Value> = (0..plan.data.small_keys).map(|key| plan.data.small(key)).collect();
        for values in hot.chunks(plan.data.multiget as usize) {
            asking.compare_all(values)?;
        }
        let mut room = vec![0; CHUNK_BYTES];
        let mut asking = Connection::open(self.app, &self.large, patience)?;
        for value in self.large_values(plan, large) {
            stop.check()?;
            asking.compare(&value, &mut room)?;
        }
        Ok(())
    }

    /// Large values, or their pieces, as they are stored.
    fn large_values(
        &self,
        plan: &Plan,
        numbers: std::ops::Range<u64>,
    ) -> impl Iterator<Item = Value> {
        let (data, is_chunked) = (plan.data, self.is_chunked);
        numbers.flat_map(move |number| {
            (0..data.pieces(is_chunked)).map(move |piece| data.large(number, piece, is_chunked))
        })
    }
}

/// The command line.
fn words(plan: &Plan, at: &Path) -> Vec<OsString> {
    let data = &plan.data;
    let stored = data.large_values * data.large_bytes + data.small_keys * data.small_bytes;
    let room_mib = (stored >> 20) * ROOM_PERCENT / 100 + ROOM_MIB;
    let largest = (data.large_bytes.max(data.small_bytes) * 2).max(1 << 20);
    let mut words: Vec<OsString> = vec![plan.program.clone().into()];
    match plan.app {
        App::Memcached => {
            words.extend(["-s".into(), at.into()]);
            let options = format!("-t 1 -U 0 -m {room_mib} -I {largest}");
            words.extend(options.split(' ').map(OsString::from));
            if rustix::process::geteuid().is_root() {
                // It would lose root's rights, and with them the way to the folder.
                words.extend(["-u", "root"].map(OsString::from));
            }
        }
    }
    words
}

fn failed(app: App, what: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::Answer(format!("{what} {app}: {error}"))
}

/// A connection that asks for one thing at a time, and waits for it.
struct Connection {
    app: App,
    stream: UnixStream,
    /// Make the next byte a wrong one, to see that it is noticed.
    spoils: bool,
}

impl Connection {
    fn open(app: App, at: &Path, patience: Duration) -> Result<Connection, Failure> {
        let failed = failed(app, "cannot connect to");
        let stream = UnixStream::connect(at).map_err(&failed)?;
        stream.set_read_timeout(Some(patience)).map_err(&failed)?;
        stream.set_write_timeout(Some(patience)).map_err(&failed)?;
        Ok(Connection { app, stream, spoils: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).map_err(failed(self.app, "cannot send to"))
    }

    fn read(&mut self, room: &mut [u8]) -> Result<(), Failure> {
        self.stream.read_exact(room).map_err(failed(self.app, "no answer from"))
    }

    fn set(&mut self, value: &Value, room: &mut [u8]) -> Result<(), Failure> {
        let (head, end) = self.app.set(value);
        self.write(&head)?;
        let mut at = 0;
        while at < value.bytes {
            let bytes = &mut room[..CHUNK_BYTES.min((value.bytes - at) as usize)];
            pattern::fill(value.seed(), at, bytes);
            self.write(bytes)?;
            at += bytes.len() as u64;
        }
        self.write(end)?;
        self.expect(value, self.app.stored())
    }

    /// Compares the values of one multiget.
    fn compare_all(&mut self, values: &[Value]) -> Result<(), Failure> {
        let multiget = Multiget::of(self.app, values.to_vec());
        self.write(&multiget.request)?;
        let mut answer = vec![0; multiget.answer_bytes];
        self.read(&mut answer)?;
        if std::mem::take(&mut self.spoils) {
            let first = values.first().map_or(0, |value| self.app.head(value).len());
            answer[first] ^= 1;
        }
        (0..values.len()).try_for_each(|at| multiget.compare(&answer, at))
    }

    /// Compares one value, a piece at a time.
    fn compare(&mut self, value: &Value, room: &mut [u8]) -> Result<(), Failure> {
        self.write(&self.app.get(&[*value]))?;
        self.expect(value, &self.app.head(value))?;
        let mut at = 0;
        while at < value.bytes {
            let bytes = &mut room[..CHUNK_BYTES.min((value.bytes - at) as usize)];
            self.read(bytes)?;
            value.compare(at, bytes)?;
            at += bytes.len() as u64;
        }
        self.expect(value, self.app.tail())
    }

    /// Reads what has to come now.
    fn expect(&mut self, value: &Value, bytes: &[u8]) -> Result<(), Failure> {
        let mut got = vec![0; bytes.len()];
        // A shorter answer is told as far as it came.
        let mut read = 0;
        while read < got.len() && got[..read] == bytes[..read] {
            let more = self.stream.read(&mut got[read..]);
            match more.map_err(failed(self.app, "no answer from"))? {
                0 => return Err(Failure::Answer(format!("{} closed a connection", self.app))),
                more => read += more,
            }
        }
        if got[..read] == *bytes { Ok(()) } else { Err(unexpected(self.app, value, &got[..read])) }
    }
}
