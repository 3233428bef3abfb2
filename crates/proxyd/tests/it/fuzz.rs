//! The fuzz targets' checks on their corpus, and on what comes of it when it is cut, mixed and
//! changed, the same way every time.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRng, TestRunner};

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

/// The check on every seed, and on mutations of them.
fn hold(check: fn(&[u8]), seeds: Vec<Vec<u8>>) {
    seeds.iter().for_each(|seed| check(seed));
    let change = (0..4_u8, any::<Index>(), any::<u8>(), select(&WORDS[..]), select(seeds.clone()));
    let mutated = (select(seeds), prop::collection::vec(change, 1..4));
    let config = Config { cases: 5000, failure_persistence: None, ..Config::default() };
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
        check(&bytes);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("add to the corpus: {error}"));
}

#[test]
fn nothing_that_comes_of_the_corpus_is_understood_in_two_ways() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/request");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(seeds.len() >= 16);
    hold(proxyd::fuzzing::request, seeds);
    let answers: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
    ];
    hold(proxyd::fuzzing::response, answers.map(<[u8]>::to_vec).to_vec());
    let bodies: [&[u8]; 3] = [
        b"\x01\x02\x03\x04\x05\x06\x07\x085;e=1\r\nhello\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n",
        b"\x01\x01\x09\x01\x01\x01\x02\x010\r\n\r\n",
        b"\x40\x01\x09\x01\x01\x01\x02\x0111;a=\"x\"\r\n0123456789abcdef!\r\n00\r\n\r\n",
    ];
    hold(proxyd::fuzzing::chunked, bodies.map(<[u8]>::to_vec).to_vec());
}
