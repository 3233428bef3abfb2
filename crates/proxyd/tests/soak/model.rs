//! What objects are made of, and which version of each may be seen.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys at one time; each has one writer.
pub const WRITERS: usize = 12;
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

/// A version, or that nothing is there.
pub type State = Option<u32>;

/// A key's history: what was asked for, in the order of asking; before it nothing was there.
#[derive(Debug, Default)]
struct History {
    asked: Vec<State>,
    /// `asked` up to the last that was acknowledged.
    acknowledged: usize,
}

/// Every key there was, and those that are written to now, one for each writer. A change that was
/// not acknowledged may or may not be done, now or later: its key is then left alone, and its
/// writer has another.
#[derive(Debug)]
pub struct Model(Mutex<(Vec<History>, [u32; WRITERS])>);

impl Model {
    pub fn new() -> Model {
        let keys = (0..WRITERS).map(|_| History::default()).collect();
        Model(Mutex::new((keys, std::array::from_fn(|key| key as u32))))
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<History>, [u32; WRITERS])> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn key_of(&self, writer: usize) -> u32 {
        self.lock().1[writer]
    }

    /// Any key that there was.
    pub fn any_key(&self, random: &mut fastrand::Rng) -> u32 {
        random.u32(..self.lock().0.len() as u32)
    }

    /// A change is about to be asked for: from what is there to a new version, or to nothing.
    pub fn ask(&self, key: u32, deletes: bool) -> (State, State) {
        let asked = &mut self.lock().0[key as usize].asked;
        let was = asked.last().copied().flatten();
        let is = (!deletes).then_some(asked.len() as u32 + 1);
        asked.push(is);
        (was, is)
    }

    /// How that ended.
    pub fn ended(&self, writer: usize, acknowledged: bool) {
        let (keys, writers) = &mut *self.lock();
        if acknowledged {
            let history = &mut keys[writers[writer] as usize];
            history.acknowledged = history.asked.len();
        } else {
            writers[writer] = keys.len() as u32;
            keys.push(History::default());
        }
    }

    /// What a read that begins now may not fall behind.
    pub fn before(&self, key: u32) -> usize {
        self.lock().0[key as usize].acknowledged
    }

    /// Whether a read that began then may see this.
    pub fn check(&self, key: u32, before: usize, state: State) -> Result<(), String> {
        let history = &self.lock().0[key as usize];
        let last = before.checked_sub(1).and_then(|last| history.asked[last]);
        if last == state || history.asked[before..].contains(&state) {
            return Ok(());
        }
        let what = if state >= Some(TORN) { "torn" } else { "lost" };
        Err(format!("{what}: {state:?} of {}, where {last:?} was acknowledged", path(key)))
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
        let may = |before, state| model.check(0, before, state).is_ok();
        let nothing = model.before(0);
        let (_, first) = model.ask(0, false);
        assert!(may(nothing, None) && may(nothing, first));
        model.ended(0, true);
        assert!(may(nothing, None), "that read began before");
        let before = model.before(0);
        assert!(!may(before, None) && may(before, first) && !may(before, Some(9)));
        assert!(model.check(0, before, Some(TORN)).unwrap_err().starts_with("torn"));
        let (was, second) = model.ask(0, false);
        assert_eq!(was, first);
        model.ended(0, false);
        assert!(may(before, first) && may(before, second) && !may(before, None));
        assert_ne!(model.key_of(0), 0);
    }
}
