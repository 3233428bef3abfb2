//! memcached's text protocol.

use super::{Protocol, Value, first_line, words};

pub struct Memcached;

impl Protocol for Memcached {
    fn multiget(&self, values: &[Value]) -> Vec<u8> {
        let keys: Vec<String> = values.iter().map(Value::key).collect();
        format!("get {}\r\n", keys.join(" ")).into_bytes()
    }

    fn head(&self, value: &Value) -> Vec<u8> {
        format!("VALUE {} 0 {}\r\n", value.key(), value.bytes).into_bytes()
    }

    fn line_end(&self) -> &'static [u8] {
        b"\r\n"
    }

    fn tail(&self) -> &'static [u8] {
        b"\r\nEND\r\n"
    }

    fn refusal(&self, answer: &[u8]) -> Option<String> {
        let line = first_line(answer);
        let is_one = [&b"SERVER_ERROR"[..], b"CLIENT_ERROR", b"ERROR"];
        is_one.iter().any(|word| line.starts_with(word)).then(|| words(line))
    }

    fn set(&self, value: &Value) -> (Vec<u8>, &'static [u8]) {
        (format!("set {} 0 0 {}\r\n", value.key(), value.bytes).into_bytes(), b"\r\n")
    }

    fn stored(&self) -> &'static [u8] {
        b"STORED\r\n"
    }
}
