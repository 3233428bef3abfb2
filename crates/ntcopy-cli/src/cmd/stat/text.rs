//! The counters for people: a list of reasons, 80 columns.

use ntcopy::socket::Counters;
use ntcopy::uapi;
use ntcopy_record::foreign;
use ntcopy_record::units::about_size;

use super::hinted_bytes;

/// Name in the kernel, and what it means.
const REASONS: [(&str, &str); 4] = [
    (uapi::STAT_FITS_CACHE, "no more than ntcopy_cache_bytes in flight"),
    (uapi::STAT_TOO_SMALL, "pieces below a page"),
    (uapi::STAT_READ_BY_KERNEL, "the kernel itself reads them right away"),
    (uapi::STAT_NOT_SUPPORTED, "no such copy here, or nothing to copy"),
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

/// All that was counted, reason by reason.
pub fn totals(counters: &Counters) -> String {
    let hinted = hinted_bytes(counters);
    let share = |bytes: u64| percent((hinted > 0).then(|| bytes as f64 / hinted as f64));
    let mut out = format!("{:<17}{:>11}\n", "Hinted", about_size(hinted));
    let mut row = |name: &str, bytes: u64, what: &str| {
        let text = format!("  {name:<15}{:>11}{:>9}  {what}", about_size(bytes), share(bytes));
        out.push_str(text.trim_end());
        out.push('\n');
    };
    row("non-temporal", counters.get(uapi::STAT_NONTEMPORAL), "");
    for (name, what) in REASONS {
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
}
