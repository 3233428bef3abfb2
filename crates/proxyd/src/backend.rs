//! The backend's addresses. A name is looked up again and again, by a thread, so that nobody waits
//! for it: at boot it may not be known yet, and later it may have others.

use std::io;
use std::thread::{Builder, sleep};
use std::time::Duration;

use httpd::{Address, Place};
use tokio::sync::watch;

/// How soon a name is looked up again that was found, or was not.
const AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(1)];

/// `None`: nothing was found yet, nor not found. The thread ends some seconds after the last who
/// looks at it.
pub(crate) type Addresses = watch::Receiver<Option<Vec<Address>>>;

pub(crate) fn addresses(place: &Place) -> io::Result<Addresses> {
    let (sender, receiver) = watch::channel(None);
    match place {
        Place::At(addresses) => drop(sender.send_replace(Some(addresses.clone()))),
        Place::Name(..) => {
            let place = place.clone();
            let thread = Builder::new().name("names".to_owned());
            thread.spawn(move || keep_looking(|| place.look_up(), &sender, AGAIN))?;
        }
    }
    Ok(receiver)
}

fn keep_looking(
    mut look_up: impl FnMut() -> anyhow::Result<Vec<Address>>,
    sender: &watch::Sender<Option<Vec<Address>>>,
    [found, not_found]: [Duration; 2],
) {
    let mut failing = false;
    while !sender.is_closed() {
        match look_up() {
            Ok(addresses) => {
                failing = false;
                if sender.send_if_modified(|known| take(known, addresses)) {
                    tracing::info!(addresses = ?sender.borrow(), "the backend's name is looked up");
                }
                sleep(found);
            }
            Err(error) => {
                // What is known may hold still.
                sender.send_if_modified(|known| {
                    let is_news = known.is_none();
                    known.get_or_insert_default();
                    is_news
                });
                if !std::mem::replace(&mut failing, true) {
                    let error = format_args!("{error:#}");
                    tracing::warn!(%error, "the backend's name can't be looked up: trying again");
                }
                sleep(not_found);
            }
        }
    }
}

/// Names turn their addresses round from answer to answer: only others are a change.
fn take(known: &mut Option<Vec<Address>>, found: Vec<Address>) -> bool {
    let is_same = known.as_ref().is_some_and(|known| {
        known.len() == found.len() && found.iter().all(|address| known.contains(address))
    });
    if !is_same {
        *known = Some(found);
    }
    !is_same
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_name_is_tried_again_and_what_it_has_later_counts() {
        let [a, b, c] = ["tcp:192.0.2.1:1", "tcp:192.0.2.2:1", "tcp:192.0.2.3:1"]
            .map(|text| text.parse::<Address>().unwrap());
        let (sender, receiver) = watch::channel(None);
        let expected = [
            (None, Some(vec![])),
            (Some(vec![a.clone(), b.clone()]), Some(vec![a.clone(), b.clone()])),
            (Some(vec![b.clone(), a.clone()]), Some(vec![a.clone(), b.clone()])),
            (None, Some(vec![a, b])),
            (Some(vec![c.clone()]), Some(vec![c])),
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
        assert_eq!(seen[0], None);
        assert_eq!(seen[1..], after);
    }
}
