//! Dates that clients send. httpdate, which writes ours, reads none before 1970, and takes 75 for
//! 1975 where RFC 9110 has 2075 less than 50 years ahead.

use std::time::SystemTime;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Seconds since 1970 of an HTTP-date in one of its three forms (RFC 9110, 5.6.7).
pub fn parse(text: &str) -> Option<i64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    parse_at(text, now.as_secs() as i64)
}

fn parse_at(text: &str, now: i64) -> Option<i64> {
    if !text.is_ascii() {
        return None;
    }
    let Some((day, rest)) = text.split_once(", ") else { return asctime(text) };
    let rest = rest.strip_suffix(" GMT")?;
    let date = if DAYS.contains(&day) {
        let (date, time) = rest.split_once(' ')?;
        let fields: Vec<&str> = date.split('-').collect();
        let [day, month, year] = fields[..] else { return None };
        let short = digits(year, 2)?;
        let at = |century: i64| seconds(century + short, month, digits(day, 2)?, time);
        // More than 50 years ahead is the past.
        let far = now + 50 * 31_556_952;
        return at(2000).filter(|at| *at <= far).or_else(|| at(1900));
    } else if is_short_day(day) {
        rest
    } else {
        return None;
    };
    let fields: Vec<&str> = date.split(' ').collect();
    let [day, month, year, time] = fields[..] else { return None };
    seconds(digits(year, 4)?, month, digits(day, 2)?, time)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(text: &str) -> Option<i64> {
    let (start, year) = text.rsplit_once(' ')?;
    let (start, time) = start.rsplit_once(' ')?;
    let (start, day) = start.split_at_checked(8)?;
    let (day_name, month) = start.split_once(' ')?;
    let month = month.strip_suffix(' ')?;
    let day = match day.strip_prefix(' ') {
        Some(day) => digits(day, 1),
        None => digits(day, 2),
    };
    is_short_day(day_name).then_some(())?;
    seconds(digits(year, 4)?, month, day?, time)
}

fn is_short_day(text: &str) -> bool {
    text.len() == 3 && DAYS.iter().any(|day| day.starts_with(text))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn seconds(year: i64, month: &str, day: i64, time: &str) -> Option<i64> {
    let month = MONTHS.iter().position(|name| *name == month)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of = |month: usize| match month {
        1 => 28 + i64::from(is_leap),
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    };
    let fields: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = fields[..] else { return None };
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    // 60 is a leap second.
    if !(1..=days_of(month)).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400;
    let days = 365 * year + leap_days + (0..month).map(days_of).sum::<i64>() + day;
    // 1 January 1970 is day 719,528.
    Some((days - 719_528) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const NOW: i64 = 1_795_000_000;

    #[test]
    fn dates_in_three_forms() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Sun Nov 16 08:49:37 1994", Some(784_975_777)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Wed, 31 Dec 1969 23:59:59 GMT", Some(-1)),
            ("Mon, 01 Jan 0001 00:00:00 GMT", Some(-62_135_596_800)),
            ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400)),
            ("Fri, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_800)),
            // 2026: 2075 is to come, 2078 is 1978.
            ("Tuesday, 01-Jan-75 00:00:00 GMT", Some(3_313_526_400)),
            ("Sunday, 01-Jan-78 00:00:00 GMT", Some(252_460_800)),
            ("Thu, 29 Feb 1900 00:00:00 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37", None),
            ("Sun, 06 Nov 1994 08:49:37 UTC", None),
            ("Sun, 06 Nov 1994 08:49:37 +0000", None),
            ("Sun, 6 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 94 08:49:37 GMT", None),
            ("Sun, 06 nov 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 24:00:00 GMT", None),
            ("Sun, 31 Nov 1994 08:49:37 GMT", None),
            ("Sun,06 Nov 1994 08:49:37 GMT", None),
            ("Xyz, 06 Nov 1994 08:49:37 GMT", None),
            ("Sun, 06-Nov-94 08:49:37 GMT", None),
            ("Sunday, 06-Nov-1994 08:49:37 GMT", None),
            ("Sun Nov 6 08:49:37 1994", None),
            ("Sun Nov 06 08:49:37 1994 GMT", None),
            ("784111777", None),
            ("", None),
        ] {
            assert_eq!(parse_at(text, NOW), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read(at in 0_u64..253_402_300_799) {
            let text = httpd::http_date(Duration::from_secs(at));
            prop_assert_eq!(parse_at(&text, NOW), Some(at as i64), "{}", text);
        }

        #[test]
        fn no_text_is_too_odd(text in "[A-Za-z]{2,8},? [-0-9A-Za-z: ]{0,30}|\\PC{0,40}") {
            let _ = parse_at(&text, NOW);
        }
    }
}
