//! What objects are made of, and which version of each may be seen.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that say what they are.
const WORD: usize = 16;
/// Versions from here on are never sent whole.
pub const TORN: u32 = 1 << 31;
/// Sizes around those at which daemons change their ways, mostly small.
const SIZES: [usize; 14] = [
    40, 200, 1_000, 1_024, 4_096, 16_383, 16_384, 16_385, 40_000, 65_536, 65_600, 100_003, 300_000,
    1_100_000,
];

/// In folders of several levels, as a listing has to walk them.
pub fn path(key: u32) -> String {
    format!("/soak/{}/k{key}", key % 3)
}

/// All bytes of a version of an object.
pub fn content(key: u32, version: u32) -> Vec<u8> {
    let size = SIZES[(key as usize * 5 + version as usize) % SIZES.len()];
    let word = |index: usize| {
        let (key, version) = (key.to_le_bytes(), version.to_le_bytes());
        [&key[..], &version, &(index as u64).to_le_bytes()].concat()
    };
    let words = (0..size.div_ceil(WORD)).flat_map(word);
    words.take(size).collect()
}

/// The version of that object that these bytes are all of; else where they begin to be another's.
pub fn version_of(key: u32, found: &[u8]) -> Result<u32, String> {
    let said = found.get(4..8).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes);
    let version = said.unwrap_or_default();
    let right = content(key, version);
    let wrong = (0..right.len().max(found.len())).find(|at| right.get(*at) != found.get(*at));
    let named =
        || format!("byte {} of version {version} of {} is wrong", wrong.unwrap(), path(key));
    if wrong.is_none() { Ok(version) } else { Err(named()) }
}

/// What is there after so many changes of a key: nothing at first, and each fifth deletes it.
pub fn state(changes: u32) -> Option<u32> {
    (!changes.is_multiple_of(5)).then_some(changes)
}

/// Of every key there was, how many changes were asked for, and how many of them acknowledged. A
/// change that was not acknowledged may or may not be done, now or later: its key is then left
/// alone, and its writer has another.
#[derive(Debug)]
pub struct Model(Mutex<Vec<(u32, u32)>>);

impl Model {
    /// With a key that nobody writes to.
    pub fn new() -> Model {
        Model(Mutex::new(vec![(0, 0)]))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u32, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn new_key(&self) -> u32 {
        let mut keys = self.lock();
        keys.push((0, 0));
        keys.len() as u32 - 1
    }

    /// Any key that there was.
    pub fn any_key(&self, random: &mut fastrand::Rng) -> u32 {
        random.u32(..self.lock().len() as u32)
    }

    /// A change is about to be asked for, the last of so many.
    pub fn ask(&self, key: u32) -> u32 {
        let (asked, _) = &mut self.lock()[key as usize];
        *asked += 1;
        *asked
    }

    /// All of them are acknowledged.
    pub fn acknowledge(&self, key: u32) {
        let (asked, acknowledged) = &mut self.lock()[key as usize];
        *acknowledged = *asked;
    }

    /// Changes that a read which begins now may not fall behind.
    pub fn before(&self, key: u32) -> u32 {
        self.lock()[key as usize].1
    }

    /// Whether a read that began then may find this version, or nothing.
    pub fn check(&self, key: u32, before: u32, found: Option<u32>) -> Result<(), String> {
        let (asked, _) = self.lock()[key as usize];
        if (before..=asked).any(|changes| state(changes) == found) {
            return Ok(());
        }
        let what = if found >= Some(TORN) { "torn" } else { "lost" };
        let last = state(before);
        Err(format!("{what}: {found:?} of {}, where {last:?} was acknowledged", path(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_lost_doubled_or_anothers_is_noticed() {
        let right = content(7, 4);
        assert_eq!(version_of(7, &right), Ok(4));
        assert!(version_of(8, &right).is_err());
        let at = right.len() / 2;
        let changes: [fn(&mut Vec<u8>, usize); 4] = [
            |bytes, at| _ = bytes.remove(at),
            |bytes, at| bytes.insert(at, bytes[at]),
            |bytes, at| bytes[at] ^= 1,
            |bytes, at| bytes.truncate(at),
        ];
        for change in changes {
            let mut wrong = right.clone();
            change(&mut wrong, at);
            assert!(version_of(7, &wrong).is_err());
        }
    }

    #[test]
    fn what_was_acknowledged_may_not_be_lost_and_what_was_not_may_be_there() {
        let model = Model::new();
        let may = |before, found| model.check(0, before, found).is_ok();
        model.ask(0);
        assert!(may(0, None) && may(0, Some(1)) && !may(0, Some(2)));
        model.acknowledge(0);
        assert!(may(0, None), "that read began before");
        assert!(!may(model.before(0), None) && may(model.before(0), Some(1)));
        assert!(model.check(0, 1, Some(TORN)).unwrap_err().starts_with("torn"));
    }
}
