//! Requests that h3 would understand in one of two ways: it takes the last of several
//! pseudo-header fields, another program the first.
//!
//! h3 decodes a field section and keeps one value of each; what was sent can only be seen before.
//! It announces no dynamic table, so that every line stands for itself (RFC 9204, 4.5).

/// The names of a request's pseudo-header fields, plain and by the Huffman code of RFC 7541, B.
const NAMES: [(&[u8], &[u8]); 4] = [
    (b":authority", b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f"),
    (b":method", b"\xb9\x49\x53\x39\xe4"),
    (b":path", b"\xb9\x58\xd3\x3f"),
    (b":scheme", b"\xb8\x82\x4e\x5a\x4b"),
];

/// Whether a section of fields has a pseudo-header field twice, or behind another field, both of
/// which RFC 9114, 4.3, forbids. What is no section is left to who decodes it.
pub(super) fn is_ambiguous(section: &[u8]) -> bool {
    let mut reader = Reader(section);
    let mut seen = [false; NAMES.len()];
    let mut plain = false;
    // Required insert count, and delta base.
    if reader.number(8).is_none() || reader.number(7).is_none() {
        return false;
    }
    while let Some(name) = reader.line() {
        match name {
            Some(which) if plain || std::mem::replace(&mut seen[which], true) => return true,
            Some(_) => {}
            None => plain = true,
        }
    }
    false
}

/// Reads the lines of a section.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next line: which of [`NAMES`] it has, or that it has another; `None` at the end.
    fn line(&mut self) -> Option<Option<usize>> {
        let first = *self.0.first()?;
        if first & 0x80 != 0 {
            // Indexed.
            let index = self.number(6)?;
            return Some(named(first & 0x40 != 0, index));
        }
        if first & 0x40 != 0 {
            // A literal value, with the name by index.
            let index = self.number(4)?;
            self.text(7)?;
            return Some(named(first & 0x10 != 0, index));
        }
        if first & 0x20 != 0 {
            // Both literal.
            let (coded, name) = self.text(3)?;
            self.text(7)?;
            let is =
                |(plain, huffman): &(&[u8], &[u8])| name == if coded { *huffman } else { *plain };
            return Some(NAMES.iter().position(is));
        }
        // By an entry behind the base: there is no dynamic table.
        None
    }

    /// A number with a prefix of `bits` bits (RFC 7541, 5.1).
    fn number(&mut self, bits: u32) -> Option<u64> {
        let most = (1_u64 << bits) - 1;
        let mut value = u64::from(self.byte()?) & most;
        if value < most {
            return Some(value);
        }
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A string whose length has a prefix of `bits` bits, the bit before which says whether it is
    /// in the Huffman code.
    fn text(&mut self, bits: u32) -> Option<(bool, &'a [u8])> {
        let coded = self.0.first()? >> bits & 1 == 1;
        let len = usize::try_from(self.number(bits)?).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some((coded, text))
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }
}

/// Which of [`NAMES`] an entry of the static table has (RFC 9204, A).
fn named(fixed: bool, index: u64) -> Option<usize> {
    match index {
        _ if !fixed => None,
        0 => Some(0),
        15..=21 => Some(1),
        1 => Some(2),
        22 | 23 => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section of these lines.
    fn section(lines: &[&[u8]]) -> Vec<u8> {
        [&[&b"\0\0"[..]], lines].concat().concat()
    }

    const GET: &[u8] = b"\xd1";
    const HTTPS: &[u8] = b"\xd7";
    const SLASH: &[u8] = b"\xc1";
    /// `:path` by name, and `/b`.
    const PATH_B: &[u8] = b"\x51\x02/b";
    /// `:path: /b`, all in letters.
    const PATH_LITERAL: &[u8] = b"\x25:path\x02/b";
    /// The same with the name in the Huffman code.
    const PATH_HUFFMAN: &[u8] = b"\x2c\xb9\x58\xd3\x3f\x02/b";
    const AUTHORITY: &[u8] = b"\x50\x01h";
    const ACCEPT: &[u8] = b"\xdd";
    const X: &[u8] = b"\x21x\x01y";

    #[test]
    fn a_request_says_everything_once_and_first() {
        assert!(!is_ambiguous(&section(&[GET, HTTPS, AUTHORITY, SLASH, ACCEPT, X])));
        assert!(!is_ambiguous(&section(&[PATH_HUFFMAN, GET, HTTPS, AUTHORITY])));
        for other in [SLASH, PATH_B, PATH_LITERAL, PATH_HUFFMAN] {
            assert!(is_ambiguous(&section(&[GET, HTTPS, AUTHORITY, SLASH, other])), "{other:x?}");
            assert!(is_ambiguous(&section(&[GET, HTTPS, AUTHORITY, X, other])), "{other:x?}");
        }
        assert!(is_ambiguous(&section(&[GET, b"\xd4", SLASH])), "GET and POST");
        assert!(is_ambiguous(&section(&[AUTHORITY, AUTHORITY])));
        assert!(is_ambiguous(&section(&[HTTPS, b"\xd6"])), "two schemes");
    }

    #[test]
    fn what_is_cut_off_is_no_reason_to_panic() {
        let whole = section(&[GET, HTTPS, AUTHORITY, PATH_HUFFMAN, PATH_LITERAL, X]);
        for len in 0..whole.len() {
            is_ambiguous(&whole[..len]);
        }
        assert!(!is_ambiguous(b"\0\0\x3f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"));
    }
}
