//! What objects are made of, and which version of each may be seen.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keys; each has one writer.
pub const KEYS: u64 = 12;
/// Bytes that say what they are.
const WORD: usize = 16;
/// Sizes around those at which daemons change their ways, mostly small.
const SIZES: [usize; 14] = [
    40, 200, 1_000, 1_024, 4_096, 16_383, 16_384, 16_385, 40_000, 65_536, 65_600, 100_003, 300_000,
    1_100_000,
];
/// Nothing that the proxy still has of a client that is gone gets to a backend after this time: its
/// time-outs for both of its tries together are shorter.
const FORGOTTEN: Duration = Duration::from_secs(20);

/// Marsaglia's xorshift: enough to pick who does what.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(mix(seed) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn mix(of: u64) -> u64 {
    let of = (of ^ of >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (of ^ of >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ of >> 32
}

pub fn path(key: u64) -> String {
    // In folders of several levels, as a listing has to walk them.
    format!("/soak/{}/k{key}", key % 3)
}

fn word(key: u64, version: u64, index: u64) -> [u8; WORD] {
    let mut word = *b"NTco............";
    word[4..6].copy_from_slice(&(key as u16).to_le_bytes());
    word[6..8].copy_from_slice(&(version as u16).to_le_bytes());
    word[8..].copy_from_slice(&(index ^ mix(key << 32 | version)).to_le_bytes());
    word
}

/// All bytes of a version of an object.
pub fn content(key: u64, version: u64) -> Vec<u8> {
    let size = SIZES[(mix(key << 32 | version) % SIZES.len() as u64) as usize];
    let words = (0..size.div_ceil(WORD) as u64).flat_map(|index| word(key, version, index));
    words.take(size).collect()
}

/// The version of that object that these bytes are all of; else where they begin to be another's.
pub fn version_of(key: u64, found: &[u8], known: impl Iterator<Item = u64>) -> Result<u64, String> {
    for version in known {
        if found.get(..WORD) == Some(&word(key, version, 0)[..]) {
            let right = content(key, version);
            return match (0..right.len().max(found.len()))
                .find(|at| right.get(*at) != found.get(*at))
            {
                None => Ok(version),
                Some(at) => {
                    Err(format!("byte {at} of version {version} of {} is wrong", path(key)))
                }
            };
        }
    }
    let begin = &found[..found.len().min(2 * WORD)];
    Err(format!("no version of {}: {}", path(key), begin.escape_ascii()))
}

/// A version, or that nothing is there.
pub type State = Option<u64>;

#[derive(Debug, Default)]
struct History {
    last_version: u64,
    /// What was asked for, in the order of asking; before it nothing was there.
    asked: Vec<State>,
    /// `asked` up to the last that was acknowledged.
    acknowledged: usize,
    /// Not acknowledged, and not known to be without effect.
    uncertain: Vec<(State, Instant)>,
    /// Versions that were never sent whole.
    never: HashSet<u64>,
}

/// The keys, and what is known of them.
#[derive(Debug, Default)]
pub struct Model {
    keys: [Mutex<History>; KEYS as usize],
    last_kill: Mutex<Option<Instant>>,
}

/// What was known of a key when a read began.
#[derive(Debug)]
pub struct Before {
    from: usize,
    uncertain: Vec<State>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model {
    fn of(&self, key: u64) -> MutexGuard<'_, History> {
        lock(&self.keys[key as usize])
    }

    /// A new version, which is about to be put; or one that will not be sent to its end.
    pub fn put(&self, key: u64, whole: bool) -> u64 {
        let mut history = self.of(key);
        history.last_version += 1;
        let version = history.last_version;
        if whole {
            history.asked.push(Some(version));
        } else {
            history.never.insert(version);
        }
        version
    }

    pub fn delete(&self, key: u64) {
        self.of(key).asked.push(None);
    }

    /// How the last change that was asked for ended: acknowledged, or anybody's guess.
    pub fn ended(&self, key: u64, acknowledged: bool, asked_at: Instant) {
        let last_kill = *lock(&self.last_kill);
        let mut history = self.of(key);
        if !acknowledged {
            let state = history.asked[history.asked.len() - 1];
            return history.uncertain.push((state, Instant::now()));
        }
        history.acknowledged = history.asked.len();
        // What could still happen to an older change had happened before this one was asked for,
        // if the proxy had forgotten it by then, and no backend lived that could remember it.
        let settled = |since: Instant| {
            last_kill.is_some_and(|kill| kill >= since + FORGOTTEN && kill < asked_at)
        };
        history.uncertain.retain(|(_, since)| !settled(*since));
    }

    /// The backend was killed: what it was doing is done or will not be done.
    pub fn killed(&self) {
        *lock(&self.last_kill) = Some(Instant::now());
    }

    /// Every version that could be anywhere, the newest first.
    pub fn versions(&self, key: u64) -> impl Iterator<Item = u64> + use<> {
        (1..=self.of(key).last_version).rev()
    }

    /// What a read that begins now may not fall behind.
    pub fn before(&self, key: u64) -> Before {
        let history = self.of(key);
        let uncertain = history.uncertain.iter().map(|(state, _)| *state).collect();
        Before { from: history.acknowledged, uncertain }
    }

    /// Whether a read that began then may see this.
    pub fn check(&self, key: u64, before: &Before, state: State) -> Result<(), String> {
        let history = self.of(key);
        let last = before.from.checked_sub(1).and_then(|last| history.asked[last]);
        let may = |other: &State| *other == state;
        if last == state
            || history.asked[before.from..].iter().any(may)
            || before.uncertain.iter().any(may)
        {
            return Ok(());
        }
        let torn = state.is_some_and(|version| history.never.contains(&version));
        let what = if torn { "torn" } else { "lost" };
        Err(format!("{what}: {state:?} of {}, where {last:?} was acknowledged", path(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_lost_doubled_or_anothers_is_noticed() {
        let (right, other) = (content(7, 4), content(8, 1));
        assert_eq!(version_of(7, &right, [9, 4].into_iter()), Ok(4));
        assert!(version_of(7, &right, [9].into_iter()).is_err());
        assert!(version_of(7, &other, [4].into_iter()).is_err());
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
            assert!(version_of(7, &wrong, [4].into_iter()).is_err());
        }
    }

    #[test]
    fn what_was_acknowledged_may_not_be_lost_and_what_was_not_may_be_there() {
        let (model, now) = (Model::default(), Instant::now());
        let may = |before: &Before, state| model.check(0, before, state).is_ok();
        let nothing = model.before(0);
        let first = model.put(0, true);
        assert!(may(&nothing, None) && may(&nothing, Some(first)));
        model.ended(0, true, now);
        assert!(may(&nothing, None), "that read began before");
        let before = model.before(0);
        assert!(!may(&before, None) && may(&before, Some(first)) && !may(&before, Some(9)));
        let torn = model.put(0, false);
        assert!(model.check(0, &before, Some(torn)).unwrap_err().starts_with("torn"));
        let second = model.put(0, true);
        model.ended(0, false, now);
        model.delete(0);
        model.ended(0, true, now);
        let before = model.before(0);
        assert!(may(&before, None) && may(&before, Some(second)) && !may(&before, Some(first)));
    }
}
