//! A tree of things as a drawing: what lies beside each other stands side by side, and what shares
//! a cache below its bar.

use maud::{Markup, html};

use super::tree::{Shape, Thing};
use super::{BAR, GAP};

/// Pixels of a column, and of what counts the neighbours that are not drawn.
const COLUMN: u32 = 108;
/// Pixels of a letter, and some.
const LETTER: u32 = 8;
/// Pixels of a frame's name.
const TITLE: u32 = 24;
/// Columns that are drawn at most; a machine with more cores has neighbours counted.
const MOST_COLUMNS: usize = 14;
/// The number of neighbours that are drawn where there is room.
const MOST_NEIGHBOURS: usize = 14;

/// The picture; the tree loses neighbours until there is room.
pub(super) fn svg(id: &str, name: &str, mut tree: Thing) -> Markup {
    for neighbours in (1..=MOST_NEIGHBOURS).rev() {
        if columns(&tree) <= MOST_COLUMNS {
            break;
        }
        tree.at_most(neighbours);
    }
    let (width, height) = size(&tree);
    let (width, height) = (width + 2, height + 2);
    html! {
        svg class="topology" width=(width) height=(height)
            viewBox=(format!("0 0 {width} {height}")) role="img" aria-labelledby=(id) {
            title id=(id) { (name) }
            (draw(&tree, (1, 1)))
        }
    }
}

/// Whether what lies in a thing stands below each other: threads of a core.
fn is_stack(thing: &Thing) -> bool {
    thing.inside.iter().all(|inside| inside.shape == Shape::Cpu)
}

fn columns(thing: &Thing) -> usize {
    if is_stack(thing) {
        return 1;
    }
    thing.inside.iter().map(columns).sum::<usize>() + usize::from(thing.more > 0)
}

/// Width and height of what lies in a thing.
fn inside(thing: &Thing) -> (u32, u32) {
    let sizes: Vec<(u32, u32)> = thing.inside.iter().map(size).collect();
    let widest = sizes.iter().map(|(width, _)| *width).max().unwrap_or(0);
    let highest = sizes.iter().map(|(_, height)| *height).max().unwrap_or(0);
    let gaps = (sizes.len() as u32).saturating_sub(1) * GAP;
    if is_stack(thing) {
        let heights: u32 = sizes.iter().map(|(_, height)| height).sum();
        return (widest, heights + gaps);
    }
    let more = if thing.more > 0 { GAP + COLUMN } else { 0 };
    (sizes.iter().map(|(width, _)| width).sum::<u32>() + gaps + more, highest)
}

/// Width and height of a thing with all that lies in it.
fn size(thing: &Thing) -> (u32, u32) {
    let (width, height) = inside(thing);
    let below = if thing.inside.is_empty() { 0 } else { GAP + height };
    match thing.shape {
        Shape::Cpu => (COLUMN, BAR),
        Shape::Bar => (width.max(COLUMN), BAR + below),
        Shape::Frame => {
            let name = thing.name.chars().count() as u32 * LETTER;
            (width.max(name) + 2 * GAP, TITLE + below + GAP)
        }
    }
}

fn draw(thing: &Thing, (x, y): (u32, u32)) -> Markup {
    let (width, height) = size(thing);
    let (own, first, top) = match thing.shape {
        Shape::Cpu => (bar("cpu", (x, y), width, &thing.name), x, y),
        Shape::Bar => (bar("cache", (x, y), width, &thing.name), x, y + BAR + GAP),
        Shape::Frame => {
            let own = html! {
                rect class="outer" x=(x) y=(y) width=(width) height=(height) rx="6" {}
                text x=(x + GAP) y=(y + 18) { (thing.name) }
            };
            (own, x + GAP, y + TITLE + GAP)
        }
    };
    let is_stack = is_stack(thing);
    let mut at = (first, top);
    let mut inner: Vec<Markup> = Vec::new();
    for one in &thing.inside {
        let (width, height) = size(one);
        inner.push(draw(one, at));
        at = if is_stack { (at.0, at.1 + height + GAP) } else { (at.0 + width + GAP, at.1) };
    }
    html! {
        (own)
        @for one in &inner { (one) }
        @if thing.more > 0 {
            text class="centre" x=(at.0 + COLUMN / 2) y=(at.1 + 22) { "and " (thing.more) " more" }
        }
    }
}

fn bar(class: &str, (x, y): (u32, u32), width: u32, name: &str) -> Markup {
    html! {
        rect class=(class) x=(x) y=(y) width=(width) height=(BAR) rx="4" {}
        text class="centre" x=(x + width / 2) y=(y + 22) { (name) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{of, tests::machine};
    use super::*;

    fn picture(packages: u32, cores: u32) -> String {
        svg("id", "a machine", of("Machine", &machine(packages, cores))).into_string()
    }

    /// The rectangles: left, top, right, bottom.
    fn rectangles(svg: &str) -> Vec<[u32; 4]> {
        let number = |element: &str, name: &str| -> u32 {
            let rest = element.split(&format!(" {name}=\"")).nth(1).expect(name);
            rest.split('"').next().and_then(|digits| digits.parse().ok()).expect(name)
        };
        let elements = svg.split("<rect").skip(1).filter_map(|rest| rest.split('>').next());
        elements
            .map(|e| {
                let (x, y) = (number(e, "x"), number(e, "y"));
                [x, y, x + number(e, "width"), y + number(e, "height")]
            })
            .collect()
    }

    #[test]
    fn a_small_machine_is_drawn_whole_and_nothing_lies_across_an_edge() {
        let svg = picture(2, 2);
        for name in ["Package 1", "NUMA node 1, 64 GiB", "L3 128 KiB", "Core 3", "CPU 7"] {
            assert!(svg.contains(&format!(">{name}<")), "{name}: {svg}");
        }
        assert!(!svg.contains(" more<"));
        let all = rectangles(&svg);
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                let is_apart =
                    (0..2).any(|axis| one[axis + 2] < other[axis] || other[axis + 2] < one[axis]);
                let is_within =
                    (0..2).all(|axis| one[axis] <= other[axis] && other[axis + 2] <= one[axis + 2]);
                assert!(is_apart || is_within, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_large_machine_has_neighbours_counted_and_stays_small() {
        let svg = picture(2, 64);
        // 63 of 64 cores of each package; the packages themselves are two.
        assert_eq!(svg.matches(">and ").count(), 2, "{svg}");
        assert!(svg.contains("more<") && svg.contains(">Package 1<"));
        assert!(svg.len() < 20_000, "{} bytes", svg.len());
    }
}
