//! The one writer of SVG: lines, bars and letters. Classes say what a thing is; `svg.css` says how
//! it looks on light and dark ground, on paper and in a narrow window.

use std::fmt::{self, Display, Write as _};

use maud::{Markup, PreEscaped, html};

/// Colours and looks of all that is drawn, for a page and for a picture that stands alone.
pub const STYLE: &str = include_str!("svg.css");

/// Right and down of the upper left corner, or width and height.
pub type Place = (f64, f64);

/// A drawing in the making.
#[derive(Debug, Default)]
pub struct Svg(String);

impl Svg {
    pub fn rect(&mut self, class: &str, (x, y): Place, (width, height): Place) {
        let [x, y, width, height] = [x, y, width, height].map(Short);
        let _ = write!(
            self.0,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    /// Words, whose middle is at a place; of the classes `start` and `end` their start or end is.
    pub fn text(&mut self, class: &str, (x, y): Place, words: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let words = html! { (words) }.into_string();
        let _ = write!(self.0, "<text{class} x=\"{}\" y=\"{}\">{words}</text>", Short(x), Short(y));
    }

    /// Lines that look alike, each through its places.
    pub fn lines<L: AsRef<[Place]>>(&mut self, class: &str, lines: impl IntoIterator<Item = L>) {
        let mut path = String::new();
        for line in lines {
            for (number, (x, y)) in line.as_ref().iter().enumerate() {
                let letter = ["M", "L", " "][number.min(2)];
                let _ = write!(path, "{letter}{} {}", Short(*x), Short(*y));
            }
        }
        if !path.is_empty() {
            let _ = write!(self.0, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// Points that look alike: lines without length, whose ends are round or square.
    pub fn points(&mut self, class: &str, places: &[Place]) {
        let at = places.iter().map(|(x, y)| format!("M{} {}h0", Short(*x), Short(*y)));
        let _ = write!(self.0, "<path class=\"{class}\" d=\"{}\"/>", at.collect::<String>());
    }

    /// Another drawing on top, moved.
    pub fn put(&mut self, (x, y): Place, other: &Svg) {
        let (x, y) = (Short(x), Short(y));
        let _ = write!(self.0, "<g transform=\"translate({x} {y})\">{}</g>", other.0);
    }

    /// For a page, which has the style; `names` are the ids of what it is called by.
    pub fn in_page(self, class: &str, (width, height): Place, names: &str) -> Markup {
        let view = format!("0 0 {} {}", Short(width), Short(height));
        html! {
            svg class=(class) viewBox=(view) role="img" aria-labelledby=(names) {
                (PreEscaped(self.0))
            }
        }
    }

    /// As a file of its own, with a comment for whoever opens it.
    pub fn alone(self, (width, height): Place, title: &str, comment: &str) -> String {
        let (width, height) = (Short(width), Short(height));
        let title = html! { title { (title) } }.into_string();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" role=\"img\">\n<!-- {comment} -->\n{title}\n<style>\n{STYLE}</style>\n\
             {}\n</svg>\n",
            self.0.replace("><", ">\n<")
        )
    }
}

/// A number with a tenth at most, in as few letters as it takes.
struct Short(f64);

impl Display for Short {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if tenths % 10.0 == 0.0 {
            write!(out, "{:.0}", tenths / 10.0)
        } else {
            write!(out, "{:.1}", tenths / 10.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_short_and_text_is_no_markup() {
        let mut svg = Svg::default();
        svg.lines("line m0", [vec![(1.0, 2.0), (3.25, 4.0), (5.04, -0.01)]]);
        svg.lines("line", Vec::<Vec<Place>>::new());
        svg.points("points", &[(1.0, 2.0)]);
        svg.text("end", (7.0, 8.5), "a<b");
        assert_eq!(
            svg.0,
            "<path class=\"line m0\" d=\"M1 2L3.3 4 5 -0\"/><path class=\"points\" d=\"M1 2h0\"/>\
             <text class=\"end\" x=\"7\" y=\"8.5\">a&lt;b</text>"
        );
        let alone = svg.alone((10.0, 20.0), "x & y", "made");
        assert!(alone.contains("viewBox=\"0 0 10 20\"") && alone.contains("<title>x &amp; y<"));
    }
}
