//! Answers of the proxy itself.

use std::io::Write;
use std::time::SystemTime;

/// The words that stand behind a status.
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// Appends a whole answer of a line of text, after which the connection is closed. `with_body` is
/// false for HEAD. `allow` is for a 405, and for OPTIONS: the methods that would be passed on.
pub fn write_reply(status: u16, text: &str, allow: &str, with_body: bool, out: &mut Vec<u8>) {
    let allow =
        if matches!(status, 200 | 405) { format!("Allow: {allow}\r\n") } else { String::new() };
    let _ = write!(
        out,
        "HTTP/1.1 {status} {}\r\nDate: {}\r\nContent-Type: text/plain\r\n{allow}\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        reason(status),
        httpdate::fmt_http_date(SystemTime::now()),
        text.len() + 1,
    );
    if with_body {
        let _ = writeln!(out, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Framing, Limits, Method, parse_response};
    use super::*;

    #[test]
    fn a_reply_is_a_response_of_its_declared_length() {
        for (status, with_body) in [(502, true), (405, false)] {
            let mut out = Vec::new();
            write_reply(status, "why", "GET", with_body, &mut out);
            let head = out.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            let method = if with_body { Method::Safe } else { Method::Head };
            let response = parse_response(&out[..head], method, &Limits::default()).unwrap();
            assert_eq!((response.status, response.reason), (status, reason(status)));
            assert_eq!(response.declared, Framing::Length(4));
            assert!(!response.keep_alive);
            assert_eq!(&out[head..], if with_body { &b"why\n"[..] } else { b"" });
            assert_eq!(response.headers.all("allow").count(), usize::from(status == 405));
        }
    }
}
