//! Keeping a page below its limit, however many records are on it.
//!
//! What a page could do without is marked when it is written, by comments, which the text of a
//! record cannot hold: it is escaped. A page that would be too large loses the least needed kind
//! of part, the oldest record's first; then the next kind. What stays says what is gone.

use maud::{Markup, PreEscaped, html};

/// No page is larger than this: below a megabyte of 10^6 bytes.
const MOST_BYTES: usize = 999_999;

/// Bytes that are kept free for the sentence about whole records that are not there.
const SENTENCE_BYTES: usize = 400;

/// A kind of part that a page can do without, the least needed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// A chart's second drawing, for phones.
    Narrow,
    /// A chart with its table.
    Chart,
    /// The figures of a record.
    Table,
    /// Sentences of the verdict beyond the first.
    Sentences,
    /// All there is of a record.
    Record,
}

const PARTS: [(Part, &str); 5] = [
    (Part::Narrow, "narrow"),
    (Part::Chart, "chart"),
    (Part::Table, "table"),
    (Part::Sentences, "sentences"),
    (Part::Record, "record"),
];

/// Where a record's section says what it lacks.
const REMARK: &str = "<!--remark-->";
/// Where the page says which records it lacks.
const ABSENT: &str = "<!--absent-->";

/// Marks a part of a record.
pub(super) fn part(part: Part, inside: &Markup) -> Markup {
    marked(part, "", inside)
}

/// Marks what belongs to the record of this number; parts of it are inside.
pub(super) fn of_record(number: usize, inside: &Markup) -> Markup {
    marked(Part::Record, &format!(" {number}"), inside)
}

fn marked(part: Part, number: &str, inside: &Markup) -> Markup {
    let name = name(part);
    PreEscaped(format!("<!--{name}{number}-->{}<!--/{name}-->", inside.0))
}

fn name(part: Part) -> &'static str {
    PARTS[part as usize].1
}

/// The place of the remark in a record's section.
pub(super) fn remark() -> Markup {
    PreEscaped(REMARK.to_owned())
}

/// The place of the sentence about records that are not there.
pub(super) fn absent() -> Markup {
    PreEscaped(ABSENT.to_owned())
}

/// The page without its marks, and below the limit. `oldest_first` has the number of every record.
pub(super) fn fitted(page: &str, oldest_first: &[usize]) -> String {
    below(page, oldest_first, MOST_BYTES)
}

fn below(page: &str, oldest_first: &[usize], most_bytes: usize) -> String {
    let pieces = pieces(page);
    let mut kept = Kept::of(&pieces, oldest_first.len());
    'all: for (part, _) in PARTS {
        for record in oldest_first {
            if kept.bytes <= most_bytes {
                break 'all;
            }
            kept.lose(*record, part);
            // Room for the sentence that is then due.
            if part == Part::Record && *record == oldest_first[0] {
                kept.bytes += SENTENCE_BYTES;
            }
        }
    }
    pieces.iter().map(|piece| kept.written(piece)).collect()
}

/// A piece of the page between two marks.
struct Piece<'a> {
    text: &'a str,
    /// Its record, and the least needed part that it is of.
    of: Option<(usize, Part)>,
}

fn pieces(page: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut around: Vec<(Part, usize)> = Vec::new();
    let mut rest = page;
    while !rest.is_empty() {
        let record = around.last().map_or(0, |(_, record)| *record);
        let of = around.iter().map(|(part, _)| (record, *part)).min();
        let begin = rest.find("<!--").unwrap_or(rest.len());
        pieces.push(Piece { text: &rest[..begin], of });
        rest = &rest[begin..];
        let Some(end) = rest.find("-->") else { break };
        let (mark, after) = rest.split_at(end + 3);
        let words = mark.trim_start_matches("<!--").trim_end_matches("-->");
        let (word, number) = words.split_once(' ').unwrap_or((words, ""));
        if word.starts_with('/') {
            around.pop();
        } else if let Some((part, _)) = PARTS.iter().find(|(_, name)| *name == word) {
            around.push((*part, number.parse().unwrap_or(record)));
        } else {
            // A place for a sentence.
            pieces.push(Piece { text: mark, of });
        }
        rest = after;
    }
    pieces
}

/// What the page still has.
struct Kept {
    /// The whole page.
    bytes: usize,
    /// The bytes of each part of each record, by its place.
    parts: Vec<[usize; PARTS.len()]>,
    /// The most needed part that each record has lost.
    lost: Vec<Option<Part>>,
}

impl Kept {
    fn of(pieces: &[Piece<'_>], records: usize) -> Kept {
        let mut kept =
            Kept { bytes: 0, parts: vec![[0; PARTS.len()]; records], lost: vec![None; records] };
        for piece in pieces.iter().filter(|piece| !is_place(piece.text)) {
            kept.bytes += piece.text.len();
            if let Some((record, part)) = piece.of {
                kept.parts[record][part as usize] += piece.text.len();
            }
        }
        kept
    }

    fn lose(&mut self, record: usize, part: Part) {
        let bytes = std::mem::take(&mut self.parts[record][part as usize]);
        if bytes == 0 {
            return;
        }
        let said = self.lost[record].map_or(0, |part| remark_on(part).len());
        self.lost[record] = Some(part);
        self.bytes = self.bytes + remark_on(part).len() - bytes - said;
    }

    fn written(&self, piece: &Piece<'_>) -> String {
        let lost = |record: usize| self.lost[record];
        if piece.of.is_some_and(|(record, part)| lost(record).is_some_and(|lost| part <= lost)) {
            return String::new();
        }
        match (piece.text, piece.of) {
            (REMARK, Some((record, _))) => lost(record).map_or_else(String::new, remark_on),
            (ABSENT, _) => {
                absent_of(self.lost.iter().filter(|lost| **lost == Some(Part::Record)).count())
            }
            (text, _) => text.to_owned(),
        }
    }
}

fn is_place(text: &str) -> bool {
    [REMARK, ABSENT].contains(&text)
}

/// What a record's section says of what it has lost.
fn remark_on(part: Part) -> String {
    let lacks = match part {
        Part::Narrow => "charts are drawn for wide screens alone",
        Part::Chart => "charts are left out",
        Part::Table => "charts and tables are left out",
        Part::Sentences => "charts and tables, and all but the first sentence on it, are left out",
        Part::Record => return String::new(),
    };
    let remark = html! {
        p class="details" {
            "To keep this page below a megabyte this record's " (lacks) ". "
            code { "ntcopy report" } " with this record alone makes a page that has it all."
        }
    };
    remark.into_string()
}

fn absent_of(count: usize) -> String {
    let (records, their) = match count {
        0 => return String::new(),
        1 => ("oldest record is".to_owned(), "it"),
        count => (format!("{count} oldest records are"), "them"),
    };
    let sentence = html! {
        p {
            "To keep this page below a megabyte the " (records) " left out. "
            code { "ntcopy report" } " with " (their) " alone makes a page of their own."
        }
    };
    sentence.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two records with 10 bytes of each kind, the second one twice as much of some.
    fn page() -> String {
        let of = |kind: Part, letter: &str| part(kind, &PreEscaped(letter.repeat(1000)));
        let record = |number: usize| {
            let chart = part(
                Part::Chart,
                &html! { "chart" (number) (of(Part::Narrow, "n")) (PreEscaped("c".repeat(1000))) },
            );
            let all = html! { h2 { (number) } (remark()) (chart) (of(Part::Table, "t")) };
            of_record(number, &all)
        };
        html! { h1 { "page" } (absent()) (record(0)) (record(1)) }.into_string()
    }

    #[test]
    fn a_page_with_room_only_loses_its_marks() {
        let fits = below(&page(), &[1, 0], 10_000);
        assert!(!fits.contains("<!--"), "{fits}");
        assert_eq!(fits.matches('n').count(), 2000);
        assert!(!fits.contains("megabyte"));
    }

    #[test]
    fn the_oldest_record_loses_first_and_the_least_needed_first() {
        let page = page();
        let whole = below(&page, &[1, 0], usize::MAX).len();
        let has = |most: usize| {
            let fits = below(&page, &[1, 0], most);
            assert!(fits.len() <= most, "{} of {most}", fits.len());
            let count = |run: &str| fits.matches(&run.repeat(1000)).count();
            (count("n"), count("c"), count("t"), fits.matches("<h2>").count())
        };
        assert_eq!(has(whole), (2, 2, 2, 2));
        assert_eq!(has(whole - 1), (1, 2, 2, 2));
        assert_eq!(has(whole - 1000), (0, 2, 2, 2));
        assert_eq!(has(whole - 2000), (0, 1, 2, 2));
        assert_eq!(has(whole - 3000), (0, 0, 2, 2));
        assert_eq!(has(1000), (0, 0, 0, 2));
    }

    #[test]
    fn a_record_says_what_it_has_lost_and_the_page_which_records() {
        let page = page();
        let whole = below(&page, &[1, 0], usize::MAX).len();
        let fits = below(&page, &[1, 0], whole - 1);
        let (zeroth, first) = fits.split_at(fits.find("<h2>1").unwrap());
        assert!(first.contains("drawn for wide screens alone") && !zeroth.contains("megabyte"));
        let none = below(&page, &[1, 0], 100);
        assert!(none.contains("the 2 oldest records are left out"), "{none}");
        assert!(!none.contains("<h2>"));
    }
}
