//! How soon the adaptive hint follows, in words.

use crate::record::Record;
use crate::stats::phase::{Phase, phases};

/// A sentence for each change of the traffic.
pub fn sentences(record: &Record) -> Vec<String> {
    let mut sentences = Vec::new();
    for cell in &record.cells {
        let phases = phases(record, cell);
        for change in phases.windows(2) {
            sentences.push(sentence(&change[0], &change[1]));
        }
    }
    let unavailable = record.unavailable.iter().filter(|line| line.mode == "adaptive");
    sentences.extend(unavailable.map(|line| {
        format!("The adaptive hint was not measured: {}.", line.why.trim_end_matches('.'))
    }));
    if sentences.is_empty() {
        sentences.push("Too few repetitions for a result: at least 5 are needed.".to_owned());
    }
    sentences
}

fn sentence(from: &Phase, to: &Phase) -> String {
    let ms = |ns: f64| format!("{:.0}", ns / 1e6);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let what = format!("From {} to {}", sockets(from.sockets), sockets(to.sockets));
    let (before, after) = (percent(from.share), percent(to.share));
    if to.settled_ns == 0.0 && to.longest_ns == 0.0 && to.unsettled == 0 {
        return format!(
            "{what} the non-temporal share goes from {before} to {after} within the first window."
        );
    }
    let settled = to.repetitions - to.unsettled;
    if settled == 0 {
        return format!(
            "{what} the non-temporal share had not settled when the phase ended, in any of {} \
             repetitions.",
            to.repetitions,
        );
    }
    let longest = match to.unsettled {
        0 => format!("the longest of {settled} took {}", ms(to.longest_ns)),
        some => format!(
            "the longest of the {settled} that settled took {}; in {some} it had not when the phase \
             ended, and counts as long as the phase",
            ms(to.longest_ns),
        ),
    };
    format!(
        "{what} the non-temporal share goes from {before} to {after} within {} ms (interval \
         {}-{}; {longest}), and after that {:.1} % of the bytes go the other way.",
        ms(to.settled_ns),
        ms(to.ci.0),
        ms(to.ci.1),
        to.astray * 100.0,
    )
}

fn sockets(count: u64) -> String {
    if count == 1 { "1 socket".to_owned() } else { format!("{count} sockets") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::phase::tests::sketch;

    #[test]
    fn each_change_has_its_time() {
        assert_eq!(
            sentences(&sketch([10, 20, 10, 10, 60])),
            [
                "From 1 socket to 128 sockets the non-temporal share goes from 0 % to 100 % \
                 within 10 ms (interval 10-60; the longest of 5 took 60), and after that 0.0 % of \
                 the bytes go the other way.",
                "From 128 sockets to 1 socket the non-temporal share goes from 100 % to 0 % \
                 within the first window.",
            ]
        );
    }

    #[test]
    fn what_was_not_followed_is_said() {
        let up = &sentences(&sketch([10, 20, 10, 10, 1000]))[0];
        assert!(up.contains("the longest of the 4 that settled took 20; in 1 it had not"), "{up}");
    }

    #[test]
    fn a_record_without_repetitions_says_so() {
        let mut record = sketch([10; 5]);
        record.samples.truncate(3);
        assert!(sentences(&record)[0].contains("at least 5"));
    }
}
