//! What must hold for any bytes of a client of HTTP/3.

use h3::proto::frame::Frame;

use super::{fields, message};
use crate::http::{Limits, parse_request};

/// Frames as h3 decodes them; a section of fields that is sent twice over is ambiguous as soon as
/// it has a pseudo-header field.
pub(crate) fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(frame) = Frame::decode(&mut rest) {
        if let Frame::Headers(section) = frame {
            let alone = fields::is_ambiguous(&section);
            let twice = [&section[..], section.get(2..).unwrap_or_default()].concat();
            assert!(!alone || fields::is_ambiguous(&twice), "what follows took the doubt away");
        }
    }
    fields::is_ambiguous(bytes);
}

/// Lines `name:value`, the first one `method uri`, as a request's fields.
pub(crate) fn lines(bytes: &[u8]) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut first = lines.next().unwrap_or_default().splitn(2, |byte| *byte == b' ');
    let (method, uri) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let mut request = http::Request::builder().method(method).uri(uri);
    for line in lines {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        request =
            request.header(parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    }
    let Ok(request) = request.body(()) else { return };
    for chunked in [false, true] {
        let Ok(head) = message::as_lines(&request, chunked) else { continue };
        let Ok(parsed) = parse_request(&head, &Limits::default()) else { continue };
        assert_eq!(parsed.method, request.method().as_str());
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let path = if path.is_empty() { "/" } else { path };
        assert_eq!([parsed.target.path, parsed.target.query].concat(), path);
        for name in ["connection", "upgrade", "keep-alive"] {
            assert_eq!(parsed.headers.all(name).count(), 0, "{name}");
        }
        assert_eq!(parsed.headers.all("host").count(), 1);
    }
}
