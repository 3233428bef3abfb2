//! The data of an SVG path, written in as few letters as it takes.

/// Lines through points in whole pixels.
#[derive(Debug)]
pub(super) struct Path(Vec<Vec<(i32, i32)>>);

impl Path {
    pub fn of(points: Vec<(i32, i32)>) -> Path {
        Path(vec![points])
    }

    pub fn join(&mut self, other: Path) {
        self.0.extend(other.0);
    }

    /// As the `d` of a path element.
    pub fn text(&self) -> String {
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
