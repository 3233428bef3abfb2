//! What goes over the wire: requests, and the answers that a right server gives, byte for byte.

use super::ask::{App, Data};
use crate::run::{Failure, pattern};

/// Seeds of the values' patterns, far from each other.
const SMALL_SEED: u64 = 1 << 41;
const LARGE_SEED: u64 = 1 << 42;
/// Different multigets, each with other keys.
const MULTIGETS: u64 = 8;

/// A value: which one, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// Whether it is a hot one.
    pub is_small: bool,
    /// Its number among its kind.
    pub number: u64,
    /// Its bytes.
    pub bytes: u64,
}

impl Value {
    /// Its key; all keys have the same length.
    pub fn key(&self) -> String {
        format!("{}{:08}", if self.is_small { 's' } else { 'L' }, self.number)
    }

    /// Its pattern's seed.
    pub fn seed(&self) -> u64 {
        self.number + if self.is_small { SMALL_SEED } else { LARGE_SEED }
    }

    /// Compares a part of it from a position on.
    pub fn compare(&self, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        match pattern::first_wrong(self.seed(), at, bytes) {
            None => Ok(()),
            Some((index, expected)) => Err(Failure::WrongByte {
                socket: u32::try_from(self.number).unwrap_or(u32::MAX),
                position: at + index as u64,
                expected,
                got: bytes[index],
            }),
        }
    }
}

impl Data {
    /// A hot value.
    pub fn small(&self, number: u64) -> Value {
        Value { is_small: true, number, bytes: self.small_bytes }
    }

    /// In how many pieces a large value is stored.
    pub fn pieces(&self, is_chunked: bool) -> u64 {
        if is_chunked { self.large_bytes.div_ceil(self.chunk_bytes) } else { 1 }
    }

    /// A piece of a large value, as it is stored.
    pub fn large(&self, number: u64, piece: u64, is_chunked: bool) -> Value {
        let pieces = self.pieces(is_chunked);
        let before = piece * self.chunk_bytes;
        let bytes = match is_chunked {
            true => (self.large_bytes - before).min(self.chunk_bytes),
            false => self.large_bytes,
        };
        Value { is_small: false, number: number * pieces + piece, bytes }
    }
}

impl App {
    /// What stands before a value's bytes in an answer.
    pub fn head(self, value: &Value) -> Vec<u8> {
        match self {
            App::Memcached => format!("VALUE {} 0 {}\r\n", value.key(), value.bytes).into_bytes(),
        }
    }

    /// What stands after the last value's bytes.
    pub fn tail(self) -> &'static [u8] {
        match self {
            App::Memcached => b"\r\nEND\r\n",
        }
    }

    /// Asks for values.
    pub fn get(self, values: &[Value]) -> Vec<u8> {
        let keys: Vec<String> = values.iter().map(Value::key).collect();
        match self {
            App::Memcached => format!("get {}\r\n", keys.join(" ")).into_bytes(),
        }
    }

    /// What goes before a value that is to be stored, and what after it.
    pub fn set(self, value: &Value) -> (Vec<u8>, &'static [u8]) {
        match self {
            App::Memcached => {
                (format!("set {} 0 0 {}\r\n", value.key(), value.bytes).into_bytes(), b"\r\n")
            }
        }
    }

    /// The answer when it was stored.
    pub fn stored(self) -> &'static [u8] {
        match self {
            App::Memcached => b"STORED\r\n",
        }
    }
}

/// A multiget, and where the values lie in its answer.
pub struct Multiget {
    /// The request.
    pub request: Vec<u8>,
    /// What is asked for, in this order.
    pub values: Vec<Value>,
    /// Bytes of the whole answer.
    pub answer_bytes: usize,
    app: App,
    /// Bytes of a value with its head and the end of its line.
    stride: usize,
}

/// The end of a value's line.
const LINE_END: &[u8] = b"\r\n";

impl Multiget {
    /// Every one of them: neighbouring keys, each key in about as many of them.
    pub fn all(app: App, data: &Data) -> Vec<Multiget> {
        let step = (data.small_keys / MULTIGETS).max(1);
        let starts = (0..MULTIGETS).map(|number| number * step % data.small_keys);
        starts
            .map(|start| {
                let keys = (start..start + data.multiget).map(|key| key % data.small_keys);
                let values: Vec<Value> = keys.map(|key| data.small(key)).collect();
                Multiget::of(app, values)
            })
            .collect()
    }

    /// A multiget of these values, all of the same size.
    pub fn of(app: App, values: Vec<Value>) -> Multiget {
        let first = values.first();
        let stride =
            first.map_or(0, |value| app.head(value).len() + value.bytes as usize + LINE_END.len());
        let end = app.tail().len() - LINE_END.len();
        Multiget {
            request: app.get(&values),
            answer_bytes: stride * values.len() + end,
            values,
            app,
            stride,
        }
    }

    /// Compares one value of an answer with its head, and the answer's end.
    pub fn compare(&self, answer: &[u8], at: usize) -> Result<(), Failure> {
        let value = &self.values[at % self.values.len()];
        let from = at % self.values.len() * self.stride;
        let head = self.app.head(value);
        let body = from + head.len()..from + self.stride - LINE_END.len();
        if answer[from..body.start] != head || !answer.ends_with(self.app.tail()) {
            return Err(unexpected(self.app, value, &answer[from..body.start]));
        }
        value.compare(0, &answer[body])
    }
}

/// An answer that is none to what was asked.
pub fn unexpected(app: App, value: &Value, got: &[u8]) -> Failure {
    let got = String::from_utf8_lossy(got);
    let got: String = got.chars().flat_map(char::escape_default).take(120).collect();
    Failure::Answer(format!(
        "{app} answers \"{got}\" where the value of {} should begin or end",
        value.key()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Data = Data {
        large_bytes: 150_000,
        large_values: 4,
        chunk_bytes: 65_536,
        small_bytes: 100,
        small_keys: 512,
        multiget: 100,
    };

    /// The answer that a right server gives.
    fn answer(multiget: &Multiget) -> Vec<u8> {
        let mut answer = Vec::new();
        for value in &multiget.values {
            answer.extend(App::Memcached.head(value));
            let mut bytes = vec![0; value.bytes as usize];
            pattern::fill(value.seed(), 0, &mut bytes);
            answer.extend(bytes);
            answer.extend(LINE_END);
        }
        answer.extend(b"END\r\n");
        answer
    }

    #[test]
    fn an_answer_has_the_length_and_the_bytes_that_are_expected() {
        let all = Multiget::all(App::Memcached, &DATA);
        let mut asked = [0; 512];
        for multiget in &all {
            let right = answer(multiget);
            assert_eq!(right.len(), multiget.answer_bytes);
            for at in 0..multiget.values.len() {
                asked[multiget.values[at].number as usize] += 1;
                multiget.compare(&right, at).unwrap();
            }
            let mut wrong = right.clone();
            wrong[40] ^= 1;
            let failure = multiget.compare(&wrong, 0).unwrap_err();
            assert!(matches!(failure, Failure::WrongByte { .. }), "{failure}");
            assert!(multiget.compare(&wrong, 1).is_ok());
            let mut missed = right;
            missed[0] = b'E';
            assert!(matches!(multiget.compare(&missed, 0), Err(Failure::Answer(_))));
        }
        assert!(asked.iter().all(|times| (1..=2).contains(times)), "{asked:?}");
    }

    #[test]
    fn pieces_are_the_whole_value_and_no_two_have_a_key_in_common() {
        let mut keys = Vec::new();
        for number in 0..DATA.large_values {
            let pieces = (0..DATA.pieces(true)).map(|piece| DATA.large(number, piece, true));
            let pieces: Vec<Value> = pieces.collect();
            assert_eq!(pieces.iter().map(|piece| piece.bytes).sum::<u64>(), DATA.large_bytes);
            keys.extend(pieces.iter().map(Value::key));
        }
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), count), (12, 12));
        assert_eq!(DATA.large(3, 0, false).bytes, DATA.large_bytes);
    }
}
