//! HTTP/1.1: a value is a resource, and a multiget is its keys' requests, pipelined.

use std::fmt::Write as _;

use super::{Head, Protocol, Value, first_line, words};

pub struct Http;

/// A value's path in a URL, and below nginx's root.
pub fn path(value: &Value) -> String {
    format!("/o/{}", value.key())
}

impl Protocol for Http {
    fn multiget(&self, values: &[Value]) -> Vec<u8> {
        let mut text = String::new();
        for value in values {
            // Writing to a string cannot fail.
            let _ = write!(text, "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path(value));
        }
        text.into_bytes()
    }

    fn head(&self, value: &Value) -> Head {
        Head::Response { bytes: value.bytes }
    }

    fn line_end(&self) -> &'static [u8] {
        b""
    }

    fn tail(&self) -> &'static [u8] {
        b""
    }

    fn refusal(&self, answer: &[u8]) -> Option<String> {
        let line = words(first_line(answer));
        let status = line.strip_prefix("HTTP/1.1 ")?;
        (!status.starts_with('2')).then(|| status.to_owned())
    }
}
