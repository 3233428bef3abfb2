//! The fuzz target's check on their corpus, and on what comes of it when it is cut, mixed and
//! changed, the same way every time.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRng, TestRunner};

use crate::anything::anything;

/// Pieces that matter to a parser.
const WORDS: [&str; 16] = [
    "\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    ",",
    ";",
    "0\r\n\r\n",
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Host: x\r\n",
    "chunked",
    "HTTP/1.0",
    "\0",
    "-",
];

#[test]
fn nothing_that_comes_of_the_corpus_is_understood_in_two_ways() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/anything");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(seeds.len() >= 16);
    seeds.iter().for_each(|seed| anything(seed));
    let change = (0..4_u8, any::<Index>(), any::<u8>(), select(&WORDS[..]), select(seeds.clone()));
    let mutated = (select(seeds), prop::collection::vec(change, 1..4));
    let config = Config { cases: 10_000, failure_persistence: None, ..Config::default() };
    let random = TestRng::deterministic_rng(config.rng_algorithm);
    let result = TestRunner::new_with_rng(config, random).run(&mutated, |(mut bytes, changes)| {
        for (kind, at, byte, word, other) in changes {
            let at = at.index(bytes.len() + 1);
            match kind {
                0 => bytes.insert(at, byte),
                1 => drop(bytes.splice(at..at, word.bytes())),
                2 => bytes.truncate(at),
                _ => drop(bytes.splice(at.., other[at.min(other.len())..].iter().copied())),
            }
        }
        anything(&bytes);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("add to the corpus: {error}"));
}
