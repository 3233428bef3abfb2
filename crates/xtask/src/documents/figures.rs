//! Figures in documents: `<!--=NAME-->1.31x (1.27-1.32)<!--=-->`, and blocks of generated lines
//! between `<!-- begin:NAME -->` and `<!-- end:NAME -->`.

use std::collections::BTreeMap;
use std::path::Path;

use ntcopy_judge::claims::{Point, Question, least, tally, three};
use ntcopy_judge::stats::{self, Tally, WALKS, WALKS_P99};
use ntcopy_judge::{Judged, Measured};
use ntcopy_record::Cell;

use super::index::{self, Asks, Figure, Index};
use super::{Error, results};
use ntcopy_report::text;

/// Before the name of a figure.
const OPEN: &str = "<!--=";
const SHUT: &str = "-->";
const CLOSE: &str = "<!--=-->";
const PICTURE: &str = "picture";

/// Every figure and block, by its name.
pub(super) fn all(
    index: &Index,
    records: &BTreeMap<String, Judged>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut figures = BTreeMap::new();
    for (name, figure) in &index.figure {
        let record = index.record(records, &figure.record)?;
        let in_figure = |what: Error| Error::Index(format!("figure.{name}: {what}"));
        figures.insert(name.clone(), one(record, figure).map_err(in_figure)?);
    }
    figures.insert(PICTURE.to_owned(), results::picture(index));
    Ok(figures)
}

fn wrong(what: impl Into<String>) -> Error {
    Error::Index(what.into())
}

/// What a figure says of a record.
pub(super) fn one(record: &Judged, figure: &Figure) -> Result<String, Error> {
    let cells = index::cells(record, &figure.cells)?;
    match figure.is.as_str() {
        "range" | "best" | "wins" | "losses" | "cells" => of_several(record, figure, &cells),
        _ => match cells.as_slice() {
            [cell] => of_one(record, figure, cell),
            cells => Err(wrong(format!("{} cells are meant, and one can be printed", cells.len()))),
        },
    }
}

/// The metric of that name.
pub(super) fn metric(name: &str) -> Result<&'static str, Error> {
    stats::metric(name)
        .map(|metric| metric.name)
        .ok_or_else(|| wrong(format!("no metric '{name}'")))
}

/// What a figure asks of its record.
fn question<'r>(record: &'r Judged, figure: &'r Figure) -> Result<Question<'r>, Error> {
    let metric = metric(&figure.metric)?;
    let [patches, hint, at_most] = three(record, metric);
    let asked = match figure.asks {
        Some(Asks::Patches) => patches,
        Some(Asks::Hint) => hint,
        Some(Asks::AtMost) => at_most,
        None => Some(Question { mode: &figure.mode, other: &figure.by, metric }),
    };
    asked.ok_or_else(|| wrong(format!("the record has not the modes for {:?}", figure.asks)))
}

fn of_several(record: &Judged, figure: &Figure, cells: &[&Cell]) -> Result<String, Error> {
    let question = question(record, figure)?;
    let all: Vec<Point<'_>> = cells.iter().filter_map(|cell| question.of(record, cell)).collect();
    let most = all.iter().max_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio));
    let (Some(least), Some(most)) = (least(&all), most) else {
        return Err(wrong(format!("{} and {} have no cell", question.mode, question.other)));
    };
    let Tally { wins, losses, .. } = tally(&all);
    let ratio = |one: &Point<'_>| text::ratio(one.versus.ratio);
    Ok(match figure.is.as_str() {
        "range" => format!("{} to {}", ratio(least), ratio(most)),
        "best" => most.versus.result().to_string(),
        "wins" => wins.to_string(),
        "losses" => losses.to_string(),
        _ => all.len().to_string(),
    })
}

fn of_one(record: &Judged, figure: &Figure, cell: &Cell) -> Result<String, Error> {
    let all = record.measured(cell);
    let asked = question(record, figure)?;
    let mine = all.iter().find(|one| one.mode == asked.mode);
    let mine = mine.ok_or_else(|| wrong(format!("no mode '{}'", asked.mode)))?;
    let tails = |one: &Measured<'_>| one.line_ns(0.5).zip(one.line_ns(0.99));
    let told = match figure.is.as_str() {
        "ns" => tails(mine).map(|(p50, p99)| format!("{p50:.1} (p99 {p99:.1})")),
        "ratio" => asked.of(record, cell).map(|point| point.versus.result().to_string()),
        "victim" => mine
            .versus(WALKS)
            .zip(mine.versus(WALKS_P99))
            .map(|(p50, p99)| format!("{} at p50, {} at p99", p50.result(), p99.result())),
        other => return Err(wrong(format!("nothing is called is = \"{other}\""))),
    };
    told.ok_or_else(|| wrong("too few samples"))
}

/// A document with its figures, and the names of those that it has.
pub(super) fn spliced(
    path: &Path,
    text: &str,
    figures: &BTreeMap<String, String>,
) -> Result<(String, Vec<String>), Error> {
    let (mut out, mut used) = (String::with_capacity(text.len()), Vec::new());
    let (mut rest, mut is_code) = (text, false);
    let mut line = 1;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let this = &rest[..end];
        let fail = |what: String| Error::Marker { path: path.to_owned(), line, what };
        is_code ^= this.starts_with("```");
        let block = this.trim().strip_prefix("<!-- begin:").and_then(|s| s.strip_suffix(" -->"));
        if let (false, Some(name)) = (is_code, block) {
            let close = format!("<!-- end:{name} -->");
            let figure = figures.get(name).ok_or_else(|| fail(format!("no block '{name}'")))?;
            let until = rest.find(&close).ok_or_else(|| fail(format!("no `{close}` follows")))?;
            out.push_str(&format!("{this}{figure}\n"));
            used.push(name.to_owned());
            line += rest[..until].matches('\n').count();
            rest = &rest[until..];
            continue;
        }
        if is_code || !this.contains(OPEN) {
            out.push_str(this);
        } else {
            out.push_str(&inline(this, figures, &mut used).map_err(fail)?);
        }
        rest = &rest[end..];
        line += 1;
    }
    Ok((out, used))
}

/// A line with its figures; nothing is put into code.
fn inline(
    line: &str,
    figures: &BTreeMap<String, String>,
    used: &mut Vec<String>,
) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(OPEN) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let name = from[OPEN.len()..].split(SHUT).next().unwrap_or_default();
        if line[..line.len() - from.len()].matches('`').count() % 2 == 1 {
            out.push_str(OPEN);
            rest = &from[OPEN.len()..];
            continue;
        }
        let figure = figures.get(name).ok_or_else(|| {
            format!("no figure '{name}': bench/record/INDEX.toml names those that there are")
        })?;
        let head = OPEN.len() + name.len() + SHUT.len();
        let tail = from.get(head..).and_then(|tail| Some((tail, tail.find(CLOSE)?)));
        let (tail, end) = tail.ok_or_else(|| format!("'{name}' has no `{CLOSE}` on its line"))?;
        out.push_str(&format!("{OPEN}{name}{SHUT}{figure}{CLOSE}"));
        used.push(name.to_owned());
        rest = &tail[end + CLOSE.len()..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> BTreeMap<String, String> {
        [("a", "7.0"), ("lines", "| x |\n| y |")].map(|(n, f)| (n.to_owned(), f.to_owned())).into()
    }

    #[test]
    fn figures_are_replaced_in_their_places_and_nowhere_else() {
        let text = "# T\n\nIt is <!--=a-->6.1<!--=--> ns, <!--=a-->x<!--=-->, `<!--=a-->` `<!--=-->`.\n\
                    ```\n<!--=a-->\n```\n<!-- begin:lines -->\nold\n<!-- end:lines -->\nend";
        let (new, used) = spliced(Path::new("x.md"), text, &figures()).unwrap();
        let wanted = "# T\n\nIt is <!--=a-->7.0<!--=--> ns, <!--=a-->7.0<!--=-->, `<!--=a-->` `<!--=-->`.\n\
                      ```\n<!--=a-->\n```\n<!-- begin:lines -->\n| x |\n| y |\n<!-- end:lines -->\n\
                      end";
        assert_eq!(new, wanted);
        assert_eq!(used, ["a", "a", "lines"]);
        assert_eq!(spliced(Path::new("x.md"), &new, &figures()).unwrap().0, new);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said =
            |text: &str| spliced(Path::new("x.md"), text, &figures()).unwrap_err().to_string();
        assert!(said("a\nb <!--=b-->1<!--=-->\n").starts_with("x.md:2: no figure 'b'"));
        assert!(said("<!--=a-->1\n<!--=-->\n").starts_with("x.md:1: 'a' has no"));
        assert!(said("\n\n<!-- begin:lines -->\n").starts_with("x.md:3: no `<!-- end:lines -->`"));
        assert!(said("<!-- begin:no -->\n").starts_with("x.md:1: no block 'no'"));
    }
}
