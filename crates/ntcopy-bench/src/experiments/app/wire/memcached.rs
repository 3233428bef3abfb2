//! memcached's text protocol.

use super::{Value, first_line, words};

pub const LINE_END: &[u8] = b"\r\n";
/// What stands after the bytes of the last value, or of the only one.
pub const TAIL: &[u8] = b"\r\nEND\r\n";
/// The answer to a value that is to be stored.
pub const STORED: &[u8] = b"STORED\r\n";

pub fn get(value: &Value) -> Vec<u8> {
    multiget(&[*value])
}

pub fn multiget(values: &[Value]) -> Vec<u8> {
    let keys: Vec<String> = values.iter().map(Value::key).collect();
    format!("get {}\r\n", keys.join(" ")).into_bytes()
}

/// What stands before a value's bytes.
pub fn head(value: &Value) -> Vec<u8> {
    format!("VALUE {} 0 {}\r\n", value.key(), value.bytes).into_bytes()
}

/// The program's own words where an answer refuses what was asked.
pub fn refusal(answer: &[u8]) -> Option<String> {
    let line = first_line(answer);
    let is_one = [&b"SERVER_ERROR"[..], b"CLIENT_ERROR", b"ERROR"];
    is_one.iter().any(|word| line.starts_with(word)).then(|| words(line))
}

/// What goes before a value that is to be stored; [`LINE_END`] goes after it.
pub fn set(value: &Value) -> Vec<u8> {
    format!("set {} 0 0 {}\r\n", value.key(), value.bytes).into_bytes()
}
