//! The ways of the last-level cache as bits of a register, the highest way leftmost.

/// The least that the hardware takes.
pub const LEAST: u32 = 2;

/// The bits of all ways of a cache with `of` ways.
pub fn all(of: u32) -> u64 {
    if of >= 64 { u64::MAX } else { (1 << of) - 1 }
}

/// The highest `ways` ways: where both generations have them when the machine starts.
pub fn highest(ways: u32, of: u32) -> u64 {
    all(of) & !all(of - ways.min(of))
}

/// `way 10 [##.........] way 0`.
pub fn draw(value: u64, of: u32) -> String {
    let way = |number: u32| if value >> number & 1 == 1 { '#' } else { '.' };
    let bar: String = (0..of).rev().map(way).collect();
    format!("way {} [{bar}] way 0", of.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_masks_come_out() {
        assert_eq!(highest(2, 11), 0x600);
        assert_eq!(highest(4, 11), 0x780);
        assert_eq!(highest(2, 12), 0xc00);
        assert_eq!(highest(11, 11), 0x7ff);
        assert_eq!(all(64), u64::MAX);
    }

    #[test]
    fn the_highest_way_is_leftmost() {
        assert_eq!(draw(0x600, 11), "way 10 [##.........] way 0");
        assert_eq!(draw(0x401, 11), "way 10 [#.........#] way 0");
    }
}
