//! The backend's addresses. A name is looked up again and again, by a thread, so that nobody waits
//! for it: later it may have others.

use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use httpd::{Address, Place};
use tokio::sync::watch;

/// How soon a name is looked up again that was found, or was not.
const AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(1)];
/// How long a name may be unknown at the start, as at boot. Without its backend a proxy is of no use:
/// its end tells whoever started it.
const PATIENCE: Duration = Duration::from_secs(20);

/// At least one.
pub type Addresses = watch::Receiver<Vec<Address>>;

/// Waits until the backend's name is known. The thread that looks again ends some seconds after the
/// last who looks at the addresses.
pub fn addresses(place: &Place) -> anyhow::Result<Addresses> {
    let known = first_found(|| place.look_up(), PATIENCE, AGAIN[1])?;
    let (sender, receiver) = watch::channel(known);
    if let Place::Name(..) = place {
        let place = place.clone();
        let thread = Builder::new().name("names".to_owned());
        let looking = thread.spawn(move || keep_looking(|| place.look_up(), &sender, AGAIN));
        looking.context("cannot start a thread")?;
    }
    Ok(receiver)
}

fn first_found(
    mut look_up: impl FnMut() -> anyhow::Result<Vec<Address>>,
    patience: Duration,
    again: Duration,
) -> anyhow::Result<Vec<Address>> {
    let (until, mut failing) = (Instant::now() + patience, false);
    loop {
        let found = look_up();
        match &found {
            Err(error) if Instant::now() + again < until => {
                if !std::mem::replace(&mut failing, true) {
                    warn(error);
                }
                sleep(again);
            }
            _ => return found.context("the backend's name can't be looked up"),
        }
    }
}

fn keep_looking(
    mut look_up: impl FnMut() -> anyhow::Result<Vec<Address>>,
    sender: &watch::Sender<Vec<Address>>,
    [found, not_found]: [Duration; 2],
) {
    let mut failing = false;
    sleep(found);
    while !sender.is_closed() {
        match look_up() {
            Ok(addresses) => {
                failing = false;
                if sender.send_if_modified(|known| take(known, addresses)) {
                    let addresses = sender.borrow();
                    tracing::info!(?addresses, "the backend's name has other addresses");
                }
                sleep(found);
            }
            // What is known may hold still.
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    warn(&error);
                }
                sleep(not_found);
            }
        }
    }
}

fn warn(error: &anyhow::Error) {
    let error = format_args!("{error:#}");
    tracing::warn!(%error, "the backend's name can't be looked up: trying again");
}

/// Names turn their addresses round from answer to answer: only others are a change.
fn take(known: &mut Vec<Address>, found: Vec<Address>) -> bool {
    let is_same = known.len() == found.len() && found.iter().all(|one| known.contains(one));
    if !is_same {
        *known = found;
    }
    !is_same
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    fn three() -> [Address; 3] {
        ["tcp:192.0.2.1:1", "tcp:192.0.2.2:1", "tcp:192.0.2.3:1"].map(|text| text.parse().unwrap())
    }

    #[test]
    fn a_name_that_is_not_known_at_the_start_is_waited_for() {
        let [a, ..] = three();
        let mut looked = 0;
        let mut look_up = || {
            looked += 1;
            if looked < 4 { bail!("no such name") } else { Ok(vec![a.clone()]) }
        };
        let found = first_found(&mut look_up, Duration::from_secs(600), Duration::ZERO);
        assert_eq!(found.unwrap(), std::slice::from_ref(&a));
        let never = || bail!("no such name");
        let error = first_found(never, Duration::from_millis(20), Duration::from_millis(1));
        let error = format!("{:#}", error.unwrap_err());
        assert_eq!(error, "the backend's name can't be looked up: no such name");
    }

    #[test]
    fn what_a_name_has_later_counts() {
        let [a, b, c] = three();
        let (sender, receiver) = watch::channel(vec![a.clone(), b.clone()]);
        let expected = [
            (Some(vec![b.clone(), a.clone()]), vec![a.clone(), b.clone()]),
            (None, vec![a.clone(), b.clone()]),
            (Some(vec![c.clone()]), vec![c]),
        ];
        let mut seen = Vec::new();
        let (mut receiver, mut answers) = (Some(receiver), expected.iter());
        let look_up = || {
            let known = receiver.as_ref().map(|receiver| receiver.borrow().clone());
            seen.extend(known);
            let Some((answer, _)) = answers.next() else {
                receiver = None;
                bail!("over")
            };
            answer.clone().map_or_else(|| bail!("no such name"), Ok)
        };
        keep_looking(look_up, &sender, [Duration::ZERO; 2]);
        let after: Vec<_> = expected.iter().map(|(_, after)| after.clone()).collect();
        assert_eq!(seen[0], [a, b]);
        assert_eq!(seen[1..], after);
    }
}
