//! The plotting crate's SVG in few bytes, looking the same: it is what a page with every record
//! has most of.
//!
//! Only the geometry of the drawing's elements is kept. Lines of one class become one path, in
//! steps from point to point; all letters come last, those with the same anchor together. What a
//! browser takes for granted and what the style sheet says for all is left out.

/// Pixels that the units of the letters' shifts come to at the one size of letters there is (see
/// FONT in `plot`).
const SHIFTS: [(&str, i32); 4] = [("0.76em", 10), ("0.5ex", 4), ("-0.5ex", -4), ("0", 0)];

/// The inside of an SVG element, made small.
pub(super) fn compact(svg: &str) -> String {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut letters = Letters::default();
    let mut rest = svg;
    while let Some(begin) = rest.find('<') {
        let Some(end) = rest[begin..].find('>') else { break };
        let element = &rest[begin..=begin + end];
        rest = &rest[begin + end + 1..];
        if element.starts_with("<text") {
            let inside = rest.find("</text>").unwrap_or(rest.len());
            letters.add(element, rest[..inside].trim());
            rest = rest[inside..].strip_prefix("</text>").unwrap_or_default();
        } else {
            add(&mut parts, element);
        }
    }
    let shapes = parts.into_iter().map(|part| match part {
        Part::Kept(element) => element.to_owned(),
        Part::Lines { class, path } => format!("<path class=\"{class}\" d=\"{}\"/>", path.text()),
    });
    shapes.chain([letters.text()]).collect()
}

/// A part of the drawing.
enum Part<'a> {
    /// It stays as it was.
    Kept(&'a str),
    /// Lines of one class.
    Lines { class: String, path: Path },
}

fn add<'a>(parts: &mut Vec<Part<'a>>, element: &'a str) {
    let Some((class, shape)) = shape(element) else {
        parts.push(Part::Kept(element));
        return;
    };
    // The axes' lines lie under all else, so that they can be drawn with the first of them; of
    // other shapes only neighbours may be joined.
    let is_below = matches!(class.as_str(), "ink" | "grid");
    let reach = if is_below { parts.len() } else { 1 };
    let known = parts.iter_mut().rev().take(reach).find_map(|part| match part {
        Part::Lines { class: known, path } if *known == class => Some(path),
        _ => None,
    });
    match known {
        Some(path) => path.join(shape),
        None => parts.push(Part::Lines { class, path: shape }),
    }
}

/// A line of one of our classes, and the class under which the style sheet knows it.
fn shape(element: &str) -> Option<(String, Path)> {
    let (_, class) = attribute(element, "class")?.split_once(' ')?;
    let number = |name: &str| attribute(element, name)?.parse::<i32>().ok();
    let points: Option<Vec<(i32, i32)>> =
        match element.strip_prefix('<')?.split_whitespace().next()? {
            "line" => Some(vec![(number("x1")?, number("y1")?), (number("x2")?, number("y2")?)]),
            "polyline" => {
                let pairs = attribute(element, "points")?.split_whitespace();
                let pairs = pairs.map(|pair| {
                    let (x, y) = pair.split_once(',')?;
                    Some((x.parse().ok()?, y.parse().ok()?))
                });
                pairs.collect()
            }
            _ => None,
        };
    Some((class.to_owned(), Path::of(points?)))
}

/// The letters by their anchors: the middle, which is what the style sheet takes for granted, the
/// end, the start.
#[derive(Default)]
struct Letters([String; 3]);

impl Letters {
    fn add(&mut self, element: &str, letters: &str) {
        let number = |name: &str| attribute(element, name)?.parse::<i32>().ok();
        let (x, y) = (number("x").unwrap_or(0), number("y").unwrap_or(0));
        let shift = attribute(element, "dy").unwrap_or("0");
        let shift = SHIFTS.iter().find(|(name, _)| *name == shift).map_or(0, |(_, pixels)| *pixels);
        let group = match attribute(element, "text-anchor") {
            Some("middle") => 0,
            Some("end") => 1,
            _ => 2,
        };
        let turn = attribute(element, "transform")
            .map_or_else(String::new, |turn| format!(" transform=\"{}\"", turn.replace(", ", " ")));
        self.0[group]
            .push_str(&format!("<text x=\"{x}\" y=\"{}\"{turn}>{letters}</text>", y + shift));
    }

    fn text(self) -> String {
        let [middle, end, start] = self.0;
        let group = |class: &str, letters: String| match letters.is_empty() {
            true => String::new(),
            false => format!("<g class=\"{class}\">{letters}</g>"),
        };
        middle + &group("end", end) + &group("start", start)
    }
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!(" {name}=\"");
    let value = &element[element.find(&begin)? + begin.len()..];
    value.split('"').next()
}

/// Lines through points in whole pixels, written in as few letters as it takes.
#[derive(Debug)]
struct Path(Vec<Vec<(i32, i32)>>);

impl Path {
    fn of(points: Vec<(i32, i32)>) -> Path {
        Path(vec![points])
    }

    fn join(&mut self, other: Path) {
        self.0.extend(other.0);
    }

    /// The `d` of a path element.
    fn text(&self) -> String {
        let mut pen = Pen::default();
        self.0.iter().for_each(|points| pen.through(points));
        pen.text
    }
}

/// Where the drawing has come to, and what it has come to.
#[derive(Default)]
struct Pen {
    text: String,
    at: (i32, i32),
}

impl Pen {
    /// Begins a line.
    fn to(&mut self, (x, y): (i32, i32)) {
        let there = format!("M{x}{}", follow(y));
        let step = format!("m{}{}", x - self.at.0, follow(y - self.at.1));
        let is_shorter = !self.text.is_empty() && step.len() < there.len();
        self.text.push_str(if is_shorter { &step } else { &there });
        self.at = (x, y);
    }

    fn through(&mut self, points: &[(i32, i32)]) {
        let Some((first, others)) = points.split_first() else { return };
        self.to(*first);
        if others.is_empty() {
            // Without a line there would be no point to put a marker on.
            self.text.push_str("h0");
        }
        // A letter holds until there is another one.
        let mut letter = ' ';
        for (x, y) in others {
            let (right, down) = (x - self.at.0, y - self.at.1);
            let (next, step) = match (right, down) {
                (_, 0) => ('h', right.to_string()),
                (0, _) => ('v', down.to_string()),
                _ => ('l', format!("{right}{}", follow(down))),
            };
            match next == letter {
                true if step.starts_with('-') => {}
                true => self.text.push(' '),
                false => self.text.push(next),
            }
            self.text.push_str(&step);
            (letter, self.at) = (next, (*x, *y));
        }
    }
}

/// A number after another: a minus needs no space.
fn follow(number: i32) -> String {
    if number < 0 { number.to_string() } else { format!(" {number}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_look_alike_become_one_path_and_others_keep_their_order() {
        let svg = r#"<polyline class="stroke bar m0" points="9,7 9,9 "/>
<polyline fill="none" opacity="1" class="stroke bar m0" points="19,7 19,10 "/>
<polyline class="stroke line m0" points="1,2 3,4 "/>
<polyline class="stroke bar m0" points="9,7 9,9 "/><rect x="1"/>"#;
        assert_eq!(
            compact(svg),
            "<path class=\"bar m0\" d=\"M9 7v2M19 7v3\"/><path class=\"line m0\" d=\"M1 2l2 2\"/>\
             <path class=\"bar m0\" d=\"M9 7v2\"/><rect x=\"1\"/>"
        );
    }

    #[test]
    fn axes_are_joined_across_their_letters_which_come_last() {
        let svg = "<polyline class=\"stroke ink\" points=\"1,2 3,4 \"/><text x=\"1\" y=\"20\" \
                   dy=\"0.5ex\" text-anchor=\"end\" class=\"fill ink\">\n20 KiB\n</text><polyline \
                   class=\"stroke ink\" points=\"5,6 7,6 \"/><text x=\"1\" y=\"9\" dy=\"0.76em\" \
                   text-anchor=\"middle\" transform=\"rotate(270, 1, 9)\">\nGB/s\n</text>";
        assert_eq!(
            compact(svg),
            "<path class=\"ink\" d=\"M1 2l2 2M5 6h2\"/>\
             <text x=\"1\" y=\"19\" transform=\"rotate(270 1 9)\">GB/s</text>\
             <g class=\"end\"><text x=\"1\" y=\"24\">20 KiB</text></g>"
        );
    }

    fn text(lines: &[&[(i32, i32)]]) -> String {
        let mut lines = lines.iter().map(|line| Path::of(line.to_vec()));
        let mut path = lines.next().expect("a line");
        lines.for_each(|line| path.join(line));
        path.text()
    }

    #[test]
    fn steps_are_as_short_as_they_can_be() {
        let text = text(&[
            &[(64, 347), (747, 347)],
            &[(64, 288), (747, 288)],
            &[(10, 10), (12, 8), (14, 9), (14, 300), (14, 200)],
        ]);
        assert_eq!(text, "M64 347h683M64 288h683M10 10l2-2 2 1v291-100");
    }

    #[test]
    fn a_line_begins_by_a_step_where_that_is_shorter() {
        assert_eq!(
            text(&[&[(700, 348), (700, 353)], &[(700, 358), (705, 358)]]),
            "M700 348v5m0 5h5"
        );
    }

    #[test]
    fn a_point_alone_is_a_line_of_no_length() {
        assert_eq!(text(&[&[(9, 7)]]), "M9 7h0");
    }
}
