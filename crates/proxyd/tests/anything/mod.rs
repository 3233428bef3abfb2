//! What must hold for any bytes. The fuzz target calls it, and so does an ordinary test.

use std::net::{IpAddr, Ipv4Addr};

use httpd::{Chunks, Event, Framing, HEADERS, Headers, Scanner, parse_request};

use proxyd::forward::{Facts, write_request, write_response};
use proxyd::request::Method;
use proxyd::response::parse_response;

/// Lines that the proxy adds to a head, at the most. With them it may be longer than what is read.
const ADDED: usize = 8;

const FACTS: Facts =
    Facts { client: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), scheme: "http", reader: "splice" };

/// Takes the bytes for a client's, for a backend's and for a chunked body, and panics if the other
/// side could see something else than the proxy did, or if pieces are taken for something else than
/// the whole.
pub fn anything(bytes: &[u8]) {
    let end = Scanner::default().find_end(bytes);
    let mut scanner = Scanner::default();
    let in_pieces = (0..=bytes.len())
        .map(|len| scanner.find_end(&bytes[..len]))
        .find(|found| !matches!(found, Ok(None)))
        .unwrap_or(Ok(None));
    assert_eq!(end, in_pieces, "the head's end depends on how it comes");
    in_steps(bytes);
    if let Ok(Some(end)) = end {
        let (head, body) = bytes.split_at(end);
        passed_on(head);
        answered(head);
        in_steps(body);
    }
}

fn is_long(headers: &Headers<'_>) -> bool {
    headers.0.len() + ADDED > HEADERS
}

/// What the backend gets of a request is the request that was understood.
fn passed_on(head: &[u8]) {
    let Ok(request) = parse_request(head) else { return };
    let mut out = Vec::new();
    if Method::of(request.method).is_err() || is_long(&request.headers) {
        return;
    }
    write_request(&request, &FACTS, &mut out);
    let end = Scanner::default().find_end(&out).expect("it is unambiguous");
    assert_eq!(end, Some(out.len()), "it is one head");
    let again = parse_request(&out).expect("it is accepted");
    assert_eq!((again.method, again.framing), (request.method, request.framing));
    assert_eq!(again.target.path, request.target.path);
    assert_eq!(again.target.query, request.target.query);
    assert_eq!(again.host, Some(request.host.unwrap_or("localhost")));
    let framing_lines = again.headers.all("content-length").count()
        + again.headers.all("transfer-encoding").count();
    assert_eq!(framing_lines, usize::from(request.framing != Framing::None));
    let own = |name: &str| again.headers.all(name).count();
    assert_eq!((own("host"), own("ntcopy-reader"), own("x-forwarded-for")), (1, 1, 1));
    assert_eq!((own("connection"), own("upgrade"), own("te")), (0, 0, 0));
}

/// What the client gets of a response is the response that was understood.
fn answered(head: &[u8]) {
    for method in [Method::Safe, Method::Head] {
        let Ok(response) = parse_response(head, method) else { continue };
        if is_long(&response.headers) {
            continue;
        }
        let mut out = Vec::new();
        write_response(&response, 1, true, &mut out);
        assert_eq!(Scanner::default().find_end(&out), Ok(Some(out.len())));
        let again = parse_response(&out, method).expect("it is accepted");
        assert_eq!((again.status, again.framing), (response.status, response.framing));
    }
}

/// A chunked body is the same however it comes: also cut where its own bytes say.
fn in_steps(body: &[u8]) {
    let whole = decode(body, || body.len().max(1));
    for step in [1, 2, 7] {
        assert_eq!(decode(body, || step), whole, "in steps of {step}");
    }
    let mut cuts = body.iter().rev().cycle().map(|cut| usize::from(*cut % 64).max(1));
    assert_eq!(decode(body, || cuts.next().unwrap_or(1)), whole, "cut anywhere");
}

/// The payload and the bytes that the body took; `None` if it is refused or incomplete. `step` is
/// the length of the next piece that comes.
pub fn decode(body: &[u8], mut step: impl FnMut() -> usize) -> Option<(Vec<u8>, usize)> {
    let (mut chunks, mut payload, mut at, mut seen) = (Chunks::default(), Vec::new(), 0, 0);
    loop {
        let (used, event) = chunks.next(&body[at..seen]).ok()?;
        if let Event::Data(bytes) = event {
            payload.extend_from_slice(&body[at..at + bytes]);
        }
        at += used;
        match event {
            Event::End => return Some((payload, at)),
            Event::More if seen == body.len() => return None,
            Event::More => seen = (seen + step()).min(body.len()),
            _ => {}
        }
    }
}
