//! Reading back what the pods of a Job printed.

use std::collections::BTreeMap;

use super::{Kubectl, KubectlError, Pod};
use crate::engine::fleet::{Outcome, State, entry};
use crate::engine::{Piece, Received};
use crate::store::{Added, Entry, Store, StoreError};

/// Why nothing, or not all, was read back.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// By `kubectl`.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// By the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Stores the records of all pods that are done. One outcome a node, in the order of their names;
/// pods without a node come under their own name. Reading back twice stores nothing twice.
///
/// # Errors
///
/// When `kubectl` does not tell what pods there are, or the store fails. What the store took until
/// then stays.
pub fn gather(
    kubectl: &Kubectl,
    job: &str,
    fleet: &str,
    store: &mut Store,
) -> Result<Vec<Outcome>, GatherError> {
    let mut outcomes: BTreeMap<String, Outcome> = BTreeMap::new();
    for pod in kubectl.pods(job)? {
        let node = pod.node.clone().unwrap_or_else(|| format!("(pod {})", pod.name));
        let known = outcomes.entry(node.clone()).or_insert_with(|| Outcome::new(&node));
        known.attempts += 1;
        let found = one(kubectl, &pod, fleet, &node, store)?;
        // One good pod is enough for a node that was tried again.
        let is_better = rank(found.state) >= rank(known.state);
        if is_better {
            (known.state, known.why) = (found.state, found.why);
        }
        known.records.extend(found.records);
        known.wrong_byte |= found.wrong_byte;
    }
    Ok(outcomes.into_values().collect())
}

fn rank(state: State) -> u8 {
    match state {
        State::Waiting | State::Cancelled => 0,
        State::Failed => 1,
        State::Measured | State::AlreadyThere => 2,
    }
}

fn one(
    kubectl: &Kubectl,
    pod: &Pod,
    fleet: &str,
    node: &str,
    store: &mut Store,
) -> Result<Outcome, GatherError> {
    let mut outcome = Outcome { why: pod.why.clone(), ..Outcome::new(node) };
    if !pod.phase.is_over() {
        return Ok(outcome);
    }
    let (mut records, mut why): (Vec<Received>, Option<String>) = (Vec::new(), None);
    let read = kubectl.logs(&pod.name, &mut |piece| match piece {
        Piece::Record(record) => records.push(record),
        Piece::Failed { asked, why: reason } => {
            why = Some(asked.map_or(reason.clone(), |asked| format!("{asked}: {reason}")));
        }
        Piece::Done => {}
    });
    let is_done = match read {
        Ok(is_done) => is_done,
        // One node that is gone does not keep the others' logs from being read.
        Err(error @ KubectlError::Failed { .. }) => {
            why = Some(error.to_string());
            false
        }
        Err(error) => return Err(error.into()),
    };
    let mut is_whole = is_done && why.is_none();
    for record in &records {
        match entry(fleet, node, record) {
            Err(reason) => why = Some(format!("{}: {reason}", record.asked)),
            Ok(entry) => keep(&entry, store, &mut outcome)?,
        }
        is_whole &= record.is_whole();
        outcome.wrong_byte |= record.code == 4;
    }
    outcome.state = if is_whole { State::Measured } else { State::Failed };
    let cut = || "its output ends before it was done".to_owned();
    outcome.why = if is_whole { None } else { why.or(outcome.why).or_else(|| Some(cut())) };
    Ok(outcome)
}

fn keep(entry: &Entry, store: &mut Store, outcome: &mut Outcome) -> Result<(), StoreError> {
    if store.insert(std::slice::from_ref(entry))? != [Added::Differs] {
        outcome.records.push(entry.summary.record.clone());
    }
    Ok(())
}
