//! What the parser makes of hostile requests; proxyd asks the same over sockets.

mod hostile;

use httpd::{Body, Limits, Scanner, parse_request};

/// Whether these bytes begin with a whole request that can be read in one way.
fn is_taken(bytes: &[u8]) -> bool {
    let limits = Limits::default();
    let Ok(Some(end)) = Scanner::default().find_end(bytes, &limits) else { return false };
    let Ok(request) = parse_request(&bytes[..end], &limits) else { return false };
    let (mut body, mut rest) = (Body::new(request.framing), &bytes[end..]);
    while !body.is_done() {
        match body.next(rest) {
            Ok(step) if step.taken > 0 => rest = &rest[step.taken..],
            _ => return false,
        }
    }
    // What it answers itself, a daemon says of the method.
    !matches!(request.method, "CONNECT" | "TRACE")
}

#[test]
fn what_has_two_readings_is_refused() {
    let mut taken = 0;
    for case in hostile::all() {
        assert!(!case.refused || !is_taken(&case.bytes), "{}", case.name);
        taken += usize::from(is_taken(&case.bytes));
    }
    assert!(taken >= 20, "good requests are understood: {taken}");
}
