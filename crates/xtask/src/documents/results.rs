//! The pages of results: the question, one table, and of each record the picture, a sentence, the
//! command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ntcopy_judge::Judged;

use super::chart::{self, Panel};
use super::index::{Index, Page, Part};
use super::{Error, GENERATED, RESULTS, outcomes};
use ntcopy_report::{table, text, verdict};

/// All pages and pictures, and the list of them.
pub(super) fn pages(
    index: &Index,
    records: &BTreeMap<String, Judged>,
) -> Result<BTreeMap<PathBuf, String>, Error> {
    let mut files = BTreeMap::new();
    let panels = index.picture.chart.iter().map(|one| {
        let record = index.record(records, &one.record)?;
        chart::panel(record, &one.chart)
    });
    let panels = panels.collect::<Result<Vec<Panel>, Error>>()?;
    let place = Path::new(RESULTS);
    files.insert(place.join(&index.picture.file), chart::picture(&panels, &index.picture.alt));
    for page in &index.page {
        let text = one(index, records, page, &mut files)?;
        files.insert(place.join(format!("{}.md", page.name)), text);
    }
    files.insert(place.join("README.md"), contents(index));
    Ok(files)
}

/// The picture of the guide's first page.
pub(super) fn picture(index: &Index) -> String {
    format!("![{}](../results/{})", index.picture.alt, index.picture.file)
}

fn contents(index: &Index) -> String {
    let mut out =
        format!("# Results\n\n<!-- {GENERATED} -->\n\n| page | what it answers |\n|---|---|\n");
    for page in &index.page {
        out.push_str(&format!("| [{}]({}.md) | {} |\n", page.title, page.name, page.question));
    }
    out.push_str("\n| machine | |\n|---|---|\n");
    for machine in &index.machine {
        let (name, signature) = (&machine.name, &machine.signature);
        out.push_str(&format!("| {name} (`{signature}`) | {} |\n", machine.about));
    }
    out
}

fn one(
    index: &Index,
    records: &BTreeMap<String, Judged>,
    page: &Page,
    files: &mut BTreeMap<PathBuf, String>,
) -> Result<String, Error> {
    let mut out = format!("# {}\n\n<!-- {GENERATED} -->\n\n", page.title);
    out.push_str(&format!("**{}**\n\n{}\n", page.question, page.read.trim()));
    let (mut rows, mut parts) = (String::new(), String::new());
    for (number, part) in page.part.iter().enumerate() {
        let record = index.record(records, &part.record)?;
        parts.push_str(&format!("\n## {}\n\n", part.title));
        if !part.chart.is_empty() {
            let panels = part.chart.iter().map(|chart| chart::panel(record, chart));
            let panels = panels.collect::<Result<Vec<Panel>, Error>>()?;
            let name = format!("{}-{}.svg", page.name, number + 1);
            files.insert(Path::new(RESULTS).join(&name), chart::picture(&panels, &part.title));
            parts.push_str(&format!("![{}]({name})\n\n", part.title));
        }
        let compared = outcomes::rows(record, &part.title, &part.modes);
        parts.push_str(&told(index, record, part, compared.is_some()));
        rows.push_str(&compared.unwrap_or_default());
    }
    if !rows.is_empty() {
        out.push_str(&format!("\n{}{rows}", outcomes::HEAD));
    }
    Ok(out + &parts)
}

/// What a record says: one sentence, the figures if nothing is compared, and the command that
/// measures it again.
fn told(index: &Index, record: &Judged, part: &Part, is_compared: bool) -> String {
    let mut out = String::new();
    let sentences = verdict::sentences(record);
    if let Some(sentence) = verdict::of_hint(record).or_else(|| sentences.into_iter().next()) {
        out.push_str(&format!("{sentence}\n\n"));
    }
    if let Some(note) = &part.note {
        out.push_str(&format!("{}\n\n", note.trim()));
    }
    if !is_compared {
        out.push_str(&format!("{}\n\n", figures(record)));
    }
    let place = index.record.get(&part.record).map_or("", String::as_str);
    out.push_str(&format!(
        "Machine: {}. Again: `{}`. Every figure: `ntcopy report` of \
         [{place}](../../bench/record/{place}/).\n",
        index.machine(record),
        text::shell_line(&record.header.again())
    ));
    out
}

/// What was measured.
fn figures(record: &Judged) -> String {
    table::document(record, Vec::new()).replace("\n\n\n", "\n\n").trim().to_owned()
}
