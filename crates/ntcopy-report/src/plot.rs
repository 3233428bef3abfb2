//! Charts, drawn.

mod axis;
mod bars;
mod chart;
pub(crate) mod curves;

use ntcopy_judge::modes::MODES;

use self::axis::Plane;
use crate::svg::{Place, Svg};

pub use bars::{Bar, Bars, bars};
pub use chart::{Axis, Chart, Line, Mark, MarkKind, Point, around_one, finish};

/// How many looks of lines there are; further modes begin anew.
pub const SLOTS: usize = 9;

/// Width and height of a chart. A page scales it to the room there is; it is so narrow that a
/// phone still shows its letters.
pub const SIZE: Place = (520.0, 330.0);

/// A letter's width in the larger letters of a narrow window, on average, and some.
pub const LETTER: f64 = 8.6;
/// From one line of letters to the next.
const ROW: f64 = 18.0;
/// To the right of this part of the axis, words stand left of what they name.
const RIGHT_PART: f64 = 0.55;

/// The look of a mode: the same on every page, whichever modes a record has.
pub fn slot(mode: &str, index: usize) -> usize {
    // The remaining looks are for modes that this version does not know.
    let others = MODES.len() + index % (SLOTS - MODES.len());
    MODES.iter().position(|known| known.name == mode).unwrap_or(others)
}

/// A chart of this width and height.
pub fn draw(chart: &Chart, size: Place) -> Svg {
    let plane = Plane::new(chart, size);
    let (mut svg, mut letters) = (Svg::default(), Svg::default());
    axes(&mut svg, chart, &plane);
    for (row, mark) in chart.marks.iter().rev().enumerate() {
        draw_mark(&mut svg, &mut letters, &plane, row, mark);
    }
    if let Some(value) = chart.reference {
        let y = plane.y(value);
        svg.lines("reference", [[(plane.left, y), (plane.right, y)]]);
    }
    for line in &chart.lines {
        draw_line(&mut svg, &plane, line);
    }
    // Letters stay legible where a line runs through them.
    svg.put((0.0, 0.0), &letters);
    svg
}

fn axes(svg: &mut Svg, chart: &Chart, plane: &Plane) {
    let values = plane.values();
    let across = |y: f64| [(plane.left, y), (plane.right, y)];
    svg.lines("grid", values.iter().map(|value| across(plane.y(*value))));
    svg.lines(
        "ink",
        [vec![(plane.left, plane.top), (plane.left, plane.bottom), (plane.right, plane.bottom)]],
    );
    for value in values {
        let told = format!("{}", (value * 1000.0).round() / 1000.0);
        svg.text("end", (plane.left - 6.0, plane.y(value) + 4.5), &told);
    }
    let ticks = plane.ticks(&chart.places());
    let below = |at: &f64| [(plane.x(*at), plane.bottom), (plane.x(*at), plane.bottom + 5.0)];
    svg.lines("ink", ticks.iter().map(below));
    for at in ticks {
        svg.text("", (plane.x(at), plane.bottom + ROW + 2.0), &chart.axis.label(at));
    }
    let middle = (plane.left + plane.right) / 2.0;
    svg.text("", (middle, plane.bottom + 2.0 * ROW + 2.0), chart.axis.name());
    svg.text("start", (4.0, plane.top - 10.0), &chart.y_label);
}

/// A size on the axis: a line with its name at the top, or an arrow to where it would be.
fn draw_mark(svg: &mut Svg, letters: &mut Svg, plane: &Plane, row: usize, mark: &Mark) {
    let place = mark.bytes as f64;
    let (low, high) = plane.ends();
    let (place, label) = if place > high {
        (high, format!("{} \u{2192}", mark.label))
    } else if place < low {
        // What lies left of the axis explains nothing, unless it is the last level.
        if mark.kind != MarkKind::LastLevel {
            return;
        }
        (low, format!("\u{2190} {}", mark.label))
    } else {
        let class = match mark.kind {
            MarkKind::Cache => "cache",
            MarkKind::LastLevel => "last-level",
            MarkKind::Crossing => "crossing",
        };
        let x = plane.x(place);
        svg.lines(class, [[(x, plane.top), (x, plane.bottom)]]);
        (place, mark.label.clone())
    };
    let x = plane.x(place);
    let part = (x - plane.left) / (plane.right - plane.left);
    let room = plane.right - x;
    let leftwards = part > RIGHT_PART || room < label.chars().count() as f64 * LETTER;
    let (class, shift) = if leftwards { ("end", -6.0) } else { ("start", 6.0) };
    letters.text(class, (x + shift, plane.top + 14.0 + row as f64 * ROW), &label);
}

fn draw_line(svg: &mut Svg, plane: &Plane, line: &Line) {
    let at = |point: &Point| (plane.x(point.at as f64), plane.y(point.value));
    let places: Vec<Place> = line.points.iter().map(at).collect();
    let intervals = line.points.iter().filter_map(|point| {
        let (low, high) = point.ci?;
        let x = plane.x(point.at as f64);
        Some([(x, plane.y(low)), (x, plane.y(high))])
    });
    let slot = line.slot;
    svg.lines(&format!("bar m{slot}"), intervals);
    svg.lines(&format!("line m{slot}"), [&places]);
    svg.points(&format!("points m{slot}"), &places);
}
