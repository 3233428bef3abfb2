//! Bytes of a client, whole and cut in two: the same request, the same body, the same end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use storaged::http::{BadChunk, Framing, Parsed, parse};
use storaged::key::Key;

/// The content of a body, how many bytes it took, and whether its end was seen.
fn read(framing: &mut Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), BadChunk> {
    let (mut content, mut taken) = (Vec::new(), 0);
    for piece in pieces {
        let mut at = 0;
        while at < piece.len() && !framing.is_done() {
            let part = framing.next(&piece[at..])?;
            assert!(part.taken > 0);
            content.extend_from_slice(part.data);
            at += part.taken;
        }
        taken += at;
    }
    Ok((content, taken, framing.is_done()))
}

fuzz_target!(|input: &[u8]| {
    let Some((cut, input)) = input.split_first() else { return };
    let Ok(Parsed::Whole(request, head_bytes)) = parse(input) else { return };
    // No start of a whole head is a request, or an error.
    for end in 0..head_bytes {
        assert_eq!(parse(&input[..end]), Ok(Parsed::Partial));
    }
    if let Ok(key) = Key::from_target(&request.path) {
        assert!(!key.path().split('/').any(|name| matches!(name, "" | "." | "..")));
    }
    let body = &input[head_bytes..];
    let (first, second) = body.split_at(usize::from(*cut).min(body.len()));
    let whole = read(&mut request.framing.clone(), &[body]);
    assert_eq!(whole, read(&mut request.framing.clone(), &[first, second]));
});
