//! What goes over the wire: requests, and the answers that a right server gives, byte for byte.

pub mod memcached;
mod multiget;

use super::{APP, Data};
use crate::run::{Failure, pattern};

pub use multiget::{Came, Multiget};

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

/// An answer that is none to what was asked.
pub fn unexpected(value: &Value, got: &[u8]) -> Failure {
    let key = value.key();
    if let Some(words) = memcached::refusal(got) {
        return Failure::Answer(format!("{APP} refuses what it was asked of {key}: {words}"));
    }
    Failure::Answer(format!(
        "{APP} answers \"{}\" where the value of {key} should begin or end",
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
    pub fn answer(multiget: &Multiget) -> Vec<u8> {
        let mut answer = Vec::new();
        for value in &multiget.values {
            answer.extend(memcached::head(value));
            let mut bytes = vec![0; value.bytes as usize];
            pattern::fill(value.seed(), 0, &mut bytes);
            answer.extend(bytes);
            answer.extend(memcached::LINE_END);
        }
        answer.extend(&memcached::TAIL[memcached::LINE_END.len()..]);
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
