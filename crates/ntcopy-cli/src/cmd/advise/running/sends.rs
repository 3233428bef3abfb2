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

/// From how many bytes on a stream's sends are worth a hint here.
fn large_from_bytes() -> u32 {
    stream_bytes(socket::kernel_support())
}

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

    pub fn finish(self) -> Sends {
        let traced = self.tracing.and_then(|tracing| {
            tracing.finish().map_err(|error| format!("the kernel's tracing failed: {error}"))
        });
        match traced {
            Ok(lengths) if lengths.total_bytes() > 0 => Sends::Traced(lengths),
            Ok(_) => Sends::Unknown("none of its sends was traced".to_owned()),
            Err(why) => counted(self.before, counters(self.pid)).unwrap_or(Sends::Unknown(why)),
        }
    }
}

/// Those of the network namespace that the program is in.
fn counters(pid: Pid) -> Option<Counters> {
    socket::counters_of(pid).ok().flatten()
}

fn counted(before: Option<Counters>, after: Option<Counters>) -> Option<Sends> {
    let rose = after?.since(&before?).ok()?;
    let (bytes, hinted_bytes) = (rose.bytes, rose.hinted_bytes);
    (bytes > 0).then_some(Sends::Counted { bytes, hinted_bytes })
}

/// What was found out.
#[derive(Debug, PartialEq, Eq)]
pub enum Sends {
    Traced(Lengths),
    /// Counted on the sockets that opted in, in all of its network namespace.
    Counted {
        bytes: u64,
        hinted_bytes: u64,
    },
    /// Nothing, and why.
    Unknown(String),
}

impl Sends {
    /// The part of the bytes that leaves in sends that hints are for.
    fn large_part(&self) -> Option<f64> {
        let (large, all) = match self {
            Sends::Traced(lengths) => {
                (lengths.bytes_from(large_from_bytes().into()), lengths.total_bytes())
            }
            Sends::Counted { bytes, hinted_bytes } => (*hinted_bytes, *bytes),
            Sends::Unknown(_) => return None,
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
        let large = about_size(large_from_bytes().into());
        let Some(part) = self.large_part() else {
            let Sends::Unknown(why) = self else { return String::new() };
            return format!(
                "UNKNOWN: how long its sends are is not seen: {why}. After `ntcopy set --pid {pid}` the \
                 kernel counts it: ask again then (back: --off)."
            );
        };
        let (answer, part) = (self.answer(), percent(part));
        let by = match self {
            Sends::Traced(lengths) => format!(
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
    large_from_bytes: u32,
    why: Option<&'a str>,
}

impl Heard<'_> {
    pub fn of(sends: &Sends) -> Heard<'_> {
        let (by, why) = match sends {
            Sends::Traced(_) => (Some("tracepoint"), None),
            Sends::Counted { .. } => (Some("counters"), None),
            Sends::Unknown(why) => (None, Some(why.as_str())),
        };
        Heard {
            answer: sends.answer().to_lowercase(),
            by,
            large_part: sends.large_part(),
            large_from_bytes: large_from_bytes(),
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(bytes: &[u64]) -> Sends {
        Sends::Traced(Lengths { bytes: bytes.to_vec() })
    }

    #[test]
    fn the_length_of_the_sends_decides() {
        const MIB: u64 = 1 << 20;
        for (sends, answer) in [
            (traced(&[MIB, MIB, 100, 100]), "YES: 100"),
            (traced(&[MIB, 128 << 10, 128 << 10, 1 << 17, 1 << 17, 1 << 17, 1 << 19]), "YES"),
            (traced(&[&[MIB][..], &[64 << 10; 48]].concat()), "IN PART: 25"),
            (traced(&[64 << 10; 9]), "NO: 0"),
            (Sends::Counted { bytes: 1000, hinted_bytes: 20 }, "NO: 2"),
            (Sends::Unknown("only root may".to_owned()), "UNKNOWN"),
        ] {
            let sentence = sends.sentence(77);
            assert!(sentence.starts_with(answer), "{sentence}");
        }
        let unknown = Sends::Unknown("only root may".to_owned());
        assert!(unknown.sentence(77).contains("ntcopy set --pid 77"));
        assert_eq!(Heard::of(&unknown).large_part, None);
        let large = [traced(&[MIB]), traced(&[4096]), unknown].map(|sends| sends.is_large());
        assert_eq!(large, [Some(true), Some(false), None]);
    }
}
