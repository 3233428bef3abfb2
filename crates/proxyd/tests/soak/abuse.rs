//! Clients that do not behave. What they do to others shows with the others.

use std::time::{Duration, Instant};

use crate::content::path;
use crate::random::Random;
use crate::readers::{Asked, FAST, Pace};
use crate::storm::{Shared, Trouble};
use crate::wire::Wire;

/// A head that drips has to be cut off long before.
const LORIS_END: Duration = Duration::from_secs(30);

fn leave(wire: Wire, random: &mut Random) {
    if random.once_in(2) {
        wire.reset();
    }
}

fn any_key(shared: &Shared, random: &mut Random) -> u16 {
    random.below(usize::from(shared.model.keys())) as u16
}

/// Reads a part of an answer, and goes.
pub fn gone_in_an_answer(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    // Others behind it, whose answers will not be read either.
    for _ in 0..random.between(0, 2) {
        wire.send(Asked::any(shared, random).request().as_bytes())?;
    }
    if random.once_in(3) {
        leave(wire, random);
        return Ok(());
    }
    drop(wire);
    let mut wire = shared.connect(random)?;
    let asked = Asked::whole(shared, any_key(shared, random));
    wire.send(asked.request().as_bytes())?;
    let enough = *random.pick(&[0, 1_000, 20_000, 70_000, 500_000]);
    asked.answer(shared, &mut wire, &Pace { piece: 16_384, enough, ..FAST })?;
    leave(wire, random);
    Ok(())
}

/// Sends a part of a request, and goes.
pub fn gone_in_a_request(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    let key = any_key(shared, random);
    let request = if random.once_in(2) {
        Asked::whole(shared, key).request().into_bytes()
    } else {
        let object = shared.model.never(key);
        let head = format!(
            "PUT {} HTTP/1.1\r\nHost: soak\r\nContent-Length: {}\r\n\r\n",
            path(key),
            object.size()
        );
        [head.into_bytes(), object.bytes()].concat()
    };
    // Never all of it.
    let part = random.below(request.len());
    wire.send(&request[..part])?;
    if random.once_in(4) {
        shared.pause(Duration::from_millis(50));
    }
    leave(wire, random);
    Ok(())
}

/// Asks, takes nothing for a while, and goes.
pub fn deaf(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    wire.narrow();
    for _ in 0..random.between(1, 12) {
        let asked = Asked::whole(shared, any_key(shared, random));
        if wire.send(asked.request().as_bytes()).is_err() {
            break;
        }
    }
    shared.pause(Duration::from_millis(random.between(10, 1_500) as u64));
    leave(wire, random);
    Ok(())
}

/// A head that drips in: it is cut off.
pub fn slow_loris(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    let begun = Instant::now();
    wire.send(format!("GET {} HTTP/1.1\r\nHost: s\r\n", path(0)).as_bytes())?;
    let pause = Duration::from_millis(random.between(10, 200) as u64);
    let mut number = 0_u32;
    while wire.send(format!("a{number}: b\r\n").as_bytes()).is_ok() {
        number += 1;
        shared.pause(pause);
        if shared.is_over() {
            return Ok(());
        }
        if begun.elapsed() > LORIS_END {
            return Err(Trouble::Wrong(format!("a head drips in for {LORIS_END:?} already")));
        }
    }
    refused(wire)
}

/// What no proxy may pass on, or answer with anything but an error.
const BAD: [&[u8]; 14] = [
    b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    b"GET / HTTP/1.1\nHost: a\n\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
    b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
    b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
    b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
];

/// Bytes that are no request, perhaps behind some that are, and with one behind them: that must
/// not be answered.
pub fn bad_bytes(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    if random.once_in(3) {
        let asked = Asked::any(shared, random);
        wire.send(asked.request().as_bytes())?;
        if !asked.answer(shared, &mut wire, &FAST)? {
            return Ok(());
        }
    }
    let mut bytes = if random.once_in(3) {
        let mut noise: Vec<u8> = (0..random.between(1, 300)).map(|_| random.next() as u8).collect();
        noise.splice(0..0, *b"\x00");
        noise.extend_from_slice(b"\r\n\r\n");
        noise
    } else {
        random.pick(&BAD).to_vec()
    };
    bytes.extend_from_slice(Asked::whole(shared, 0).request().as_bytes());
    if wire.send(&bytes).is_err() {
        return Ok(());
    }
    refused(wire)
}

/// One answer at the most, an error, and the end.
fn refused(wire: Wire) -> Result<(), Trouble> {
    let rest = wire.rest()?;
    let begins = |at: &usize| rest[*at..].starts_with(b"HTTP/1.1 ");
    let heads = (0..rest.len()).filter(begins).count();
    let is_error = rest.is_empty() || matches!(rest.get(9), Some(b'4' | b'5'));
    match heads == usize::from(!rest.is_empty()) && is_error {
        true => Ok(()),
        false => Err(Trouble::Wrong(format!(
            "refused once, then the end, was due; there is: {}",
            rest[..rest.len().min(400)].escape_ascii()
        ))),
    }
}
