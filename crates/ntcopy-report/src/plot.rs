//! Plots as SVG whose colours are the page's.
//!
//! The plotting crate writes fixed colours into the SVG. A page with a light and a dark side
//! needs names instead, so each role is drawn in a colour of its own that no plot would use, and
//! that colour is then replaced by a class; the page's style sheet gives the class its look.

mod axis;
mod chart;
mod compact;
pub(crate) mod curves;

use std::fmt::Display;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use self::axis::{Log2Axis, ValueAxis};
use self::chart::{Mark, MarkKind};
use self::compact::compact;
use crate::model::KNOWN_MODES;

pub(crate) use chart::{Chart, Line, crossover, headline, ratios};

/// A plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw a plot: {0}")]
pub struct PlotError(String);

/// How many looks of lines there are; further modes begin anew.
pub(crate) const SLOTS: usize = 9;

/// The look of a mode: the same on every page, whichever modes a record has.
pub(crate) fn slot(mode: &str, index: usize) -> usize {
    // The remaining looks are for modes that this version does not know.
    let others = KNOWN_MODES.len() + index % (SLOTS - KNOWN_MODES.len());
    KNOWN_MODES.iter().position(|name| *name == mode).unwrap_or(others)
}

/// Pixels of the drawing; the page scales it to the room there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

/// For screens.
pub(crate) const WIDE: Size = Size { width: 760, height: 400 };
/// For phones: drawn anew, since a wide plot made small has small letters.
pub(crate) const NARROW: Size = Size { width: 360, height: 340 };

/// Height of a line of text. The crate draws letters at 1/1.24 of it: 13.7 pixels.
const FONT: (&str, u32) = ("sans-serif", 17);
/// Pixels around the drawing.
const MARGIN: u32 = 6;
/// Pixels of the width that are not the axis's: margins, the other axis's labels.
const BESIDE_AXIS: u32 = 76;
/// Pixels from one tick's label to the next, at least.
const TICK_ROOM: u32 = 62;
/// Pixels between lines of labels.
const LINE_HEIGHT: i32 = 18;
/// To the right of this fraction of the axis, labels stand left of what they name.
const RIGHT_PART: f64 = 0.55;
/// Pixels of a letter, on average, and some.
const LETTER_PIXELS: f64 = 7.2;

// Colours that stand for roles; see the module's parent.
const INK: RGBColor = RGBColor(1, 0, 1);
const GRID: RGBColor = RGBColor(1, 0, 2);
const CACHE: RGBColor = RGBColor(1, 0, 3);
const LAST_LEVEL: RGBColor = RGBColor(1, 0, 4);
const REFERENCE: RGBColor = RGBColor(1, 0, 5);
const CROSSING: RGBColor = RGBColor(1, 0, 6);

fn line_colour(slot: usize) -> RGBColor {
    RGBColor(1, 1, slot as u8)
}

fn published_colour(slot: usize) -> RGBColor {
    RGBColor(1, 4, slot as u8)
}

fn bar_colour(slot: usize) -> RGBColor {
    RGBColor(1, 3, slot as u8)
}

/// The role of a colour, as a class; none for a colour that is none of ours.
fn class(colour: &str) -> Option<String> {
    let number = |at: usize| u8::from_str_radix(colour.get(at..at + 2)?, 16).ok();
    let (1, kind, value) = (number(0)?, number(2)?, number(4)?) else { return None };
    match (kind, value) {
        (0, 1) => Some("ink".to_owned()),
        (0, 2) => Some("grid".to_owned()),
        (0, 3) => Some("cache".to_owned()),
        (0, 4) => Some("last-level".to_owned()),
        (0, 5) => Some("reference".to_owned()),
        (0, 6) => Some("crossing".to_owned()),
        (1, slot) => Some(format!("line m{slot}")),
        (3, slot) => Some(format!("bar m{slot}")),
        (4, slot) => Some(format!("published m{slot}")),
        _ => None,
    }
}

type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Log2Axis, ValueAxis>>;

/// What stands between `<svg …>` and `</svg>`.
pub(crate) fn draw(chart: &Chart, size: Size) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (size.width, size.height));
        let root = root.into_drawing_area();
        draw_on(&root, chart, size)?;
        root.present().map_err(error)?;
    }
    Ok(compact(&with_classes(inside(&svg))))
}

fn error(error: impl Display) -> PlotError {
    PlotError(error.to_string())
}

fn draw_on(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    chart: &Chart,
    size: Size,
) -> Result<(), PlotError> {
    let bounds = chart.x_bounds().ok_or_else(|| error("the axis has no extent"))?;
    let axis = Log2Axis::new(bounds, measured(chart), (size.width - BESIDE_AXIS) / TICK_ROOM);
    let (low, high) = axis.ends();
    let (bottom, top) = chart.y_range;
    let places = chart.axis;
    let mut plane = ChartBuilder::on(root)
        .margin(MARGIN)
        .margin_right(2 * MARGIN)
        .x_label_area_size(46)
        .y_label_area_size(BESIDE_AXIS - 3 * MARGIN)
        .build_cartesian_2d(axis, ValueAxis::new((bottom, top), chart.is_log))
        .map_err(error)?;
    let label = FONT.into_font().color(&INK);
    plane
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(label.clone())
        .axis_desc_style(label)
        .x_desc(chart.axis.name())
        .y_desc(chart.y_label)
        .y_labels(6)
        .x_label_formatter(&|at| places.label(*at))
        .y_label_formatter(&|value| format!("{}", (value * 1000.0).round() / 1000.0))
        .draw()
        .map_err(error)?;
    let axis_pixels = f64::from(size.width - BESIDE_AXIS);
    draw_marks(&mut plane, &chart.marks, axis_pixels, (low, high), (bottom, top))?;
    if let Some(value) = chart.reference {
        let ends = vec![(low, value), (high, value)];
        plane.draw_series([PathElement::new(ends, REFERENCE)]).map_err(error)?;
        let style = FONT.into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Bottom));
        let name = Text::new(format!("{value} = baseline"), (6, -3), style);
        plane.draw_series([EmptyElement::at((low, value)) + name]).map_err(error)?;
    }
    for line in &chart.lines {
        draw_line(&mut plane, line)?;
    }
    Ok(())
}

/// The sizes that were measured.
fn measured(chart: &Chart) -> Vec<u64> {
    let points = chart.lines.iter().flat_map(|line| &line.points);
    let mut sizes: Vec<u64> = points.map(|point| point.at).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn draw_marks(
    plane: &mut Plane<'_, '_>,
    marks: &[Mark],
    axis_pixels: f64,
    (low, high): (f64, f64),
    (bottom, top): (f64, f64),
) -> Result<(), PlotError> {
    for (row, mark) in marks.iter().rev().enumerate() {
        let place = mark.bytes as f64;
        let (place, label) = if place > high {
            (high, format!("{} \u{2192}", mark.label))
        } else if place < low {
            // What lies left of the axis explains nothing, unless it is the last level.
            if mark.kind != MarkKind::LastLevel {
                continue;
            }
            (low, format!("\u{2190} {}", mark.label))
        } else {
            let colour = match mark.kind {
                MarkKind::Cache => CACHE,
                MarkKind::LastLevel => LAST_LEVEL,
                MarkKind::Crossing => CROSSING,
            };
            let ends = vec![(place, bottom), (place, top)];
            plane.draw_series([PathElement::new(ends, colour)]).map_err(error)?;
            (place, mark.label.clone())
        };
        let part = (place / low).log2() / (high / low).log2();
        let room = (1.0 - part) * axis_pixels;
        let leftwards = part > RIGHT_PART || room < label.chars().count() as f64 * LETTER_PIXELS;
        let (anchor, shift) = if leftwards { (HPos::Right, -6) } else { (HPos::Left, 6) };
        let style = FONT.into_font().color(&INK).pos(Pos::new(anchor, VPos::Top));
        let offset = (shift, 2 + row as i32 * LINE_HEIGHT);
        let named = EmptyElement::at((place, top)) + Text::new(label, offset, style);
        plane.draw_series([named]).map_err(error)?;
    }
    Ok(())
}

fn draw_line(plane: &mut Plane<'_, '_>, line: &Line) -> Result<(), PlotError> {
    let bars = line.points.iter().filter_map(|point| {
        let (low, high) = point.ci?;
        let ends = vec![(point.at as f64, low), (point.at as f64, high)];
        Some(PathElement::new(ends, bar_colour(line.slot)))
    });
    plane.draw_series(bars).map_err(error)?;
    // The points are the line's markers; see `points`.
    let ends = line.points.iter().map(|point| (point.at as f64, point.value));
    if line.is_published {
        plane.draw_series(LineSeries::new(ends, published_colour(line.slot))).map_err(error)?;
    } else {
        plane.draw_series(LineSeries::new(ends, line_colour(line.slot))).map_err(error)?;
    }
    Ok(())
}

/// The SVG without its outermost element: the page writes that, with a title and a role.
fn inside(svg: &str) -> &str {
    let begin = svg.find("<svg").and_then(|at| Some(at + svg[at..].find('>')? + 1)).unwrap_or(0);
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    svg[begin..end].trim()
}

/// `fill="#010203" stroke="none"` and the like become `class="…"`.
fn with_classes(svg: &str) -> String {
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some(at) = rest.find("=\"#") {
        let name = rest[..at].rfind(' ').map_or(0, |space| space + 1);
        let value = at + 3;
        let end = rest[value..].find('"').map_or(rest.len(), |quote| value + quote);
        match class(&rest[value..end]) {
            Some(class) => {
                let paint = if &rest[name..at] == "fill" { "fill" } else { "stroke" };
                out.push_str(&rest[..name]);
                out.push_str(&format!("class=\"{paint} {class}"));
            }
            None => out.push_str(&rest[..end]),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_become_classes_and_other_colours_stay() {
        let svg = r##"<path fill="none" opacity="1" stroke="#010100" stroke-width="1"/><text fill="#010001">a="#b"</text><rect fill="#FFFFFF"/>"##;
        assert_eq!(
            with_classes(svg),
            r##"<path fill="none" opacity="1" class="stroke line m0" stroke-width="1"/><text class="fill ink">a="#b"</text><rect fill="#FFFFFF"/>"##
        );
    }

    #[test]
    fn the_outermost_element_is_taken_off() {
        assert_eq!(inside("<?xml?>\n<svg width=\"1\">\n<g/>\n</svg>\n"), "<g/>");
    }
}
