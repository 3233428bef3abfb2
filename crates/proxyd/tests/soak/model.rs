//! What may be read of each key: what was acknowledged last, or what was asked for since, or what
//! was asked for and neither acknowledged nor refused, as long as it could still happen.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::content::Object;

/// Nothing that the proxy still has of a client that is gone gets to a backend after this time: the
/// time-outs of `daemons.rs` for all of `limits.tries` together are shorter.
pub const FORGOTTEN: Duration = Duration::from_secs(20);

/// What a key may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Absent,
    Version(u32),
}

/// The keys, and what is known of them.
#[derive(Debug)]
pub struct Model {
    keys: Vec<Mutex<History>>,
    etags: Mutex<HashMap<Object, String>>,
    last_kill: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct History {
    /// Several clients write it at the same time, so the order is not known; none deletes it.
    shared: bool,
    last_version: u32,
    /// What was asked for, in the order of asking.
    asked: Vec<State>,
    /// `asked` up to the last that was acknowledged.
    acknowledged: usize,
    /// Not acknowledged, and not known to be without effect.
    uncertain: Vec<(usize, Instant)>,
    /// Versions that were never sent whole.
    never: HashSet<u32>,
}

/// A change that was asked for.
#[derive(Debug)]
pub struct Ticket {
    key: u16,
    index: usize,
    asked_at: Instant,
}

/// What was known of a key when a read began.
#[derive(Debug, Clone)]
pub struct Before {
    acknowledged: usize,
    uncertain: Vec<State>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Model {
    /// `owned` keys that have one writer each, and then `shared` keys that all write.
    pub fn new(owned: usize, shared: usize) -> Model {
        let key = |at| {
            Mutex::new(History {
                shared: at >= owned,
                last_version: 0,
                asked: Vec::new(),
                acknowledged: 0,
                uncertain: Vec::new(),
                never: HashSet::new(),
            })
        };
        Model {
            keys: (0..owned + shared).map(key).collect(),
            etags: Mutex::default(),
            last_kill: Mutex::default(),
        }
    }

    pub fn keys(&self) -> u16 {
        self.keys.len() as u16
    }

    fn of(&self, key: u16) -> MutexGuard<'_, History> {
        lock(&self.keys[usize::from(key)])
    }

    /// A new version, whose PUT is about to begin.
    pub fn put(&self, key: u16) -> (Object, Ticket) {
        let mut history = self.of(key);
        history.last_version += 1;
        let version = history.last_version;
        let ticket = history.ask(key, State::Version(version));
        (Object { key, version }, ticket)
    }

    /// A DELETE is about to begin.
    pub fn delete(&self, key: u16) -> Ticket {
        self.of(key).ask(key, State::Absent)
    }

    /// A new version that will not be sent to its end, so no client may ever see it.
    pub fn never(&self, key: u16) -> Object {
        let mut history = self.of(key);
        history.last_version += 1;
        let version = history.last_version;
        history.never.insert(version);
        Object { key, version }
    }

    /// It was acknowledged.
    pub fn acknowledged(&self, ticket: &Ticket) {
        let last_kill = *lock(&self.last_kill);
        let mut history = self.of(ticket.key);
        history.acknowledged = history.acknowledged.max(ticket.index + 1);
        // What could still happen to an older change had happened before this one was asked for,
        // if the proxy had forgotten it by then, and no backend lived that could remember it.
        let settled = |since: Instant| {
            last_kill.is_some_and(|kill| kill >= since + FORGOTTEN && kill < ticket.asked_at)
        };
        history.uncertain.retain(|(_, since)| !settled(*since));
    }

    /// It was not, and may have happened all the same, or still happen.
    pub fn uncertain(&self, ticket: &Ticket) {
        self.of(ticket.key).uncertain.push((ticket.index, Instant::now()));
    }

    /// The backend was killed: what it was doing is done or will not be done.
    pub fn killed(&self) {
        *lock(&self.last_kill) = Some(Instant::now());
    }

    /// What a read that begins now may not fall behind.
    pub fn before(&self, key: u16) -> Before {
        let history = self.of(key);
        let uncertain = history.uncertain.iter().map(|(index, _)| history.asked[*index]).collect();
        Before { acknowledged: history.acknowledged, uncertain }
    }

    /// What a read that began then may see.
    pub fn allowed(&self, key: u16, before: &Before) -> Vec<State> {
        let history = self.of(key);
        let from = if history.shared { 0 } else { before.acknowledged };
        let mut states = history.asked[from..].to_vec();
        if !history.shared {
            states.extend_from_slice(&before.uncertain);
        }
        match before.acknowledged {
            0 => states.push(State::Absent),
            at if !history.shared => states.push(history.asked[at - 1]),
            _ => {}
        }
        states
    }

    /// Whether a read that began then may see this.
    ///
    /// # Errors
    ///
    /// A sentence with what it may see.
    pub fn check(&self, key: u16, before: &Before, state: State) -> Result<(), String> {
        let states = self.allowed(key, before);
        if states.contains(&state) {
            return Ok(());
        }
        let never = matches!(state, State::Version(version)
            if self.of(key).never.contains(&version));
        let some = &states[states.len().saturating_sub(6)..];
        Err(match (state, never) {
            (_, true) => format!("torn: {state:?} was never sent whole"),
            (State::Absent, _) => format!("lost: nothing there, and it must be one of {some:?}"),
            _ => format!("lost: {state:?} there, and it must be one of {some:?}"),
        })
    }

    /// The tag of an object that was acknowledged, or read.
    ///
    /// # Errors
    ///
    /// It had another one before.
    pub fn tagged(&self, object: Object, etag: &str) -> Result<(), String> {
        let mut etags = lock(&self.etags);
        match etags.get(&object) {
            Some(known) if known != etag => {
                Err(format!("{object} has the tag {etag}, and had {known} before"))
            }
            Some(_) => Ok(()),
            None => {
                etags.insert(object, etag.to_owned());
                Ok(())
            }
        }
    }

    /// The tag of the version that was acknowledged last.
    pub fn last_tag(&self, key: u16) -> Option<String> {
        let history = self.of(key);
        let last = history.asked.get(history.acknowledged.checked_sub(1)?)?;
        let State::Version(version) = *last else { return None };
        drop(history);
        lock(&self.etags).get(&Object { key, version }).cloned()
    }
}

impl History {
    fn ask(&mut self, key: u16, state: State) -> Ticket {
        self.asked.push(state);
        Ticket { key, index: self.asked.len() - 1, asked_at: Instant::now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::{Absent, Version};

    fn may(model: &Model, before: &Before, state: State) -> bool {
        model.check(0, before, state).is_ok()
    }

    #[test]
    fn what_was_acknowledged_may_not_be_lost() {
        let model = Model::new(1, 0);
        let nothing = model.before(0);
        let (first, ticket) = model.put(0);
        assert!(may(&model, &nothing, Absent) && may(&model, &nothing, Version(first.version)));
        model.acknowledged(&ticket);
        assert!(may(&model, &nothing, Absent), "that read began before");
        let before = model.before(0);
        assert!(!may(&model, &before, Absent) && may(&model, &before, Version(1)));
        let (_, ticket) = model.put(0);
        assert!(may(&model, &before, Version(1)) && may(&model, &before, Version(2)));
        model.acknowledged(&ticket);
        assert!(!may(&model, &model.before(0), Version(1)), "an older version again");
        assert!(!may(&model, &model.before(0), Version(3)), "one that was not written");
    }

    #[test]
    fn what_was_not_acknowledged_may_be_there_or_not_and_also_later() {
        let model = Model::new(1, 0);
        let (_, first) = model.put(0);
        model.acknowledged(&first);
        let (_, second) = model.put(0);
        model.uncertain(&second);
        let before = model.before(0);
        assert!(may(&model, &before, Version(1)) && may(&model, &before, Version(2)));
        let (_, third) = model.put(0);
        model.acknowledged(&third);
        let before = model.before(0);
        assert!(may(&model, &before, Version(2)) && may(&model, &before, Version(3)));
        assert!(!may(&model, &before, Version(1)));
        let gone = model.delete(0);
        model.acknowledged(&gone);
        assert!(
            may(&model, &model.before(0), Absent) && !may(&model, &model.before(0), Version(3))
        );
    }

    #[test]
    fn what_is_settled_may_not_come_back() {
        let model = Model::new(1, 0);
        let (_, first) = model.put(0);
        model.of(0).uncertain.push((first.index, Instant::now() - 2 * FORGOTTEN));
        model.killed();
        std::thread::sleep(Duration::from_millis(2));
        let (_, second) = model.put(0);
        let reading = model.before(0);
        model.acknowledged(&second);
        assert!(may(&model, &reading, Version(1)), "that read began before");
        assert!(!may(&model, &model.before(0), Version(1)));
    }

    #[test]
    fn a_version_that_was_not_sent_to_its_end_may_not_be_there() {
        let model = Model::new(1, 0);
        let torn = model.never(0);
        let why = model.check(0, &model.before(0), Version(torn.version)).unwrap_err();
        assert!(why.starts_with("torn"), "{why}");
    }

    #[test]
    fn keys_that_all_write_have_any_version_but_are_there() {
        let model = Model::new(0, 1);
        assert!(may(&model, &model.before(0), Absent));
        let ((_, first), (_, second)) = (model.put(0), model.put(0));
        model.acknowledged(&second);
        model.acknowledged(&first);
        let before = model.before(0);
        assert!(may(&model, &before, Version(1)) && may(&model, &before, Version(2)));
        assert!(!may(&model, &before, Absent) && !may(&model, &before, Version(3)));
    }

    #[test]
    fn a_tag_stays_with_its_version() {
        let (model, object) = (Model::new(1, 0), Object { key: 0, version: 1 });
        assert_eq!(model.last_tag(0), None);
        let (_, ticket) = model.put(0);
        model.acknowledged(&ticket);
        model.tagged(object, "\"a\"").unwrap();
        model.tagged(object, "\"a\"").unwrap();
        assert!(model.tagged(object, "\"b\"").unwrap_err().contains("\"a\" before"));
        assert_eq!(model.last_tag(0).as_deref(), Some("\"a\""));
    }
}
