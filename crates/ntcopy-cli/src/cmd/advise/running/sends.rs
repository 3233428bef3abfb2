//! How long a program's sends are: what decides whether a hint is for it.

use ntcopy::recommended::stream_bytes;
use ntcopy::socket::{self, Counters};
use ntcopy_inflight::Pid;
use ntcopy_inflight::lengths::{Lengths, Tracing};
use ntcopy_report::text::{about_size, percent};
use serde::Serialize;

/// From this part of its bytes on that leave in large sends, hints are for a program.
const MOST: f64 = 0.5;
/// Below this part there is next to nothing to hint.
const LITTLE: f64 = 0.1;

/// What looks at the sends.
pub struct Looking {
    pid: Pid,
    tracing: Result<Tracing, String>,
    before: Option<Counters>,
}

impl Looking {
    pub fn start(pids: &[Pid]) -> Looking {
        let pid = pids.first().copied().unwrap_or_default();
        Looking { pid, tracing: Tracing::start(pids), before: counters(pid) }
    }

    pub fn finish(self) -> Evidence {
        let traced = self.tracing.and_then(|tracing| {
            tracing.finish().map_err(|error| format!("the kernel's tracing failed: {error}"))
        });
        match traced {
            Ok(lengths) if lengths.total_bytes() > 0 => Evidence::Traced(lengths),
            Ok(_) => Evidence::Unknown("none of its sends was traced".to_owned()),
            Err(why) => counted(self.before, counters(self.pid)).unwrap_or(Evidence::Unknown(why)),
        }
    }
}

/// Those of the network namespace that the program is in.
fn counters(pid: Pid) -> Option<Counters> {
    socket::counters_of(pid).ok().flatten()
}

fn counted(before: Option<Counters>, after: Option<Counters>) -> Option<Evidence> {
    let rose = after?.since(&before?).ok()?;
    let (bytes, hinted_bytes) = (rose.bytes, rose.hinted_bytes);
    (bytes > 0).then_some(Evidence::Counted { bytes, hinted_bytes })
}

/// What was found out.
#[derive(Debug, PartialEq, Eq)]
pub enum Evidence {
    Traced(Lengths),
    /// Counted on the sockets that opted in, in all of its network namespace.
    Counted {
        bytes: u64,
        hinted_bytes: u64,
    },
    /// Nothing, and why.
    Unknown(String),
}

/// How long the sends are, relative to what hints are for.
pub struct Sends {
    evidence: Evidence,
    /// From how many bytes on a send is worth a hint here.
    large_from_bytes: u64,
}

impl Sends {
    /// `advised_bytes` is the number that the records of this machine give.
    pub fn new(evidence: Evidence, advised_bytes: Option<u64>) -> Sends {
        let recommended = || stream_bytes(socket::kernel_support()).into();
        Sends { evidence, large_from_bytes: advised_bytes.unwrap_or_else(recommended) }
    }

    /// The part of the bytes that leaves in sends that hints are for.
    fn large_part(&self) -> Option<f64> {
        let (large, all) = match &self.evidence {
            Evidence::Traced(lengths) => {
                (lengths.bytes_from(self.large_from_bytes), lengths.total_bytes())
            }
            Evidence::Counted { bytes, hinted_bytes } => (*hinted_bytes, *bytes),
            Evidence::Unknown(_) => return None,
        };
        Some(large as f64 / all as f64)
    }

    /// Whether at least a part of the bytes leaves in sends that hints are for; none where nobody
    /// knows.
    pub fn is_large(&self) -> Option<bool> {
        self.large_part().map(|part| part >= LITTLE)
    }

    fn answer(&self) -> &'static str {
        match self.large_part() {
            Some(part) if part >= MOST => "YES",
            Some(part) if part < LITTLE => "NO",
            Some(_) => "IN PART",
            None => "UNKNOWN",
        }
    }

    /// The answer and what it goes by.
    pub fn sentence(&self, pid: Pid) -> String {
        let large = about_size(self.large_from_bytes);
        let Some(part) = self.large_part() else {
            let Evidence::Unknown(why) = &self.evidence else { return String::new() };
            return format!(
                "UNKNOWN: how long its sends are is not seen: {why}. After `ntcopy set --pid {pid}` the \
                 kernel counts it: ask again then (back: --off)."
            );
        };
        let (answer, part) = (self.answer(), percent(part));
        let by = match &self.evidence {
            Evidence::Traced(lengths) => format!(
                "{part} of its bytes leave in sends of {large} and more ({} sends seen)",
                lengths.bytes.len()
            ),
            _ => format!(
                "{part} of the bytes on sockets that opted in were hinted, as this network \
                 namespace counts"
            ),
        };
        let then = match self.is_large() {
            Some(false) => "Hints are for large sends: it would have to write more at a time",
            _ => {
                "These gain where they come from more data than the caches hold, and not where they \
                 are the same few MiB again and again"
            }
        };
        format!("{answer}: {by}. {then}.")
    }
}

/// What programs are told of it.
#[derive(Serialize)]
pub struct Heard<'a> {
    answer: String,
    by: Option<&'static str>,
    large_part: Option<f64>,
    large_from_bytes: u64,
    why: Option<&'a str>,
}

impl Heard<'_> {
    pub fn of(sends: &Sends) -> Heard<'_> {
        let (by, why) = match &sends.evidence {
            Evidence::Traced(_) => (Some("tracepoint"), None),
            Evidence::Counted { .. } => (Some("counters"), None),
            Evidence::Unknown(why) => (None, Some(why.as_str())),
        };
        Heard {
            answer: sends.answer().to_lowercase(),
            by,
            large_part: sends.large_part(),
            large_from_bytes: sends.large_from_bytes,
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(bytes: &[u64]) -> Evidence {
        Evidence::Traced(Lengths { bytes: bytes.to_vec() })
    }

    fn by(evidence: Evidence) -> Sends {
        Sends::new(evidence, None)
    }

    #[test]
    fn the_number_is_that_of_the_records_where_there_are_any() {
        let advised = |bytes| Sends::new(traced(&[128 << 10; 9]), bytes);
        assert!(advised(Some(128 << 10)).sentence(77).starts_with("YES: 100 % of its bytes"));
        assert!(advised(Some(256 << 10)).sentence(77).starts_with("NO: 0"));
        assert_eq!(advised(None).is_large(), Some(false), "what is recommended");
    }

    #[test]
    fn the_length_of_the_sends_decides() {
        const MIB: u64 = 1 << 20;
        for (evidence, answer) in [
            (traced(&[MIB, MIB, 100, 100]), "YES: 100"),
            (traced(&[MIB, 128 << 10, 128 << 10, 1 << 17, 1 << 17, 1 << 17, 1 << 19]), "YES"),
            (traced(&[&[MIB][..], &[64 << 10; 48]].concat()), "IN PART: 25"),
            (traced(&[64 << 10; 9]), "NO: 0"),
            (Evidence::Counted { bytes: 1000, hinted_bytes: 20 }, "NO: 2"),
            (Evidence::Unknown("only root may".to_owned()), "UNKNOWN"),
        ] {
            let sentence = by(evidence).sentence(77);
            assert!(sentence.starts_with(answer), "{sentence}");
        }
        let unknown = by(Evidence::Unknown("only root may".to_owned()));
        assert!(unknown.sentence(77).contains("ntcopy set --pid 77"));
        assert_eq!(Heard::of(&unknown).large_part, None);
        let large =
            [by(traced(&[MIB])), by(traced(&[4096])), unknown].map(|sends| sends.is_large());
        assert_eq!(large, [Some(true), Some(false), None]);
    }
}
