//! What loads were asked and what they printed: wrk, wrk2, hey, ab, oha, redis-benchmark and
//! valkey-benchmark.

use super::printed::number;

/// What precedes the requests per second in the output, in lower case: wrk, hey and oha, then ab.
const BEFORE: [&str; 2] = ["requests/sec:", "requests per second:"];
/// What follows them: redis-benchmark, valkey-benchmark.
const AFTER: &str = "requests per second";

/// Loads that can be told their rate, and the option that does.
const RATED: [(&str, &str); 6] = [
    ("wrk", "-R"),
    ("wrk2", "-R"),
    ("hey", "-q"),
    ("oha", "-q"),
    ("redis-benchmark", "--rps"),
    ("valkey-benchmark", "--rps"),
];
/// As wrk and wrk2 have it, too.
const RATE: &str = "--rate";

/// What precedes the bytes that came: oha and hey, then ab.
const TAKEN: [&str; 2] = ["total data:", "total transferred:"];
/// Above ab's table of quantiles, whose numbers have no unit.
const TABLE_IN_MS: &str = "served within a certain time (ms)";

/// What precedes a count of failed answers: wrk, then ab.
const FAILED: [&str; 4] =
    ["non-2xx or 3xx responses:", "non-2xx responses:", "failed requests:", "write errors:"];
/// What precedes counts of wrk.
const SOCKET_ERRORS: &str = "socket errors:";
/// Tables of hey and oha, a line for each status or error: `[404] 12 responses`, `[12] EOF`.
const STATUSES: &str = "status code distribution:";
const ERRORS: &str = "error distribution:";
/// What oha calls the requests that its own end cut off.
const CUT_OFF: &str = "aborted due to deadline";
/// What redis-benchmark says of one.
const SERVER_ERROR: &str = "error from server";

/// The requests per second among a load's output, or what is wrong with them.
pub fn requests_a_second(output: &[u8]) -> Option<Result<f64, String>> {
    let text = String::from_utf8_lossy(output).to_lowercase();
    let one = |line: &str| {
        let label = BEFORE.iter().find_map(|label| line.split_once(label));
        let found = match label {
            Some((_, rest)) => first_number(rest)?,
            None => last_number(line.split_once(AFTER)?.0)?,
        };
        Some(number(&found).map_err(|why| format!("`{}`: {why}", line.trim())))
    };
    only(text.lines().filter_map(|line| Some((line, one(line)?))).collect())
}

/// The latency in milliseconds among a load's output: the median, or the average where none is
/// printed.
pub fn latency_ms(output: &[u8]) -> Option<Result<f64, String>> {
    let text = String::from_utf8_lossy(output).to_lowercase();
    let averages = text.lines().filter_map(|line| Some((line, Ok(average(line)?))));
    only(quantiles(&text, 50)).or_else(|| only(averages.collect()))
}

/// The latency in milliseconds that so many of 100 answers did not exceed, if a load printed one.
pub fn quantile_ms(output: &[u8], percent: u8) -> Option<f64> {
    let text = String::from_utf8_lossy(output).to_lowercase();
    only(quantiles(&text, percent))?.ok()
}

fn quantiles(text: &str, percent: u8) -> Vec<(&str, Result<f64, String>)> {
    let titles = std::iter::once("").chain(text.lines());
    let mut in_ms = false;
    let found = text.lines().zip(titles).filter_map(|(line, title)| {
        in_ms |= line.contains(TABLE_IN_MS);
        let labelled = labelled(line, percent, in_ms);
        Some((line, Ok(labelled.or_else(|| below(title, line, percent))?)))
    });
    found.collect()
}

/// The bytes that a load took, if it printed them.
pub fn taken_bytes(output: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(output).to_lowercase();
    let found: Vec<u64> = text.lines().filter_map(bytes_of).collect();
    // Where there are several, none is known to be the whole.
    if let [bytes] = found[..] { Some(bytes) } else { None }
}

/// `1800 requests in 3.00s, 1.76GB read` of wrk, `Total data: 1.20 GiB` of oha and hey,
/// `Total transferred: 123 bytes` of ab.
fn bytes_of(line: &str) -> Option<u64> {
    let line = line.trim();
    let labelled = TAKEN.iter().find_map(|label| line.strip_prefix(label));
    let words = match labelled {
        Some(rest) => rest,
        None => line.strip_suffix(" read")?.rsplit_once(", ")?.1,
    };
    let words = words.trim();
    let end = words.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = words[..end].parse().ok()?;
    let unit = match words[end..].trim() {
        "b" | "bytes" => 1.0,
        // wrk counts in powers of two under these names, too.
        "kb" | "kib" => 1024.0,
        "mb" | "mib" => 1024.0_f64.powi(2),
        "gb" | "gib" => 1024.0_f64.powi(3),
        "tb" | "tib" => 1024.0_f64.powi(4),
        _ => return None,
    };
    Some((number * unit) as u64).filter(|bytes| *bytes > 0)
}

/// Where there are several, none is left out in silence.
fn only(found: Vec<(&str, Result<f64, String>)>) -> Option<Result<f64, String>> {
    if found.len() > 1 {
        let lines: Vec<&str> = found
            .iter()
            .map(|(line, _)| line.rsplit('\r').next().unwrap_or_default().trim())
            .collect();
        return Some(Err(format!(
            "the load printed several figures ({}): have it print one, or say by --metric which \
             counts",
            lines.join("; ")
        )));
    }
    found.into_iter().next().map(|(_, found)| found)
}

/// ` 50.000%    2.50ms`, `  50% in 0.0025 secs`, `…, p50=0.2 msec`; in ab's table of milliseconds
/// `  50%     12`.
fn labelled(line: &str, percent: u8, in_ms: bool) -> Option<f64> {
    if let Some((_, rest)) = line.split_once(&format!("p{percent}=")) {
        return duration_ms(rest);
    }
    let (share, rest) = line.trim().split_once('%')?;
    if share.parse() != Ok(f64::from(percent)) {
        return None;
    }
    let rest = rest.trim();
    let bare = || rest.parse().ok().filter(|found| in_ms && *found > 0.0);
    duration_ms(rest.strip_prefix("in ").unwrap_or(rest)).or_else(bare)
}

/// Reads the table of redis-benchmark, in milliseconds: `avg min p50 p95 p99 max`, and a line of
/// numbers below.
fn below(title: &str, line: &str, percent: u8) -> Option<f64> {
    let name = format!("p{percent}");
    let column = title.split_whitespace().position(|word| word == name)?;
    line.split_whitespace().nth(column)?.parse().ok()
}

/// `Average: 0.0025 secs`, `Latency  2.50ms  1.2ms …`.
fn average(line: &str) -> Option<f64> {
    let line = line.trim();
    let rest = line.strip_prefix("average:").or_else(|| line.strip_prefix("latency "))?;
    duration_ms(rest)
}

/// A text that begins with a number and a unit.
fn duration_ms(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.split_whitespace().next()?;
    let ms = match unit {
        "us" | "µs" | "usec" => 1e-3,
        "ms" | "msec" => 1.0,
        "s" | "sec" | "secs" => 1e3,
        "m" => 60e3,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * ms).filter(|found| *found > 0.0)
}

/// How many answers failed, in words, if the load says that any did.
pub fn failed_answers(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output).to_lowercase();
    let (mut table, mut count, mut lines) = ("", 0, Vec::new());
    for line in text.lines().map(str::trim) {
        if !line.starts_with('[') {
            table = line;
        }
        let failed = failed_of(table, line);
        if failed > 0 {
            count += failed;
            lines.push(line);
        }
    }
    (count > 0).then(|| {
        format!("{count} answers failed, and are no speed; the load says: {}", lines.join("; "))
    })
}

/// How many answers failed by one line of a load's output, in this table of it.
fn failed_of(table: &str, line: &str) -> u64 {
    if let Some((_, rest)) = line.split_once(SOCKET_ERRORS) {
        return numbers(rest).sum();
    }
    if let Some(rest) = FAILED.iter().find_map(|label| line.strip_prefix(label)) {
        return numbers(rest).next().unwrap_or(0);
    }
    if line.contains(SERVER_ERROR) {
        return 1;
    }
    let row = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match row {
        Some((status, rest)) if table == STATUSES && !status.starts_with('2') => {
            numbers(rest).next().unwrap_or(0)
        }
        Some((count, what)) if table == ERRORS && what.trim() != CUT_OFF => {
            numbers(count).next().unwrap_or(0)
        }
        _ => 0,
    }
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok())
}

/// Whether the command tells its load a rate: then requests per second are what was offered,
/// whatever the server does.
pub fn has_fixed_rate(command: &str) -> bool {
    let separators = |c: char| c.is_whitespace() || "'\"".contains(c);
    let mut option = None;
    for word in command.split(separators).filter(|word| !word.is_empty()) {
        let name = word.rsplit('/').next().unwrap_or(word);
        if let Some((_, of_load)) = RATED.iter().find(|(load, _)| *load == name) {
            option = Some(*of_load);
        } else if word.ends_with([';', '|', '&']) {
            option = None;
        } else if let Some(option) = option {
            let is_long = |long: &str| word == long || word.starts_with(&format!("{long}="));
            let is_rate = match option {
                "-R" => word.starts_with(option) || is_long(RATE),
                "--rps" => is_long(option),
                _ => word.starts_with(option),
            };
            if is_rate {
                return true;
            }
        }
    }
    false
}

/// The number that a text begins with, and what may belong to it: a group of digits, a prefix of a
/// unit.
fn first_number(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let belongs = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit()) || ["k", "m", "g"].contains(word)
    };
    Some(words.next().filter(belongs).map_or(first.to_owned(), |next| format!("{first} {next}")))
}

/// The same of a text that ends with it.
fn last_number(text: &str) -> Option<String> {
    let mut words = text.split_whitespace().rev();
    let last = words.next()?;
    let belongs = |word: &&str| word.ends_with(|c: char| c.is_ascii_digit());
    Some(words.next().filter(belongs).map_or(last.to_owned(), |next| format!("{next} {last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_known_loads_are_read() {
        for (output, rate) in [
            ("Requests/sec:  81234.50\nTransfer/sec: 1GB\n", Some(81234.5)),
            ("Requests per second:    1,234.56 [#/sec] (mean)\n", Some(1234.56)),
            ("SET: 1.0\nGET: 98039.22 requests per second, p50=0.2 msec\n", Some(98039.22)),
            ("done\n", None),
        ] {
            assert_eq!(requests_a_second(output.as_bytes()), rate.map(Ok), "{output}");
        }
        let found = requests_a_second(b"Requests/sec: 81234,50\n").unwrap().unwrap_err();
        assert!(found.contains("81234,50") && found.contains("LC_ALL=C"), "{found}");
        for line in [
            "Requests/sec: 81 234.50",
            "Requests/sec:\t81\u{202f}234.50",
            "Requests/sec: 81.23 k",
            "Requests/sec: 81.23k",
            "Requests/sec: nan",
            "GET: 98 039.22 requests per second",
            "GET: 98\u{a0}039.22 requests per second",
        ] {
            let found = requests_a_second(line.as_bytes()).unwrap();
            assert!(found.unwrap_err().contains("is not a number above 0"), "{line}");
        }
    }

    #[test]
    fn several_figures_are_refused_and_all_are_named() {
        let output = b"SET: 90000.00 requests per second\nGET: 100000.00 requests per second\n";
        let why = requests_a_second(output).unwrap().unwrap_err();
        assert!(why.contains("set: 90000.00") && why.contains("get: 100000.00"), "{why}");
        let why = latency_ms(b"get: 1 requests per second, p50=2 msec\nset: p50=3 msec\n");
        assert!(why.unwrap().unwrap_err().contains("--metric"));
    }

    #[test]
    fn a_latency_is_the_median_or_else_the_average() {
        for (output, latency) in [
            ("    Latency     2.50ms  120.00us   9.0ms   80%\nRequests/sec: 100.0\n", 2.5),
            (" Latency 25.00us 1us 2us 90%\n  Latency Distribution\n     50%    3.00us\n", 0.003),
            (" 50.000%    1.20s \n 99.000%    2.00m \n", 1200.0),
            ("  Average:\t0.0250 secs\nRequests/sec:\t39.6\n", 25.0),
            ("  Average:\t0.0250 secs\n  50% in 0.0100 secs\n  99% in 0.1 secs\n", 10.0),
            ("Average: 2.0 ms\n  50.00% in 1.5000 ms\n", 1.5),
            ("GET: 1000.00 requests per second, p50=0.207 msec\n", 0.207),
            ("  latency summary (msec):\n   avg  min  p50  p95\n  0.2  0.1  0.151  0.3\n", 0.151),
        ] {
            let found = latency_ms(output.as_bytes()).unwrap().unwrap();
            assert!((found - latency).abs() < 1e-9, "{output}: {found}");
        }
        assert_eq!(latency_ms(b"Latency distribution:\nRequests/sec: 5\n"), None);
    }

    #[test]
    fn quantiles_are_read_where_a_load_prints_them() {
        for (output, p50, p99) in [
            ("    Latency     2.50ms  120.00us   9.0ms   80%\n", None, None),
            (" Latency Distribution\n  50%    3.00us\n  99%  1.50ms\n", Some(0.003), Some(1.5)),
            (" 50.000%    1.20s \n 99.000%    2.00s \n", Some(1200.0), Some(2000.0)),
            ("  50.00% in 0.0015 secs\n  99.00% in 0.0990 secs\n", Some(1.5), Some(99.0)),
            (
                "Percentage of the requests served within a certain time (ms)\n  50%      3\n  \
                 99%     12\n 100%     15 (longest request)\n",
                Some(3.0),
                Some(12.0),
            ),
            (
                "  latency summary (msec):\n   avg  min  p50  p95  p99  max\n  0.2  0.1  0.151  0.3 \
                 0.4 0.5\n",
                Some(0.151),
                Some(0.4),
            ),
        ] {
            let found = [50, 99].map(|percent| quantile_ms(output.as_bytes(), percent));
            for (found, expected) in found.into_iter().zip([p50, p99]) {
                let is_right = match (found, expected) {
                    (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
                    (found, expected) => found == expected,
                };
                assert!(is_right, "{output}: {found:?} for {expected:?}");
            }
        }
    }

    #[test]
    fn bytes_that_came_are_read_where_a_load_prints_them() {
        for (output, bytes) in [
            ("  1800 requests in 3.00s, 1.50GB read\nRequests/sec: 600\n", Some(3 << 29)),
            ("  Total data:\t12.00 MiB\n  Size/request: 1 MiB\n", Some(12 << 20)),
            ("  Total data:\t1048576 bytes\n", Some(1 << 20)),
            ("Total transferred:      2048 bytes\nHTML transferred: 1 bytes\n", Some(2048)),
            ("GET: 98039.22 requests per second, p50=0.2 msec\n", None),
            ("  0 requests in 3.00s, 0.00B read\n", None),
        ] {
            assert_eq!(taken_bytes(output.as_bytes()), bytes, "{output}");
        }
    }

    #[test]
    fn failed_answers_are_counted_by_what_each_load_prints() {
        for (output, count) in [
            ("  Non-2xx or 3xx responses: 20000\nRequests/sec: 7\n", Some("20000 answers")),
            ("  Socket errors: connect 1, read 20310, write 0, timeout 7\n", Some("20318 answers")),
            ("  Socket errors: connect 0, read 0, write 0, timeout 0\n", None),
            ("Failed requests:        0\nNon-2xx responses:      2000\n", Some("2000 answers")),
            ("Failed requests:        12\n   (Connect: 0, Length: 12)\n", Some("12 answers")),
            ("Status code distribution:\n  [200]\t1378 responses\n  [204] 2 responses\n", None),
            (
                "Status code distribution:\n  [200]\t1 responses\n  [503]\t44 responses\n\n\
                 Error distribution:\n  [6]\tGet \"http://h/\": EOF\n",
                Some("50 answers"),
            ),
            ("Error distribution:\n  [50] aborted due to deadline\n", None),
            ("Error from server: ERR unknown command\nGET: 9 requests per second\n", Some("1 ")),
            ("Complete requests:      100\nFailed requests:        0\n", None),
        ] {
            let found = failed_answers(output.as_bytes());
            assert_eq!(found.is_some(), count.is_some(), "{output}: {found:?}");
            assert!(found.is_none_or(|found| found.starts_with(count.unwrap())), "{output}");
        }
    }

    #[test]
    fn a_rate_that_is_offered_is_seen_in_the_command() {
        for command in [
            "wrk2 -t1 -c4 -d1s -R100 http://h/",
            "/usr/bin/wrk -R 100 http://h/",
            "wrk --rate=100 http://h/",
            "sleep 1; hey -z 1s -q 10 http://h/",
            "oha -q 10 http://h/",
            "redis-benchmark -t get --rps 1000 -q",
            "sh -c 'valkey-benchmark --rps=5'",
        ] {
            assert!(has_fixed_rate(command), "{command}");
        }
        for command in [
            "wrk -t1 -c4 -d1s http://h/",
            "redis-benchmark -t get -q",
            "ab -q -n 5 http://h/",
            "wrk http://h/ | grep -R x",
            "hey -z 1s http://h/",
        ] {
            assert!(!has_fixed_rate(command), "{command}");
        }
    }
}
