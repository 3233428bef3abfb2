use ntcopy_judge::compare::compare;
use ntcopy_judge::judge;
use ntcopy_record::testing::{crossover, sends, turns};

use super::*;

fn said(a: &ntcopy_record::Record, b: &ntcopy_record::Record) -> String {
    sentences(&compare(&[judge(a)], &[judge(b)])).join("\n")
}

#[test]
fn each_mode_and_metric_has_its_sentence() {
    let [less, more] = [80, 120].map(|rate| sends(&["plain", "hinted"], [[100, rate]; 5]));
    let words = "unix: hinted against plain, by throughput, does better in B than in A: B's ratio \
                 is at 1.50x (1.50-1.50) of A's.";
    assert_eq!(said(&less, &more), words);
    let noisy = |rates: [u64; 5]| sends(&["plain", "hinted"], rates.map(|rate| [100, rate]));
    let wide = said(&noisy([80, 120, 100, 90, 110]), &noisy([90, 110, 105, 80, 120]));
    assert!(wide.contains("is unresolved between A and B"), "{wide}");
    let own = said(&turns(&[(100, 100); 6]), &turns(&[(100, 50); 6]));
    assert!(own.contains("try: hinted against plain, by the program's own figure"), "{own}");
}

#[test]
fn cells_are_counted_and_those_of_one_side_too() {
    let a = crossover(&[(1 << 20, 80), (64 << 20, 120)]);
    let b = crossover(&[(1 << 20, 100), (64 << 20, 120), (128 << 20, 120)]);
    let both = said(&a, &b);
    assert!(both.contains("clearly better in 1, clearly worse in 0 of 2 cells"), "{both}");
    assert!(both.contains("0 in A, 1 in B"), "{both}");
    let none = said(&crossover(&[(1 << 20, 80)]), &crossover(&[(2 << 20, 80)]));
    assert!(none.contains("no cell in common"), "{none}");
}
