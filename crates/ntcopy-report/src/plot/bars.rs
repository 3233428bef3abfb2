//! Bars from left to right, in groups, each with its name before it and its figure after it.

use ntcopy_record::Sends;

use super::{LETTER, slot};
use crate::hot::Line;
use crate::svg::{Place, Svg};

/// A name, and its bars.
#[derive(Debug)]
pub struct Bars {
    pub name: String,
    pub bars: Vec<Bar>,
}

#[derive(Debug)]
pub struct Bar {
    pub name: String,
    /// Its look; none of what is compared with nothing.
    pub slot: Option<usize>,
    pub value: f64,
    /// What 99 of 100 did not exceed.
    pub p99: f64,
}

impl Bar {
    /// A line of a hot set. A victim that is left alone has no mode's colour.
    pub fn new(name: &str, line: &Line, index: usize) -> Bar {
        let slot = (line.sends != Sends::Idle).then(|| slot(&line.mode, index));
        Bar { name: name.to_owned(), slot, value: line.p50, p99: line.p99 }
    }

    fn told(&self, unit: &str) -> String {
        format!("{:.1} {unit} (p99 {:.1})", self.value, self.p99)
    }
}

const BAR: f64 = 20.0;
const GAP: f64 = 6.0;
/// From the top of a group to its first bar.
const NAME: f64 = 26.0;

/// All of it to this width, and the size that it comes to. The longest bar has all the room.
pub fn bars(groups: &[Bars], unit: &str, width: f64) -> (Svg, Place) {
    let all = || groups.iter().flat_map(|group| &group.bars);
    let most = all().map(|bar| bar.value).fold(0.0, f64::max);
    let room_for = |letters: usize| letters as f64 * LETTER + GAP;
    let before = room_for(all().map(|bar| bar.name.chars().count()).max().unwrap_or(0));
    let after = room_for(all().map(|bar| bar.told(unit).chars().count()).max().unwrap_or(0));
    let room = (width - before - after).max(BAR);
    let mut svg = Svg::default();
    let mut y = 0.0;
    for group in groups {
        svg.text("start", (0.0, y + NAME - 8.0), &group.name);
        y += NAME;
        for bar in &group.bars {
            let long = (bar.value / most * room).max(1.0);
            let class = bar.slot.map_or_else(|| "idle".to_owned(), |slot| format!("mode m{slot}"));
            svg.text("end", (before - GAP, y + 15.0), &bar.name);
            svg.rect(&class, (before, y), (long, BAR));
            svg.text("start", (before + long + GAP, y + 15.0), &bar.told(unit));
            y += BAR + GAP;
        }
        y += GAP;
    }
    (svg, (width, y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_twice_as_much_is_twice_as_long_and_the_longest_figure_has_room() {
        let line =
            |value| Line { mode: "idle".to_owned(), sends: Sends::Idle, p50: value, p99: value };
        let bar = |name: &str, value| Bar::new(name, &line(value), 0);
        let group = Bars { name: "g".to_owned(), bars: vec![bar("a", 5.0), bar("bb", 10.0)] };
        let (svg, (width, height)) = bars(&[group], "ns", 300.0);
        let svg = svg.in_page("c", (width, height), "n").into_string();
        let wide = |at: usize| -> f64 {
            let rect = svg.split("<rect").nth(at).unwrap();
            rect.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert!((wide(2) - 2.0 * wide(1)).abs() < 0.2, "{svg}");
        assert!(wide(2) < 300.0 - 18.0 * LETTER, "{svg}");
    }
}
