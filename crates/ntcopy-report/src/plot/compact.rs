//! The plotting crate's SVG in fewer bytes, looking the same: a page with every record would be
//! twice as large without.

/// Without what a browser takes for granted or the style sheet says for all, and with shapes that
/// look alike in one path.
pub(super) fn compact(svg: &str) -> String {
    let mut out = svg.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    for granted in [
        " opacity=\"1\"",
        " stroke-width=\"1\"",
        " stroke=\"none\"",
        " font-family=\"sans-serif\"",
        " fill=\"none\"",
        " dx=\"0\"",
        // All letters are of ink.
        " class=\"fill ink\"",
        // The one size of letters; see FONT in draw.
        " font-size=\"13.709677419354838\"",
    ] {
        out = out.replace(granted, "");
    }
    // Letters begin and end with a line break.
    out = out.replace("> ", ">").replace(" <", "<").replace("  ", " ");
    joined(&out)
}

/// A part of the drawing.
enum Part<'a> {
    /// As it was.
    Kept(&'a str),
    /// Shapes of one class.
    Path { class: &'a str, shapes: String },
}

fn joined(svg: &str) -> String {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for piece in svg.split_inclusive('>') {
        let Some((class, shape)) = shape(piece) else {
            parts.push(Part::Kept(piece));
            continue;
        };
        // The axes' lines lie under all else, so that they can be drawn with the first of them;
        // of other shapes only neighbours may be joined.
        let is_below = class.ends_with("ink") || class.ends_with("grid");
        let reach = if is_below { parts.len() } else { 1 };
        let known = parts.iter_mut().rev().take(reach).find_map(|part| match part {
            Part::Path { class: known, shapes } if *known == class => Some(shapes),
            _ => None,
        });
        match known {
            Some(shapes) => shapes.push_str(&shape),
            None => parts.push(Part::Path { class, shapes: shape }),
        }
    }
    let written = parts.into_iter().map(|part| match part {
        Part::Kept(piece) => piece.to_owned(),
        Part::Path { class, shapes } => format!("<path class=\"{class}\" d=\"{shapes}\"/>"),
    });
    written.collect()
}

/// The class of a shape that may be joined with others, and the shape as a part of a path.
fn shape(element: &str) -> Option<(&str, String)> {
    let class = attribute(element, "class")?;
    let is_joined = [" point ", " bar "].iter().any(|kind| class.contains(kind))
        || class.ends_with(" ink")
        || class.ends_with(" grid");
    let number = |name: &str| attribute(element, name)?.parse::<i32>().ok();
    let points = |end: &str| Some(format!("M{}{end}", attribute(element, "points")?.trim()));
    let name = element.strip_prefix('<')?.split(' ').next()?;
    let shape = match name {
        _ if !is_joined => None,
        "line" => Some(format!(
            "M{},{} {},{}",
            number("x1")?,
            number("y1")?,
            number("x2")?,
            number("y2")?
        )),
        "polyline" => points(""),
        "polygon" => points("z"),
        "circle" => {
            let (x, y, r) = (number("cx")?, number("cy")?, number("r")?);
            let turn = 2 * r;
            Some(format!("M{},{y}a{r},{r} 0 1 0 {turn},0a{r},{r} 0 1 0-{turn},0z", x - r))
        }
        "rect" => {
            let (x, y) = (number("x")?, number("y")?);
            let (width, height) = (number("width")?, number("height")?);
            Some(format!("M{x},{y}h{width}v{height}h-{width}z"))
        }
        _ => None,
    };
    Some((class, shape?))
}

fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!(" {name}=\"");
    let value = &element[element.find(&begin)? + begin.len()..];
    value.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_look_alike_become_one_path() {
        let svg = r#"<circle cx="9" cy="7" r="5" opacity="1" class="fill point m0"/>
<circle cx="19" cy="7" r="5" class="fill point m0"/>
<polyline class="stroke line m0" points="1,2 3,4 "/>
<rect x="1" y="2" width="10" height="10" class="fill point m0"/>"#;
        assert_eq!(
            compact(svg),
            "<path class=\"fill point m0\" d=\"M4,7a5,5 0 1 0 10,0a5,5 0 1 0-10,0z\
             M14,7a5,5 0 1 0 10,0a5,5 0 1 0-10,0z\"/>\
             <polyline class=\"stroke line m0\" points=\"1,2 3,4 \"/>\
             <path class=\"fill point m0\" d=\"M1,2h10v10h-10z\"/>"
        );
    }

    #[test]
    fn axes_are_joined_across_their_letters_which_stay() {
        let svg = "<polyline class=\"stroke ink\" points=\"1,2 3,4 \"/><text x=\"1\" class=\"fill \
                   ink\">\n20 KiB\n</text><polyline class=\"stroke ink\" points=\"5,6 7,8 \"/>";
        assert_eq!(
            compact(svg),
            "<path class=\"stroke ink\" d=\"M1,2 3,4M5,6 7,8\"/><text x=\"1\">20 KiB</text>"
        );
    }
}
