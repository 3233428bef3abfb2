//! The counters for people: what was counted, and what that says, 80 columns.

use ntcopy::socket::Counters;
use ntcopy_record::units::about_size;

/// A part of the sends below which something keeps hints from most of them.
const MOST: f64 = 0.5;

fn percent(share: Option<f64>) -> String {
    // Shown as all or nothing only where it is.
    match share {
        None => "-".to_owned(),
        Some(share) if share > 0.0 && share < 0.001 => "<0.1 %".to_owned(),
        Some(share) if share < 1.0 && share > 0.999 => ">99.9 %".to_owned(),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

fn part(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

/// A part of all, in percent.
pub fn share(some: u64, all: u64) -> String {
    percent(part(some, all))
}

/// All that was counted, and what keeps hints from sends, if something does.
pub fn totals(counters: &Counters) -> String {
    let Counters { bytes, hinted_bytes: hinted, bypassed_bytes: bypassed, .. } = *counters;
    let mut out = format!("{:<32}{:>11}\n", "Sent on sockets that opted in", about_size(bytes));
    for (name, some, all, whole) in [
        ("  hinted", hinted, bytes, "of that"),
        ("  past the caches", bypassed, hinted, "of the hinted bytes"),
    ] {
        let share = share(some, all);
        out.push_str(&format!("{name:<32}{:>11}{share:>9} {whole}\n", about_size(some)));
    }
    if let Some(why) = diagnosis(counters) {
        out.push_str(why);
        out.push('\n');
    }
    out
}

fn diagnosis(counters: &Counters) -> Option<&'static str> {
    let Counters { bytes, hinted_bytes: hinted, bypassed_bytes: bypassed, .. } = *counters;
    let is_below_most = |some, all| part(some, all).is_some_and(|part| part < MOST);
    if bytes == 0 {
        Some("Nothing was sent on a socket that opted in (ntcopy run, ntcopy set, SO_NTCOPY).")
    } else if is_below_most(hinted, bytes) {
        Some("Most sends are shorter than the number of their socket (SO_NTCOPY).")
    } else if is_below_most(bypassed, hinted) {
        Some(
            "Most hints were declined: the kernel reads those bytes itself (TLS, checksums), or the \
             socket\ncannot bypass the caches.",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_and_nothing_are_said_only_where_true() {
        assert_eq!(percent(Some(0.0)), "0.0 %");
        assert_eq!(percent(Some(1e-9)), "<0.1 %");
        assert_eq!(percent(Some(0.75)), "75.0 %");
        assert_eq!(percent(Some(0.9999)), ">99.9 %");
        assert_eq!(percent(Some(1.0)), "100.0 %");
        assert_eq!(percent(None), "-");
    }

    #[test]
    fn what_keeps_hints_from_sends_is_said() {
        let said = |bytes, hinted_bytes, bypassed_bytes| {
            let mut counters = Counters::default();
            counters.bytes = bytes;
            counters.hinted_bytes = hinted_bytes;
            counters.bypassed_bytes = bypassed_bytes;
            diagnosis(&counters)
        };
        assert_eq!(said(100, 90, 80), None);
        for (counts, words) in [
            ((0, 0, 0), "Nothing was sent"),
            ((100, 49, 49), "shorter than the number"),
            ((100, 0, 0), "shorter than the number"),
            ((100, 100, 49), "declined"),
        ] {
            let why = said(counts.0, counts.1, counts.2).unwrap_or_default();
            assert!(why.contains(words), "{counts:?}: {why}");
        }
    }
}
