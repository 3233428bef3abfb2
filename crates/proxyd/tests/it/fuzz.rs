//! The fuzz target's check on its corpus and on mutations of it, the same ones every time.

use std::path::Path;

use crate::common::pattern;

/// Marsaglia's xorshift: enough to pick places and bytes.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

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

fn mutate(seed: &[u8], seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            1 if at < bytes.len() => {
                bytes.remove(at);
            }
            2 => {
                let word = WORDS[random.below(WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
            3 => bytes.truncate(at),
            _ => {
                let other = &seeds[random.below(seeds.len())];
                bytes.splice(at.., other[random.below(other.len())..].iter().copied());
            }
        }
    }
    bytes
}

/// The check on every seed, on mutations of them, and on a long pattern.
fn hold(check: fn(&[u8]), seeds: &[Vec<u8>]) {
    seeds.iter().for_each(|seed| check(seed));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..5000 {
        let seed = &seeds[round % seeds.len()];
        let bytes = mutate(seed, seeds, &mut random);
        if std::panic::catch_unwind(|| check(&bytes)).is_err() {
            panic!("add to the corpus: {}", bytes.escape_ascii());
        }
    }
    check(&pattern(5000));
}

fn owned(seeds: &[&[u8]]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.to_vec()).collect()
}

#[test]
fn no_mutation_of_the_corpus_is_understood_in_two_ways() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/request");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(seeds.len() >= 16);
    hold(proxyd::fuzzing::request, &seeds);
}

#[test]
fn no_mutated_answer_or_chunked_body_is_understood_in_two_ways() {
    let answers: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
    ];
    hold(proxyd::fuzzing::response, &owned(&answers));
    let bodies: [&[u8]; 3] = [
        b"\x01\x02\x03\x04\x05\x06\x07\x085;e=1\r\nhello\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n",
        b"\x01\x01\x09\x01\x01\x01\x02\x010\r\n\r\n",
        b"\x40\x01\x09\x01\x01\x01\x02\x0111;a=\"x\"\r\n0123456789abcdef!\r\n00\r\n\r\n",
    ];
    hold(proxyd::fuzzing::chunked, &owned(&bodies));
}
