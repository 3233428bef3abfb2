//! What goes over the wire, in memcached's text protocol: requests, and the answers that a right server
//! gives, byte for byte.

mod multiget;

use super::{APP, Data};
use crate::run::{Failure, pattern};

pub use multiget::{Came, Multiget};

pub const LINE_END: &[u8] = b"\r\n";
/// What stands after the bytes of the last value, or of the only one.
pub const TAIL: &[u8] = b"\r\nEND\r\n";
/// The answer to a value that is to be stored.
pub const STORED: &[u8] = b"STORED\r\n";

/// Seeds of the values' patterns, far from each other.
const SMALL_SEED: u64 = 1 << 41;
const LARGE_SEED: u64 = 1 << 42;
/// Characters of a wrong answer that are printed.
const TOLD: usize = 120;

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

pub fn get(value: &Value) -> Vec<u8> {
    get_all(&[*value])
}

pub fn get_all(values: &[Value]) -> Vec<u8> {
    let keys: Vec<String> = values.iter().map(Value::key).collect();
    format!("get {}\r\n", keys.join(" ")).into_bytes()
}

/// What stands before a value's bytes.
pub fn head(value: &Value) -> Vec<u8> {
    format!("VALUE {} 0 {}\r\n", value.key(), value.bytes).into_bytes()
}

/// What goes before a value that is to be stored; [`LINE_END`] goes after it.
pub fn set(value: &Value) -> Vec<u8> {
    format!("set {} 0 0 {}\r\n", value.key(), value.bytes).into_bytes()
}

/// An answer that is none to what was asked.
pub fn unexpected(value: &Value, got: &[u8]) -> Failure {
    let key = value.key();
    if let Some(words) = refusal(got) {
        return Failure::Answer(format!("{APP} refuses what it was asked of {key}: {words}"));
    }
    Failure::Answer(format!(
        "{APP} answers \"{}\" where the value of {key} should begin or end",
        printable(got)
    ))
}

/// The program's own words where an answer refuses what was asked.
fn refusal(answer: &[u8]) -> Option<String> {
    let line = first_line(answer);
    let is_one = [&b"SERVER_ERROR"[..], b"CLIENT_ERROR", b"ERROR"];
    is_one.iter().any(|word| line.starts_with(word)).then(|| words(line))
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
    pub fn answer(multiget: &Multiget) -> Vec<u8> {
        let mut answer = Vec::new();
        for value in &multiget.values {
            answer.extend(head(value));
            let mut bytes = vec![0; value.bytes as usize];
            pattern::fill(value.seed(), 0, &mut bytes);
            answer.extend(bytes);
            answer.extend(LINE_END);
        }
        answer.extend(&TAIL[LINE_END.len()..]);
        answer
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_program() {
        let value = DATA.small(7);
        let said = |got: &[u8]| unexpected(&value, got).to_string();
        let missed = said(b"END\r\n");
        assert!(missed.contains("answers \"END\\r\\n\""), "{missed}");
        assert_eq!(
            said(b"SERVER_ERROR out of memory\r\n"),
            "memcached refuses what it was asked of s00000007: SERVER_ERROR out of memory"
        );
    }
}
