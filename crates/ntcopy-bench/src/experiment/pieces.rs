//! The pieces that a gathered send is made of.

/// Sizes in bytes of the pieces of one value in memcached's answer to a request for many: two of
/// its header, and what is stored.
const OF_A_VALUE: [u64; 3] = [30, 30, 1024];

/// One send takes no more: `UIO_MAXIOV`.
pub const MOST_PIECES: u32 = 1024;

/// The sizes of the pieces, in bytes.
pub fn piece_sizes(pieces: u32) -> impl Iterator<Item = u64> {
    OF_A_VALUE.into_iter().cycle().take(pieces as usize)
}

/// What they come to.
#[must_use]
pub fn gathered_bytes(pieces: u32) -> u64 {
    piece_sizes(pieces).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_hundred_are_the_answer_for_a_hundred_small_values() {
        assert_eq!(gathered_bytes(300), 100 * (30 + 30 + 1024));
        assert_eq!(piece_sizes(5).collect::<Vec<u64>>(), [30, 30, 1024, 30, 30]);
    }
}
