//! What a line of a hot set takes beside each mode, as bars.

use maud::{Markup, html};
use ntcopy_record::{ExperimentKind, Record};

use super::room::{Part, of_record, part};
use crate::plot::slot;
use crate::retention::hot::{self, Hot};

/// Hot sets that are drawn: those that plain copies or sends slow down most.
const MOST: usize = 4;
/// Pixels of a bar and of what is between two.
const BAR: u32 = 22;
const GAP: u32 = 6;
/// Pixels of the words above a hot set's bars.
const TITLE: u32 = 26;
/// Pixels before the bars, for the modes' names, and after them, for the figures.
const BEFORE: u32 = 76;
const AFTER: u32 = 70;
/// Width of the drawings for screens and for phones.
const WIDE: u32 = 760;
const NARROW: u32 = 360;

/// The bars of the newest record of hot sets that is a timing.
pub(super) fn section(records: &[Record]) -> Markup {
    let ours = records.iter().enumerate().filter(|(_, record)| {
        record.header.experiment == ExperimentKind::Retention
            && record.header.not_a_timing.is_none()
    });
    let Some((index, record)) = ours.max_by_key(|(_, record)| record.header.started_unix_ns) else {
        return html! {};
    };
    let mut sets = hot::all(record);
    sets.sort_by(|a, b| b.slow_down().total_cmp(&a.slow_down()));
    sets.truncate(MOST);
    if sets.is_empty() {
        return html! {};
    }
    let drawn = html! {
        figure class="bars" {
            figcaption {
                span id="bars" { "Nanoseconds a line of a hot set takes. Shorter is better." }
            }
            (drawing("wide", &sets, WIDE))
            (part(Part::Narrow, &drawing("narrow", &sets, NARROW)))
            p class="details" {
                "The record is " a href=(format!("#record-{index}")) { (record.header.id) } "."
            }
        }
    };
    of_record(index, &part(Part::Chart, &drawn))
}

fn drawing(class: &str, sets: &[Hot], width: u32) -> Markup {
    let most = sets.iter().flat_map(|hot| &hot.lines).map(|(_, ns)| *ns).fold(0.0, f64::max);
    let all: u32 = sets.iter().map(height).sum();
    let tops = sets.iter().scan(0, |top, hot| {
        let mine = *top;
        *top += height(hot);
        Some(mine)
    });
    html! {
        svg class=(class) viewBox=(format!("0 0 {width} {all}")) role="img" aria-labelledby="bars" {
            @for (hot, top) in sets.iter().zip(tops) { (one(hot, top, width, most)) }
        }
    }
}

/// A line of words, and a bar a mode.
fn height(hot: &Hot) -> u32 {
    TITLE + hot.lines.len() as u32 * (BAR + GAP) + 2 * GAP
}

fn one(hot: &Hot, top: u32, width: u32, most: f64) -> Markup {
    let room = f64::from(width - BEFORE - AFTER);
    html! {
        g class="start" {
            text x="0" y=(top + TITLE - 8) { (hot.size()) ", beside " (hot.beside) }
        }
        @for (row, (mode, ns)) in (0..).zip(&hot.lines) {
            @let y = top + TITLE + row * (BAR + GAP);
            @let long = (ns / most * room).round().max(1.0) as u32;
            g class="end" { text x=(BEFORE - GAP) y=(y + 16) { (mode) } }
            rect class=(colour(mode, row)) x=(BEFORE) y=(y) width=(long) height=(BAR) {}
            g class="start" { text x=(BEFORE + long + GAP) y=(y + 16) { (format!("{ns:.1} ns")) } }
        }
    }
}

/// The colour that the mode has in plots; a victim that is left alone has none.
fn colour(mode: &str, row: u32) -> String {
    if mode == "idle" { "idle".to_owned() } else { format!("mode m{}", slot(mode, row as usize)) }
}
