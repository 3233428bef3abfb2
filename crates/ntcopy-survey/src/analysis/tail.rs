//! How unlikely a figure is, and how unlikely the least likely of many are.

/// The chance that a normal variable lies more than `deviations` above its mean.
///
/// By the Chebyshev fit of Numerical Recipes (2nd edition, 6.2, `erfcc`); its relative error is
/// below 1.2e-7 everywhere.
#[must_use]
pub fn above(deviations: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = deviations / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let polynomial = FIT.iter().rev().fold(0.0, |sum, fit| sum * t + fit);
    let both = t * (-x * x + polynomial).exp();
    if x >= 0.0 { both / 2.0 } else { 1.0 - both / 2.0 }
}

/// Benjamini and Hochberg's adjustment (J. R. Statist. Soc. B 57, 1995): of those at or below a
/// level, no more than that part is expected to be named by chance. In the order of `chances`.
#[must_use]
pub fn adjusted(chances: &[f64]) -> Vec<f64> {
    let count = chances.len() as f64;
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*b].total_cmp(&chances[*a]));
    let mut adjusted = vec![1.0; chances.len()];
    let mut least: f64 = 1.0;
    for (from_top, at) in order.into_iter().enumerate() {
        let rank = count - from_top as f64;
        least = least.min(chances[at] * count / rank);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_that_of_the_tables() {
        for (deviations, chance) in
            [(0.0, 0.5), (1.959_964, 0.025), (-1.959_964, 0.975), (4.0, 3.167e-5), (8.0, 6.221e-16)]
        {
            let got = above(deviations);
            assert!((got / chance - 1.0).abs() < 1e-3, "{deviations}: {got}, not {chance}");
        }
    }

    #[test]
    fn chances_are_adjusted_as_in_the_paper() {
        // 0.01 x 5, 0.02 x 5/2, 0.03 x 5/3, 0.04 x 5/4, 0.05 x 1: all come to 0.05.
        let got = adjusted(&[0.03, 0.01, 0.05, 0.02, 0.04]);
        assert!(got.iter().all(|chance| (chance - 0.05).abs() < 1e-12), "{got:?}");
        let got = adjusted(&[0.5, 0.001]);
        assert!((got[0] - 0.5).abs() < 1e-12 && (got[1] - 0.002).abs() < 1e-12, "{got:?}");
        assert_eq!(adjusted(&[]), Vec::<f64>::new());
    }
}
