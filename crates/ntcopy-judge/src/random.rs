//! Random numbers that are the same for a seed, in every version of this program.

/// The generator of Steele, Lea and Flood (OOPSLA 2014).
///
/// Written out here because the intervals of records that lie on disk must not
/// change when a library changes its generator.
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next number: each of the 2^64 once in a round.
    #[expect(clippy::should_implement_trait, reason = "it has no end, so an Option says nothing")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`. The bias is `bound` in 2^64: nothing, for a few samples.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_gives_the_published_sequence() {
        // First outputs for seed 1234567, as in the generator's reference code.
        let mut random = SplitMix64(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, expected);
    }
}
