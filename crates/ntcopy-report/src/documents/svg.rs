//! Pictures for documents: SVG that carries its own style, for light and dark.

use std::fmt::Write as _;

use super::GENERATED;
use crate::text;

/// Panels side by side.
#[derive(Debug)]
pub(super) struct Panel {
    pub title: String,
    pub unit: String,
    pub body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    /// Values along a logarithmic axis.
    Lines { name: String, is_bytes: bool, is_ratio: bool, lines: Vec<Line> },
    /// Values in groups.
    Bars { names: Vec<String>, groups: Vec<Group> },
}

#[derive(Debug)]
pub(super) struct Line {
    pub name: String,
    pub points: Vec<(u64, f64)>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub name: String,
    pub values: Vec<Option<f64>>,
}

const HEIGHT: f64 = 330.0;
/// Room left, right and below of what is plotted.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 14.0;
const BELOW: f64 = 46.0;
/// Height of a line of text, and width of a letter, on average.
const ROW: f64 = 17.0;
const LETTER: f64 = 6.7;

/// Colours by slot: on light ground, on dark ground.
const COLOURS: [(&str, &str); 6] = [
    ("#6e7781", "#8b949e"),
    ("#0969da", "#58a6ff"),
    ("#bc4c00", "#f0883e"),
    ("#1a7f37", "#3fb950"),
    ("#8250df", "#bc8cff"),
    ("#bf3989", "#f778ba"),
];

impl Body {
    /// Whether there is no value in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Body::Lines { lines, .. } => lines.iter().all(|line| line.points.is_empty()),
            Body::Bars { groups, .. } => {
                groups.iter().all(|g| g.values.iter().all(Option::is_none))
            }
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Body::Lines { lines, .. } => lines.iter().map(|line| line.name.as_str()).collect(),
            Body::Bars { names, .. } => names.iter().map(String::as_str).collect(),
        }
    }

    fn width(&self) -> f64 {
        match self {
            Body::Lines { .. } => 440.0,
            Body::Bars { names, groups } => {
                let bars = (names.len() * 30 + 26) * groups.len();
                let legend: usize = names.iter().map(|name| name.chars().count() + 5).sum();
                (LEFT + RIGHT + bars as f64).max((legend as f64 * LETTER).min(440.0))
            }
        }
    }

    /// Least and most on the axis of values.
    fn range(&self) -> (f64, f64) {
        let values: Vec<f64> = match self {
            Body::Lines { lines, .. } => {
                lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).collect()
            }
            Body::Bars { groups, .. } => {
                groups.iter().flat_map(|group| group.values.iter().flatten().copied()).collect()
            }
        };
        let most = values.iter().copied().fold(0.0, f64::max);
        match self {
            Body::Lines { is_ratio: true, .. } => {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let room = (most - least).max(0.1) * 0.08;
                ((least - room).max(0.0), most + room)
            }
            _ => (0.0, most * 1.08),
        }
    }
}

/// The picture.
pub(super) fn svg(panels: &[Panel], alt: &str) -> String {
    let width: f64 = panels.iter().map(|panel| panel.body.width()).sum();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {HEIGHT:.0}\" \
         width=\"{width:.0}\" role=\"img\">\n<!-- {GENERATED} -->\n<title>{}</title>\n",
        escaped(alt)
    );
    out.push_str(&style());
    let mut x = 0.0;
    for panel in panels {
        let _ = writeln!(out, "<g transform=\"translate({x:.0} 0)\">");
        draw(&mut out, panel);
        out.push_str("</g>\n");
        x += panel.body.width();
    }
    out.push_str("</svg>\n");
    out
}

fn style() -> String {
    let mut light = String::from("text{font:12px sans-serif;fill:#1f2328}.h{font-weight:600}");
    light.push_str(
        ".g{stroke:#d0d7de}.r{stroke:#57606a;stroke-dasharray:4 3}.l{fill:none;stroke-width:2}",
    );
    let mut dark = String::from("text{fill:#e6edf3}.g{stroke:#30363d}.r{stroke:#8b949e}");
    for (slot, (on_light, on_dark)) in COLOURS.iter().enumerate() {
        let _ = write!(light, ".l{slot}{{stroke:{on_light}}}.b{slot}{{fill:{on_light}}}");
        let _ = write!(dark, ".l{slot}{{stroke:{on_dark}}}.b{slot}{{fill:{on_dark}}}");
    }
    format!("<style>{light}@media(prefers-color-scheme:dark){{{dark}}}</style>\n")
}

/// Where values and places lie.
struct Plot {
    top: f64,
    width: f64,
    range: (f64, f64),
}

impl Plot {
    fn y(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let bottom = HEIGHT - BELOW;
        bottom - (value - low) / (high - low) * (bottom - self.top)
    }
}

fn draw(out: &mut String, panel: &Panel) {
    let width = panel.body.width();
    let _ = writeln!(out, "<text class=\"h\" x=\"8\" y=\"{ROW}\">{}</text>", escaped(&panel.title));
    let bottom_of_legend = legend(out, &panel.body.names(), width);
    let unit = escaped(&panel.unit);
    let _ = writeln!(out, "<text x=\"8\" y=\"{:.0}\">{unit}</text>", bottom_of_legend + ROW);
    let plot = Plot { top: bottom_of_legend + ROW + 8.0, width, range: panel.body.range() };
    values(out, &plot);
    match &panel.body {
        Body::Lines { name, is_bytes, is_ratio, lines } => {
            if *is_ratio {
                rule(out, &plot, 1.0, "r");
            }
            curves(out, &plot, lines, *is_bytes);
            let middle = (LEFT + width - RIGHT) / 2.0;
            let _ = writeln!(
                out,
                "<text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                HEIGHT - 8.0,
                escaped(name)
            );
        }
        Body::Bars { groups, .. } => columns(out, &plot, groups),
    }
}

/// Names with their colours, in as many rows as they need; where the last one ends.
fn legend(out: &mut String, names: &[&str], width: f64) -> f64 {
    let (mut x, mut y) = (8.0, 2.0 * ROW + 4.0);
    for (slot, name) in names.iter().enumerate() {
        let wide = 18.0 + name.chars().count() as f64 * LETTER + 10.0;
        if x + wide > width && x > 8.0 {
            (x, y) = (8.0, y + ROW);
        }
        let slot = slot % COLOURS.len();
        let _ = writeln!(
            out,
            "<rect class=\"b{slot}\" x=\"{x:.0}\" y=\"{:.0}\" width=\"11\" height=\"11\"/>\
             <text x=\"{:.0}\" y=\"{y:.0}\">{}</text>",
            y - 10.0,
            x + 16.0,
            escaped(name)
        );
        x += wide;
    }
    y
}

fn rule(out: &mut String, plot: &Plot, value: f64, class: &str) {
    let y = plot.y(value);
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
        plot.width - RIGHT
    );
}

/// The axis of values: round numbers, and a line at each.
fn values(out: &mut String, plot: &Plot) {
    let (low, high) = plot.range;
    let step = step(high - low);
    let is_told_by = |digits: &i32| (step * 10f64.powi(*digits)).fract().abs() < 1e-6;
    let digits = (0..4).find(is_told_by).unwrap_or(4) as usize;
    let mut value = (low / step).ceil() * step;
    while value <= high {
        rule(out, plot, value, "g");
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{value:.digits$}</text>",
            LEFT - 6.0,
            plot.y(value) + 4.0
        );
        value += step;
    }
}

/// A round number that parts a range into five at most.
fn step(range: f64) -> f64 {
    let power = 10f64.powf((range / 5.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|round| round * power);
    steps.into_iter().find(|step| range / step <= 5.0).unwrap_or(10.0 * power)
}

fn curves(out: &mut String, plot: &Plot, lines: &[Line], is_bytes: bool) {
    let mut places: Vec<u64> = lines.iter().flat_map(|l| l.points.iter().map(|p| p.0)).collect();
    places.sort_unstable();
    places.dedup();
    let (first, last) = (places[0].max(1) as f64, places[places.len() - 1].max(1) as f64);
    let span = (last / first).log2().max(1.0);
    let room = plot.width - LEFT - RIGHT - 40.0;
    let x = |at: u64| LEFT + 20.0 + (at.max(1) as f64 / first).log2() / span * room;
    let mut free = 0.0;
    for at in places {
        if x(at) < free {
            continue;
        }
        let label = if is_bytes { text::size(at) } else { at.to_string() };
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>",
            x(at),
            HEIGHT - BELOW + ROW
        );
        free = x(at) + 52.0;
    }
    for (slot, line) in lines.iter().enumerate() {
        let slot = slot % COLOURS.len();
        let points: Vec<String> = line
            .points
            .iter()
            .map(|(at, value)| format!("{:.1},{:.1}", x(*at), plot.y(*value)))
            .collect();
        let _ = writeln!(out, "<polyline class=\"l l{slot}\" points=\"{}\"/>", points.join(" "));
        for (at, value) in &line.points {
            let (x, y) = (x(*at), plot.y(*value));
            let _ =
                writeln!(out, "<circle class=\"b{slot}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        }
    }
}

fn columns(out: &mut String, plot: &Plot, groups: &[Group]) {
    let wide = (plot.width - LEFT - RIGHT) / groups.len().max(1) as f64;
    for (number, group) in groups.iter().enumerate() {
        let left = LEFT + number as f64 * wide;
        let bar = (wide - 20.0) / group.values.len().max(1) as f64;
        for (slot, value) in group.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let (x, y) = (left + 10.0 + slot as f64 * bar, plot.y(*value));
            let _ = writeln!(
                out,
                "<rect class=\"b{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                slot % COLOURS.len(),
                bar - 4.0,
                HEIGHT - BELOW - y,
                x + bar / 2.0 - 2.0,
                y - 4.0,
                if *value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            left + wide / 2.0,
            HEIGHT - BELOW + ROW,
            escaped(&group.name)
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_round_numbers_five_at_most() {
        assert_eq!([0.3, 1.0, 9.6, 14.0, 40.0].map(step), [0.1, 0.2, 2.0, 5.0, 10.0]);
    }

    #[test]
    fn both_bodies_are_drawn_and_text_is_no_markup() {
        let line = Line { name: "a<b".to_owned(), points: vec![(1 << 20, 2.0), (1 << 22, 4.0)] };
        let lines = Body::Lines {
            name: "in flight".to_owned(),
            is_bytes: true,
            is_ratio: false,
            lines: vec![line],
        };
        let group = Group { name: "64".to_owned(), values: vec![Some(7.0), None] };
        let bars = Body::Bars { names: vec!["x".into(), "y".into()], groups: vec![group] };
        let panel = |body| Panel { title: "t".to_owned(), unit: "GB/s".to_owned(), body };
        let svg = svg(&[panel(lines), panel(bars)], "alt");
        assert!(svg.contains("a&lt;b") && svg.contains(">4 MiB<") && svg.contains(">7.0<"));
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polyline").count()), (2, 1));
    }
}
