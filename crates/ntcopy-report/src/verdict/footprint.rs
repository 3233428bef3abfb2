//! What is said of an instrument that finds what calls displace.

use ntcopy_judge::stats::footprint::{Check, How, LevelFigures};

/// How far known displacers are off, and why if they are; and what cannot be seen.
pub(super) fn sentences(level: &LevelFigures) -> [String; 2] {
    let (name, least) = (&level.level, level.least_lines);
    let seen = format!("{name}: fewer than {least:.0} lines read cannot be seen.");
    [format!("{name}: {}", checked(level)), seen]
}

fn checked(level: &LevelFigures) -> String {
    let (good, bad): (Vec<&Check>, Vec<&Check>) =
        level.checks.iter().partition(|check| check.agrees);
    let words = |check: &Check| {
        let how = match check.how {
            How::Read => "lines read",
            How::Flushed => "primed lines flushed",
            How::WrittenNt => "lines written past the caches",
        };
        format!("{:.0} {how} are found as {:.0}", check.known_lines, check.found_lines)
    };
    if bad.is_empty() {
        let all: Vec<String> = good.into_iter().map(words).collect();
        return format!("Known displacers are found within 5 %: {}.", all.join(", "));
    }
    let why = |check: &Check| match check.how {
        How::Read => {
            "what is read is not what leaves: replacement is not in order of use, or the \
                 prefetcher brings lines of its own"
        }
        How::Flushed => {
            "the clock takes hits for misses or misses for hits: interrupts, the host, or others \
                 in the cache"
        }
        How::WrittenNt => {
            "this CPU lets such stores through the cache, or its buffers displace lines"
        }
    };
    let all: Vec<String> = bad
        .iter()
        .map(|check| format!("{} ({:+.1} %): {}", words(check), check.off * 100.0, why(check)))
        .collect();
    format!("Here the instrument is off by more than 5 %. {}.", all.join(". "))
}

#[cfg(test)]
mod tests;
