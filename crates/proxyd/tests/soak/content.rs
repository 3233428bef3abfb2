//! What objects are made of: every 16 bytes say of which version of which object they are, and
//! where in it. A byte that is lost, doubled, or another client's is therefore noticed, and named.

use std::fmt;

use crate::random::mix;

/// Bytes that say what they are.
const WORD: usize = 16;
/// This number of bytes, from anywhere in an object, has a whole word in it.
pub const TELLING: usize = 2 * WORD - 1;
/// In every word, to tell it from chance.
const MARK: u16 = 0x4e54;
/// Sizes around those at which daemons change their ways, mostly small.
const SIZES: [usize; 14] = [
    40, 200, 1_000, 1_024, 4_096, 16_383, 16_384, 16_385, 40_000, 65_536, 65_600, 100_003, 300_000,
    1_100_000,
];

/// A version of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Object {
    pub key: u16,
    pub version: u32,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} of {}", self.version, path(self.key))
    }
}

/// Where the proxy has it.
pub fn path(key: u16) -> String {
    // In folders of several levels, as a listing has to walk them.
    format!("/soak/{}/k{key}", key % 3)
}

impl Object {
    fn own(self) -> u64 {
        mix(u64::from(self.key) << 32 | u64::from(self.version))
    }

    /// How many bytes this version has.
    pub fn size(self) -> usize {
        SIZES[(self.own() % SIZES.len() as u64) as usize]
    }

    fn word(self, index: u64) -> [u8; WORD] {
        let name = u64::from(self.key) | u64::from(self.version) << 16 | u64::from(MARK) << 48;
        let mut word = [0; WORD];
        word[..8].copy_from_slice(&name.to_le_bytes());
        word[8..].copy_from_slice(&(index ^ self.own()).to_le_bytes());
        word
    }

    /// The word that these bytes begin with, and its place in its object.
    fn of_word(bytes: &[u8]) -> Option<(Object, u64)> {
        let name = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let place = u64::from_le_bytes(bytes.get(8..WORD)?.try_into().ok()?);
        let object = Object { key: name as u16, version: (name >> 16) as u32 };
        let index = place ^ object.own();
        ((name >> 48) as u16 == MARK && index < 1 << 32).then_some((object, index))
    }

    /// The bytes from `offset` on.
    pub fn fill(self, offset: usize, out: &mut [u8]) {
        let (mut at, mut index) = (0, (offset / WORD) as u64);
        let mut skip = offset % WORD;
        while at < out.len() {
            let word = self.word(index);
            let take = (WORD - skip).min(out.len() - at);
            out[at..at + take].copy_from_slice(&word[skip..skip + take]);
            (at, index, skip) = (at + take, index + 1, 0);
        }
    }

    /// All of it.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.size()];
        self.fill(0, &mut bytes);
        bytes
    }

    /// What the first bytes of a body say that they are, if they come from `offset`; they need at
    /// least [`TELLING`] bytes for that.
    pub fn told_by(offset: usize, body: &[u8]) -> Option<Object> {
        let skip = (WORD - offset % WORD) % WORD;
        let (object, index) = Object::of_word(body.get(skip..)?)?;
        (index == ((offset + skip) / WORD) as u64).then_some(object)
    }

    /// Whether these are its bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// Which byte is the first that is wrong, and whose it is instead.
    pub fn check(self, offset: usize, found: &[u8], scratch: &mut Vec<u8>) -> Result<(), String> {
        scratch.resize(found.len(), 0);
        self.fill(offset, scratch);
        let Some(at) = (0..found.len()).find(|at| found[*at] != scratch[*at]) else {
            return Ok(());
        };
        let whose = whose(found, at);
        Err(format!("byte {} of {self} is wrong: there {whose}", offset + at))
    }
}

/// What the bytes around a place are.
pub fn whose(found: &[u8], at: usize) -> String {
    (at.saturating_sub(WORD - 1)..found.len())
        .take(4 * WORD)
        .find_map(|start| {
            let (object, index) = Object::of_word(&found[start..])?;
            Some(format!("begins byte {} of {object}", index * WORD as u64))
        })
        .unwrap_or_else(|| {
            let some = &found[at..found.len().min(at + 32)];
            format!("are bytes of no object: {}", some.escape_ascii())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Object = Object { key: 7, version: 300 };
    const OTHER: Object = Object { key: 9, version: 2 };

    fn large(object: Object) -> Vec<u8> {
        let mut bytes = vec![0; 100_000];
        object.fill(0, &mut bytes);
        bytes
    }

    fn check(object: Object, offset: usize, found: &[u8]) -> Result<(), String> {
        object.check(offset, found, &mut Vec::new())
    }

    #[test]
    fn any_part_is_known_by_its_place() {
        let all = large(ONE);
        for offset in [0, 1, 15, 16, 17, 50_003] {
            for len in [0, 1, 16, 31, 4_000] {
                assert_eq!(check(ONE, offset, &all[offset..offset + len]), Ok(()));
            }
            assert_eq!(Object::told_by(offset, &all[offset..offset + TELLING]), Some(ONE));
            assert_eq!(Object::told_by(offset + WORD, &all[offset..][..TELLING]), None);
        }
        assert_eq!(ONE.bytes(), all[..ONE.size()]);
    }

    #[test]
    fn a_byte_of_another_body_is_noticed_and_named() {
        let mut mixed = large(ONE);
        mixed[40_000..].copy_from_slice(&large(OTHER)[40_000..]);
        let why = check(ONE, 0, &mixed).unwrap_err();
        assert!(why.contains("byte 40000 of version 300 of /soak/1/k7"), "{why}");
        assert!(why.ends_with("begins byte 40000 of version 2 of /soak/0/k9"), "{why}");
        // A splice that was cut: bytes from the middle of one word in the middle of another.
        let mut mixed = large(ONE);
        mixed[40_005..40_009].copy_from_slice(&large(OTHER)[10_005..10_009]);
        assert!(check(ONE, 0, &mixed).is_err());
    }

    #[test]
    fn a_lost_or_doubled_byte_is_noticed() {
        let mut lost = large(ONE);
        lost.remove(12_345);
        assert!(check(ONE, 0, &lost).unwrap_err().contains("byte 123"));
        let mut doubled = large(ONE);
        doubled.insert(12_345, doubled[12_345]);
        assert!(check(ONE, 0, &doubled).unwrap_err().contains("of version 300 of /soak/1/k7"));
        let mut flipped = large(ONE);
        flipped[99_999] ^= 1;
        let why = check(ONE, 0, &flipped).unwrap_err();
        assert!(why.contains("byte 99999 of") && why.contains("no object"), "{why}");
    }

    #[test]
    fn a_body_that_belongs_to_nobody_says_what_it_has() {
        assert!(whose(b"HTTP/1.1 200 OK\r\n", 0).ends_with("HTTP/1.1 200 OK\\r\\n"));
        assert_eq!(Object::told_by(0, &[0; TELLING]), None);
    }
}
