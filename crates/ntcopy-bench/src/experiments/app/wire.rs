//! What goes over the wire: requests, and the answers that a right server gives, byte for byte.

mod memcached;
mod multiget;
mod redis;

use super::plan::{App, Data};
use crate::run::{Failure, pattern};

pub use multiget::{Came, Multiget};

/// Seeds of the values' patterns, far from each other.
const SMALL_SEED: u64 = 1 << 41;
const LARGE_SEED: u64 = 1 << 42;
/// Characters of a wrong answer that are printed.
const TOLD: usize = 120;

/// How a program is asked, and what it answers.
pub trait Protocol: Sync {
    fn get(&self, value: &Value) -> Vec<u8> {
        self.multiget(&[*value])
    }

    fn multiget(&self, values: &[Value]) -> Vec<u8>;

    /// What stands before the first of several values in an answer.
    fn opening(&self, _values: usize) -> Vec<u8> {
        Vec::new()
    }

    /// What stands before a value's bytes.
    fn head(&self, value: &Value) -> Vec<u8>;

    /// What stands after them.
    fn line_end(&self) -> &'static [u8];

    /// What stands after those of the last value, or of the only one.
    fn tail(&self) -> &'static [u8];

    /// The program's own words where an answer refuses what was asked.
    fn refusal(&self, answer: &[u8]) -> Option<String>;

    /// What goes before a value that is to be stored, and what after it.
    fn set(&self, value: &Value) -> (Vec<u8>, &'static [u8]);

    /// The answer to that.
    fn stored(&self) -> &'static [u8];
}

impl App {
    pub fn protocol(self) -> &'static dyn Protocol {
        match self {
            App::Memcached => &memcached::Memcached,
            App::Redis => &redis::Redis,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    pub is_small: bool,
    pub number: u64,
    pub bytes: u64,
}

impl Value {
    /// Its key; all keys have the same length.
    pub fn key(&self) -> String {
        format!("{}{:08}", if self.is_small { 's' } else { 'L' }, self.number)
    }

    pub fn seed(&self) -> u64 {
        self.number + if self.is_small { SMALL_SEED } else { LARGE_SEED }
    }

    pub fn compare(&self, at: u64, bytes: &[u8]) -> Result<(), Failure> {
        let socket = u32::try_from(self.number).unwrap_or(u32::MAX);
        let compared = pattern::compare(self.seed(), at, bytes);
        Ok(compared.map_err(|wrong| wrong.after(at).on(socket))?)
    }
}

impl Data {
    pub fn small(&self, number: u64) -> Value {
        Value { is_small: true, number, bytes: self.small_bytes }
    }

    pub fn large(&self, number: u64) -> Value {
        Value { is_small: false, number, bytes: self.large_bytes }
    }
}

/// An answer that is none to what was asked.
pub fn unexpected(app: App, value: &Value, got: &[u8]) -> Failure {
    let key = value.key();
    if let Some(words) = app.protocol().refusal(got) {
        return Failure::Answer(format!("{app} refuses what it was asked of {key}: {words}"));
    }
    Failure::Answer(format!(
        "{app} answers \"{}\" where the value of {key} should begin or end",
        printable(got)
    ))
}

/// Bytes in characters that a terminal shows, as far as a line takes them.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().flat_map(char::escape_default).take(TOLD).collect()
}

/// A program's words, as far as a line takes them.
fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|letter| !letter.is_control()).take(TOLD).collect()
}

fn first_line(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| [b'\r', b'\n'].contains(byte)).next().unwrap_or_default()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const DATA: Data = Data {
        large_bytes: 150_000,
        large_values: 4,
        small_bytes: 100,
        small_keys: 512,
        multiget: 100,
    };

    /// The answer that a right server gives.
    pub fn answer(app: App, multiget: &Multiget) -> Vec<u8> {
        let protocol = app.protocol();
        let mut answer = protocol.opening(multiget.values.len());
        for value in &multiget.values {
            answer.extend(protocol.head(value));
            let mut bytes = vec![0; value.bytes as usize];
            pattern::fill(value.seed(), 0, &mut bytes);
            answer.extend(bytes);
            answer.extend(protocol.line_end());
        }
        answer.extend(&protocol.tail()[protocol.line_end().len()..]);
        answer
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_program() {
        let value = DATA.small(7);
        let said = |app, got: &[u8]| unexpected(app, &value, got).to_string();
        assert_eq!(
            said(App::Redis, b"-ERR unknown command 'MGETS'\r\n"),
            "redis refuses what it was asked of s00000007: ERR unknown command 'MGETS'"
        );
        let missed = said(App::Redis, b"$-1\r\n");
        assert!(missed.contains("refuses") && missed.contains("no such key"), "{missed}");
        let missed = said(App::Memcached, b"END\r\n");
        assert!(missed.contains("answers \"END\\r\\n\""), "{missed}");
        let full = said(App::Memcached, b"SERVER_ERROR out of memory\r\n");
        assert!(full.ends_with("s00000007: SERVER_ERROR out of memory"), "{full}");
    }
}
