//! How a record travels: as lines of text among whatever else a node prints.
//!
//! Every line begins with [`PREFIX`]; all others are not ours and are passed over. A record
//! is one `begin` line (what it is, its lengths and its BLAKE3 digest, as JSON), `data` lines
//! numbered from 0 (zstd, base64), and an `end` line. What is not there to the last byte is not
//! taken for a record. The last line of all is `done`: without it the node was cut short.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ntcopy_record::{file, foreign};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{NodeFacts, Piece, Received};

/// How every line begins; the number is the format's version.
pub const PREFIX: &str = "ntcopy-survey-1 ";

/// Bytes that a data line carries: below the 16 KiB at which container logs are split.
const CHUNK_BYTES: usize = 6000;
/// No record is larger when packed: a node may be broken, and must not take all memory.
const LARGEST_PACKED_BYTES: u64 = 16 << 20;
/// Packed as small as goes in a moment.
const ZSTD_LEVEL: i32 = 12;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Begin {
    #[serde(flatten)]
    facts: NodeFacts,
    asked: String,
    code: i32,
    raw_bytes: u64,
    packed_bytes: u64,
    blake3: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Failed {
    asked: Option<String>,
    why: String,
}

pub fn write_record(out: &mut dyn Write, record: &Received) -> io::Result<()> {
    let packed = zstd::bulk::compress(&record.raw, ZSTD_LEVEL)?;
    let begin = Begin {
        facts: record.facts.clone(),
        asked: record.asked.clone(),
        code: record.code,
        raw_bytes: record.raw.len() as u64,
        packed_bytes: packed.len() as u64,
        blake3: blake3::hash(&record.raw).to_hex().to_string(),
    };
    writeln!(out, "{PREFIX}begin {}", serde_json::to_string(&begin)?)?;
    for (number, chunk) in packed.chunks(CHUNK_BYTES).enumerate() {
        writeln!(out, "{PREFIX}data {number} {}", BASE64.encode(chunk))?;
    }
    writeln!(out, "{PREFIX}end")?;
    out.flush()
}

/// Writes that an experiment gave no record.
pub fn write_failure(out: &mut dyn Write, asked: &str, why: &str) -> io::Result<()> {
    let failed = Failed { asked: Some(asked.to_owned()), why: why.to_owned() };
    writeln!(out, "{PREFIX}failed {}", serde_json::to_string(&failed)?)?;
    out.flush()
}

/// Writes that nothing more comes.
pub fn write_done(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{PREFIX}done")?;
    out.flush()
}

/// Reads what a node prints, line by line.
#[derive(Debug, Default)]
pub struct Reader {
    open: Option<Open>,
    is_done: bool,
    /// What is wrong with the record was said: the rest of its lines is passed over.
    is_told: bool,
}

/// A record of which the end is still to come.
#[derive(Debug)]
struct Open {
    begin: Begin,
    packed: Vec<u8>,
    chunks: usize,
}

impl Reader {
    /// Takes a line, with or without its newline; gives what it completes.
    pub fn line(&mut self, line: &str) -> Option<Piece> {
        let line = line.trim_end_matches(['\n', '\r']).strip_prefix(PREFIX)?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let taken = match word {
            "begin" => self.begin(rest),
            "data" | "end" if self.is_told => return None,
            "data" => self.data(rest).map(|()| None),
            "end" => self.end().map(Some),
            "failed" => parsed(rest)
                .map(|Failed { asked, why }| Some(Piece::Failed { asked, why }))
                .map_err(|error| format!("a `failed` line that cannot be read: {error}")),
            "done" => {
                self.is_done = true;
                return Some(self.cut_short().unwrap_or(Piece::Done));
            }
            _ => Err(format!("a line of a kind that this ntcopy does not know: {word:.20}")),
        };
        match taken {
            Ok(piece) => piece,
            Err(why) => Some(self.broken(why)),
        }
    }

    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// At the end of all lines: the record that was cut short, if one was.
    pub fn cut_short(&mut self) -> Option<Piece> {
        let open = self.open.take()?;
        let (had, wanted) = (open.packed.len(), open.begin.packed_bytes);
        let why = format!("its record was cut short after {had} of {wanted} bytes");
        Some(Piece::Failed { asked: Some(open.begin.asked), why })
    }

    fn broken(&mut self, why: String) -> Piece {
        self.is_told = true;
        let asked = self.open.take().map(|open| open.begin.asked);
        Piece::Failed { asked, why: format!("its record did not arrive whole: {why}") }
    }

    fn begin(&mut self, text: &str) -> Result<Option<Piece>, String> {
        // What was open has no end, and will have none.
        let earlier = self.cut_short();
        self.is_told = false;
        let begin: Begin =
            parsed(text).map_err(|error| format!("a `begin` line that cannot be read: {error}"))?;
        if begin.packed_bytes > LARGEST_PACKED_BYTES || begin.raw_bytes > file::LARGEST_BYTES {
            return Err(format!("it is to have {} bytes, too many", begin.raw_bytes));
        }
        self.open = Some(Open { begin, packed: Vec::new(), chunks: 0 });
        Ok(earlier)
    }

    fn data(&mut self, text: &str) -> Result<(), String> {
        let open = self.open.as_mut().ok_or("a `data` line without its `begin`")?;
        let (number, chunk) = text.split_once(' ').ok_or("a `data` line without data")?;
        if number.parse() != Ok(open.chunks) {
            return Err(format!("line {} is missing", open.chunks));
        }
        let chunk = BASE64.decode(chunk).map_err(|error| format!("line {number}: {error}"))?;
        if open.packed.len() as u64 + chunk.len() as u64 > open.begin.packed_bytes {
            return Err("there is more of it than it said".to_owned());
        }
        open.packed.extend_from_slice(&chunk);
        open.chunks += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<Piece, String> {
        let open = self.open.as_ref().ok_or("an `end` line without its `begin`")?;
        let begin = &open.begin;
        if open.packed.len() as u64 != begin.packed_bytes {
            let had = open.packed.len();
            return Err(format!("{had} of {} bytes came", begin.packed_bytes));
        }
        let length = usize::try_from(begin.raw_bytes).map_err(|error| error.to_string())?;
        let raw =
            zstd::bulk::decompress(&open.packed, length).map_err(|error| error.to_string())?;
        if blake3::hash(&raw).to_hex().as_str() != begin.blake3 {
            return Err("its digest differs".to_owned());
        }
        let Begin { facts, asked, code, .. } = begin.clone();
        self.open = None;
        Ok(Piece::Record(Received { facts, asked, code, raw }))
    }
}

/// What a node says of itself, safe to print.
fn parsed<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_value(foreign::visible_value(serde_json::from_str(json)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Received {
        let mut raw = Vec::new();
        for number in 0..20_000_u64 {
            raw.extend_from_slice(blake3::hash(&number.to_le_bytes()).as_bytes());
        }
        let facts = NodeFacts { fleet: "fleet".into(), node: "n1".into() };
        Received { facts, asked: "memcpy --quick".into(), code: 0, raw }
    }

    fn sent() -> Vec<String> {
        let mut out = Vec::new();
        write_record(&mut out, &record()).unwrap();
        write_done(&mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    fn read(lines: &[String]) -> (Vec<Piece>, Reader) {
        let mut reader = Reader::default();
        let mut pieces: Vec<Piece> = lines.iter().filter_map(|line| reader.line(line)).collect();
        pieces.extend(reader.cut_short());
        (pieces, reader)
    }

    #[test]
    fn a_record_arrives_as_it_was_among_the_lines_of_others() {
        let lines = sent();
        assert!(lines.len() > 50 && lines.iter().all(|line| line.len() < 16 << 10));
        let mut mixed = vec!["srun: hello".to_owned()];
        for line in lines {
            mixed.extend([format!("{line}\r\n"), "noise".to_owned()]);
        }
        let (pieces, reader) = read(&mixed);
        assert_eq!(pieces, [Piece::Record(record()), Piece::Done]);
        assert!(reader.is_done());
    }

    #[test]
    fn any_line_that_is_lost_is_noticed() {
        let lines = sent();
        for lost in 0..lines.len() - 1 {
            let mut lines = lines.clone();
            lines.remove(lost);
            let (pieces, _) = read(&lines);
            assert!(!pieces.iter().any(|piece| matches!(piece, Piece::Record(_))), "line {lost}");
            assert!(pieces.iter().any(|piece| matches!(piece, Piece::Failed { .. })));
        }
    }

    #[test]
    fn a_byte_that_is_changed_is_noticed() {
        let lines = sent();
        let mut changed = lines.clone();
        let at = changed[7].len() - 10;
        let other = if changed[7].as_bytes()[at] == b'A' { "B" } else { "A" };
        changed[7].replace_range(at..=at, other);
        assert!(matches!(&read(&changed).0[0], Piece::Failed { asked: Some(asked), .. }
            if asked == "memcpy --quick"));
    }

    #[test]
    fn what_is_cut_short_is_said() {
        let lines = sent();
        let (pieces, reader) = read(&lines[..10]);
        let [Piece::Failed { asked, why }] = pieces.as_slice() else { panic!("{pieces:?}") };
        assert_eq!(asked.as_deref(), Some("memcpy --quick"));
        assert!(why.contains("cut short"), "{why}");
        assert!(!reader.is_done());
    }

    #[test]
    fn a_record_that_says_it_is_huge_takes_no_memory() {
        let line = format!(
            "{PREFIX}begin {{\"fleet\":\"f\",\"node\":\"n\",\"asked\":\"a\",\"code\":0,\
             \"raw_bytes\":{},\"packed_bytes\":1,\"blake3\":\"\"}}",
            u64::MAX
        );
        let mut reader = Reader::default();
        assert!(matches!(reader.line(&line), Some(Piece::Failed { why, .. })
            if why.contains("too many")));
    }

    #[test]
    fn a_failure_arrives_with_its_reason() {
        let mut out = Vec::new();
        write_failure(&mut out, "unix", "no such\n\u{1b}kernel").unwrap();
        let (pieces, _) = read(&[String::from_utf8(out).unwrap()]);
        let why = "no such\\u{a}\\u{1b}kernel".to_owned();
        assert_eq!(pieces, [Piece::Failed { asked: Some("unix".to_owned()), why }]);
    }
}
