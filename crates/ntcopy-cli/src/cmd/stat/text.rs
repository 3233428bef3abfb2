//! Lines for people: a table of rates, a list of reasons, 80 columns.

use std::fmt::Write as _;

use ntcopy::socket::Counters;
use ntcopy::uapi;
use ntcopy_record::foreign;
use ntcopy_record::units::about_size;

use super::reading::{Interval, Reading, hinted_bytes, nontemporal_share};

/// Name in the kernel, head of the column, and what it means.
const REASONS: [(&str, &str, &str); 4] = [
    (uapi::STAT_FITS_CACHE, "fits", "no more than ntcopy_cache_bytes in flight"),
    (uapi::STAT_TOO_SMALL, "small", "pieces below a page"),
    (uapi::STAT_READ_BY_KERNEL, "read", "the kernel itself reads them right away"),
    (uapi::STAT_NOT_SUPPORTED, "other", "no such copy here, or nothing to copy"),
];

fn percent(share: Option<f64>) -> String {
    // Shown as all or nothing only where it is.
    match share {
        None => "-".to_owned(),
        Some(share) if share > 0.0 && share < 0.001 => "<0.1 %".to_owned(),
        Some(share) if share < 1.0 && share > 0.999 => ">99.9 %".to_owned(),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

pub fn head() -> String {
    let mut out = format!("{:>11}{:>11}{:>10}", "hinted/s", "NT", "of it NT");
    for (_, title, _) in REASONS {
        let _ = write!(out, "{title:>11}");
    }
    out.push('\n');
    out
}

/// A line of the table: rates, and the share that went non-temporally.
pub fn line(interval: &Interval) -> String {
    let added = &interval.added;
    let rate = |bytes: u64| match bytes {
        0 => "-".to_owned(),
        bytes => about_size(interval.per_second(bytes)),
    };
    let mut out = format!(
        "{:>11}{:>11}{:>10}",
        rate(hinted_bytes(added)),
        rate(added.get(uapi::STAT_NONTEMPORAL)),
        percent(nontemporal_share(added))
    );
    for (name, ..) in REASONS {
        let bytes =
            if name == uapi::STAT_NOT_SUPPORTED { other_bytes(added) } else { added.get(name) };
        let _ = write!(out, "{:>11}", rate(bytes));
    }
    out.push('\n');
    out
}

/// What has no column of its own: unsupported, and reasons of an earlier or a later kernel.
fn other_bytes(counters: &Counters) -> u64 {
    let shown = |name: &str| {
        name == uapi::STAT_NONTEMPORAL
            || name != uapi::STAT_NOT_SUPPORTED && REASONS.iter().any(|(known, ..)| *known == name)
    };
    counters.as_map().iter().filter(|(name, _)| !shown(name)).map(|(_, bytes)| bytes).sum()
}

/// One sentence before the table.
pub fn so_far(reading: &Reading) -> String {
    match nontemporal_share(&reading.counters) {
        None => "So far: no bytes were hinted.\n".to_owned(),
        share => format!(
            "So far: {} were hinted, {} of them copied non-temporally.\n",
            about_size(hinted_bytes(&reading.counters)),
            percent(share)
        ),
    }
}

/// One sentence after the table.
pub fn summary(whole: &Interval) -> String {
    let hinted = hinted_bytes(&whole.added);
    let seconds = whole.length.as_secs_f64();
    match nontemporal_share(&whole.added) {
        None => format!("In {seconds:.1} s: no bytes were hinted.\n"),
        share => format!(
            "In {seconds:.1} s: {} were hinted ({}/s), {} of them copied non-temporally.\n",
            about_size(hinted),
            about_size(whole.per_second(hinted)),
            percent(share)
        ),
    }
}

/// All that was counted, reason by reason.
pub fn totals(reading: &Reading) -> String {
    let counters = &reading.counters;
    let hinted = hinted_bytes(counters);
    let share = |bytes: u64| percent((hinted > 0).then(|| bytes as f64 / hinted as f64));
    let mut out = format!("{:<17}{:>11}\n", "Hinted", about_size(hinted));
    let mut row = |name: &str, bytes: u64, what: &str| {
        let text = format!("  {name:<15}{:>11}{:>9}  {what}", about_size(bytes), share(bytes));
        out.push_str(text.trim_end());
        out.push('\n');
    };
    row("non-temporal", counters.get(uapi::STAT_NONTEMPORAL), "");
    for (name, _, what) in REASONS {
        let label = name.trim_end_matches("_bytes").replace('_', " ");
        row(&label, counters.get(name), what);
    }
    for (name, bytes) in counters.as_map() {
        let is_known =
            name == uapi::STAT_NONTEMPORAL || REASONS.iter().any(|(known, ..)| known == name);
        if !is_known {
            row(&foreign::visible(name), *bytes, "counted, and unknown to this program");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::reading::testing;
    use super::*;

    const MIXED: &str = "nontemporal_bytes 3000000000\nfits_cache_bytes 1000000000\n\
                         too_small_bytes 4095\nread_by_kernel_bytes 0\n\
                         not_supported_bytes 7\n";

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
    fn a_line_stands_under_its_head() {
        let line = line(&testing::interval(500, MIXED));
        assert_eq!(
            head() + &line,
            "   hinted/s         NT  of it NT       fits      small       read      other\n    \
             7.5 GiB    5.6 GiB    75.0 %    1.9 GiB    8.0 KiB          -   14 bytes\n"
        );
    }

    #[test]
    fn a_reason_of_another_kernel_is_not_lost() {
        let counters = "nontemporal_bytes 1\nnew_reason_bytes 5\nnot_supported_bytes 2\n";
        assert!(line(&testing::interval(1000, counters)).ends_with("    7 bytes\n"));
    }

    #[test]
    fn totals_name_every_reason_and_fit_eighty_columns() {
        let reading = Reading { at: Instant::now(), counters: testing::counters(MIXED) };
        let totals = totals(&reading);
        assert_eq!(totals.lines().count(), 2 + REASONS.len(), "{totals}");
        assert!(totals.lines().all(|line| line.len() <= 80), "{totals}");
        assert!(totals.contains("  non-temporal       2.8 GiB   75.0 %\n"), "{totals}");
        assert!(totals.contains("  too small          4.0 KiB   <0.1 %  pieces below"), "{totals}");
        for text in [so_far(&reading), summary(&testing::interval(2000, MIXED))] {
            assert!(text.contains("3.7 GiB were hinted") && text.contains("75.0 %"), "{text}");
        }
        let nothing = testing::interval(2000, "nontemporal_bytes 0\n");
        assert_eq!(summary(&nothing), "In 2.0 s: no bytes were hinted.\n");
    }
}
