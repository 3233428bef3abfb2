//! The client: connections for multigets, and for large values that are dropped unread, or compared.

use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::pipe::SpliceFlags;

use super::wire::{self, Came, Multiget, Value, unexpected};
use super::{APP, Data};
use crate::run::{Failure, Patience, Pipe, Poll, Sink};

/// What tells connections for large values from the others, among events.
const LARGE: u64 = 1 << 32;
/// The longest head of a value, or what comes instead, as far as it is told.
const MOST_HEAD_BYTES: usize = 1024;
const MOST_TAIL_BYTES: usize = 16;
const COMPARED_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    Small(usize),
    Large(usize),
}

/// All connections to the servers of one mode.
pub struct Client {
    data: Data,
    poll: Poll,
    multigets: Vec<Multiget>,
    /// Multigets and large values that were asked for so far: they take turns.
    asked: [u64; 2],
    smalls: Vec<Small>,
    larges: Vec<Large>,
    sink: Sink,
    /// Where every byte is compared, instead.
    comparing: Option<Comparing>,
}

struct Comparing {
    room: Vec<u8>,
    /// Make the next byte of a large value a wrong one, to see that it is noticed.
    spoils: bool,
}

struct Small {
    stream: UnixStream,
    room: Vec<u8>,
    came: Came,
    /// What is under way: its number among all, and when it was due.
    under_way: Option<(u64, u64)>,
}

struct Large {
    stream: UnixStream,
    under_way: Option<Fetch>,
}

struct Fetch {
    value: Value,
    head: Vec<u8>,
    head_came: Vec<u8>,
    has_head: bool,
    got: u64,
    tail_got: usize,
}

impl Client {
    pub fn connect(
        data: Data,
        at: &Path,
        [smalls, larges]: [u32; 2],
        patience: Patience<'_>,
    ) -> Result<Client, Failure> {
        let poll = Poll::new(patience, "")?;
        let multigets = Multiget::all(&data);
        let most = multigets.iter().map(|multiget| multiget.bytes).max().unwrap_or(0);
        let connect = |token: u64| -> Result<UnixStream, Failure> {
            let doing = || Failure::io(format!("cannot connect to {APP}"));
            let stream = UnixStream::connect(at).map_err(doing())?;
            stream.set_nonblocking(true).map_err(doing())?;
            poll.watch(&stream, token)?;
            Ok(stream)
        };
        let small = |number: u32| -> Result<Small, Failure> {
            let stream = connect(number.into())?;
            Ok(Small { stream, room: vec![0; most], came: Came::default(), under_way: None })
        };
        let large = |number: u32| -> Result<Large, Failure> {
            let stream = connect(LARGE | u64::from(number))?;
            Ok(Large { stream, under_way: None })
        };
        let smalls = (0..smalls).map(small).collect::<Result<_, _>>()?;
        let larges = (0..larges).map(large).collect::<Result<_, _>>()?;
        Ok(Client {
            data,
            multigets,
            asked: [0; 2],
            smalls,
            larges,
            sink: Sink::new(Pipe::for_object(data.large_bytes)?)?,
            poll,
            comparing: None,
        })
    }

    pub fn connections(&self) -> [usize; 2] {
        [self.smalls.len(), self.larges.len()]
    }

    /// Waits until something came, or `at_most` is over, and gives how many connections have it.
    pub fn wait(&mut self, at_most: Duration) -> Result<usize, Failure> {
        let Self { poll, smalls, larges, .. } = self;
        poll.wait(at_most, || {
            let smalls = smalls.iter().filter(|small| small.under_way.is_some()).count();
            smalls + larges.iter().filter(|large| large.under_way.is_some()).count()
        })
    }

    /// Something came: silence counts from now on.
    pub fn heard(&mut self) {
        self.poll.heard(self.poll.ns());
    }

    pub fn ready(&self, event: usize) -> Ready {
        let (token, _) = self.poll.event(event);
        match token & LARGE {
            0 => Ready::Small(token as usize),
            _ => Ready::Large((token & !LARGE) as usize),
        }
    }

    pub fn ask_small(&mut self, number: usize, due_ns: u64) -> Result<(), Failure> {
        let asked = self.asked[0];
        self.asked[0] += 1;
        let small = &mut self.smalls[number];
        small.under_way = Some((asked, due_ns));
        small.came = Came::default();
        let multiget = &self.multigets[(asked % self.multigets.len() as u64) as usize];
        write(&small.stream, &multiget.request)
    }

    /// Reads on, and gives when the answer was due, if it is complete. One of its values is
    /// compared, in turn, or all.
    pub fn read_small(&mut self, number: usize) -> Result<Option<u64>, Failure> {
        let small = &mut self.smalls[number];
        let Some((asked, due_ns)) = small.under_way else {
            return Err(unasked());
        };
        let multiget = &self.multigets[(asked % self.multigets.len() as u64) as usize];
        let room = &mut small.room[small.came.bytes..multiget.bytes];
        small.came.bytes += read(&small.stream, room)?;
        let answer = &small.room[..small.came.bytes];
        if !multiget.is_whole(answer, &mut small.came)? {
            return Ok(None);
        }
        let at = (asked / self.multigets.len() as u64) as usize % multiget.values.len();
        let compared = if self.comparing.is_some() { 0..multiget.values.len() } else { at..at + 1 };
        compared.into_iter().try_for_each(|at| multiget.compare(answer, at))?;
        small.under_way = None;
        Ok(Some(due_ns))
    }

    /// When the multigets that are under way were due.
    pub fn small_under_way(&self) -> impl Iterator<Item = u64> {
        self.smalls.iter().filter_map(|small| small.under_way.map(|(_, due_ns)| due_ns))
    }

    pub fn is_fetching(&self) -> bool {
        self.larges.iter().any(|large| large.under_way.is_some())
    }

    pub fn ask_large(&mut self, number: usize) -> Result<(), Failure> {
        let value = self.asked[1] % self.data.large_values;
        self.asked[1] += 1;
        self.ask_value(number, value)
    }

    fn ask_value(&mut self, number: usize, value: u64) -> Result<(), Failure> {
        let value = self.data.large(value);
        let large = &mut self.larges[number];
        write(&large.stream, &wire::get(&value))?;
        let (head, head_came) = (wire::head(&value), Vec::new());
        large.under_way =
            Some(Fetch { value, head, head_came, has_head: false, got: 0, tail_got: 0 });
        Ok(())
    }

    /// Takes what there is of a large value: how many of its bytes, and whether that was all of it.
    pub fn read_large(&mut self, number: usize) -> Result<(u64, bool), Failure> {
        let large = &mut self.larges[number];
        let Some(fetch) = &mut large.under_way else {
            return Err(unasked());
        };
        let before = fetch.got;
        let is_whole = fetch.take(&large.stream, &self.sink, self.comparing.as_mut())?;
        let taken = fetch.got - before;
        if is_whole {
            large.under_way = None;
        }
        Ok((taken, is_whole))
    }

    /// Asks for every hot value and for some large ones, one after the other, and compares every
    /// byte of them.
    pub fn check(&mut self, large: Range<u64>, spoil: bool) -> Result<(), Failure> {
        self.comparing = Some(Comparing { room: vec![0; COMPARED_BYTES], spoils: spoil });
        for _ in 0..self.multigets.len() {
            self.ask_small(0, 0)?;
            self.answered()?;
        }
        for value in large {
            self.ask_value(0, value)?;
            self.answered()?;
        }
        self.comparing = None;
        Ok(())
    }

    /// Waits for the one answer that is under way.
    fn answered(&mut self) -> Result<(), Failure> {
        loop {
            let ready = self.wait(Duration::MAX)?;
            for event in 0..ready {
                self.heard();
                let is_whole = match self.ready(event) {
                    Ready::Small(number) => self.read_small(number)?.is_some(),
                    Ready::Large(number) => self.read_large(number)?.1,
                };
                if is_whole {
                    return Ok(());
                }
            }
        }
    }
}

impl Fetch {
    /// Takes what there is; whether it was all. Head and tail are compared, the value is dropped,
    /// unless it is compared, too.
    fn take(
        &mut self,
        stream: &UnixStream,
        sink: &Sink,
        comparing: Option<&mut Comparing>,
    ) -> Result<bool, Failure> {
        if !self.takes_head(stream)? {
            return Ok(false);
        }
        if self.got < self.value.bytes {
            // All that is there now; a second call to find nothing would double the price.
            self.got += match comparing {
                None => drop_some(sink, stream, self.value.bytes - self.got)?,
                Some(comparing) => comparing.some(stream, &self.value, self.got)?,
            };
        }
        Ok(self.got == self.value.bytes && self.takes_tail(stream)?)
    }

    /// Reads on in the head; whether all of it has come.
    fn takes_head(&mut self, stream: &UnixStream) -> Result<bool, Failure> {
        if self.has_head {
            return Ok(true);
        }
        let mut room = [0; MOST_HEAD_BYTES];
        let most = self.head.len() - self.head_came.len();
        let got = read(stream, &mut room[..most])?;
        self.head_came.extend(&room[..got]);
        if !self.head.starts_with(&self.head_came) {
            return Err(self.refused(stream));
        }
        self.has_head = self.head_came.len() == self.head.len();
        Ok(self.has_head)
    }

    /// What came instead of the head, as far as it is there.
    fn refused(&mut self, stream: &UnixStream) -> Failure {
        let mut rest = [0; MOST_HEAD_BYTES];
        let more = read(stream, &mut rest).unwrap_or(0);
        self.head_came.extend(&rest[..more]);
        unexpected(&self.value, &self.head_came)
    }

    /// Reads on in the tail; whether all of it has come.
    fn takes_tail(&mut self, stream: &UnixStream) -> Result<bool, Failure> {
        let right = &wire::TAIL[self.tail_got..];
        if right.is_empty() {
            return Ok(true);
        }
        let mut room = [0; MOST_TAIL_BYTES];
        let got = read(stream, &mut room[..right.len()])?;
        if room[..got] != right[..got] {
            return Err(unexpected(&self.value, &room[..got]));
        }
        self.tail_got += got;
        Ok(got == right.len())
    }
}

impl Comparing {
    /// Compares what there is of a value from that place on; 0 if there is nothing now.
    fn some(&mut self, stream: &UnixStream, value: &Value, at: u64) -> Result<u64, Failure> {
        let most = self.room.len().min((value.bytes - at) as usize);
        let got = read(stream, &mut self.room[..most])?;
        if got > 0 && std::mem::take(&mut self.spoils) {
            self.room[0] ^= 1;
        }
        value.compare(at, &self.room[..got])?;
        Ok(got as u64)
    }
}

/// Drops what there is, at most `most` bytes; 0 if there is nothing now.
fn drop_some(sink: &Sink, stream: &UnixStream, most: u64) -> Result<u64, Failure> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let got = match sink.fill(stream, most, SpliceFlags::NONBLOCK) {
        Ok(0) => return Err(closed()),
        Ok(got) => got,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
        Err(errno) => return Err(Failure::os("cannot splice from a socket")(errno)),
    };
    sink.empty(got).map_err(Failure::os("cannot splice to /dev/null"))?;
    Ok(got as u64)
}

/// Sends a whole request, for which there is always room where nothing is under way.
fn write(stream: &UnixStream, request: &[u8]) -> Result<(), Failure> {
    match send(stream, request, SendFlags::NOSIGNAL) {
        Ok(sent) if sent == request.len() => Ok(()),
        Ok(_) => Err(Failure::Answer(format!("{APP} takes no whole request"))),
        Err(errno) => Err(Failure::os(format!("cannot send to {APP}"))(errno)),
    }
}

/// Reads what there is; 0 if there is nothing now.
fn read(stream: &UnixStream, room: &mut [u8]) -> Result<usize, Failure> {
    match recv(stream, room, RecvFlags::empty()) {
        Ok((0, _)) => Err(closed()),
        Ok((got, _)) => Ok(got),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(errno) => Err(Failure::os(format!("no answer from {APP}"))(errno)),
    }
}

fn closed() -> Failure {
    Failure::Answer(format!("{APP} closed a connection"))
}

fn unasked() -> Failure {
    Failure::Answer(format!("{APP} sends what was not asked for"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;

    use super::super::wire::tests::{DATA, answer};
    use super::*;
    use crate::run::Stop;
    use crate::run::pattern;

    /// Answers a connection's multigets in turn, and another one's large value. They stay open.
    fn serve(listener: &UnixListener) -> [UnixStream; 2] {
        let [mut small, mut large] = [0; 2].map(|_| listener.accept().unwrap().0);
        for multiget in Multiget::all(&DATA) {
            small.read_exact(&mut vec![0; multiget.request.len()]).unwrap();
            small.write_all(&answer(&multiget)).unwrap();
        }
        let value = DATA.large(2);
        large.read_exact(&mut vec![0; wire::get(&value).len()]).unwrap();
        let mut bytes = vec![0; value.bytes as usize];
        pattern::fill(value.seed(), 0, &mut bytes);
        let whole = [&wire::head(&value), &bytes[..], wire::TAIL].concat();
        // In two pieces: a head may end in the middle of what comes. Who sees a wrong byte leaves.
        let _ = large.write_all(&whole[..3]).and_then(|()| large.write_all(&whole[3..]));
        [small, large]
    }

    #[test]
    fn right_values_are_taken_and_a_wrong_byte_is_noticed() {
        for spoil in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let at = folder.path().join("s");
            let listener = UnixListener::bind(&at).unwrap();
            let server = std::thread::spawn(move || serve(&listener));
            let patience = Patience { limit: Duration::from_secs(60), stop: &Stop::default() };
            let mut client = Client::connect(DATA, &at, [1, 1], patience).unwrap();
            match client.check(2..3, spoil) {
                Ok(()) => assert!(!spoil),
                Err(Failure::WrongByte(wrong)) => {
                    assert!(spoil, "{wrong:?}");
                    assert_eq!(wrong.position, 0);
                }
                Err(failure) => panic!("{failure}"),
            }
            drop(client);
            server.join().unwrap();
        }
    }
}
