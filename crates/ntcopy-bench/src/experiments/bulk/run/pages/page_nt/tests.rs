//! Every kind that this CPU has: all bytes, and the guard pages on both sides.

use super::*;

const GUARD: u8 = 0xa5;

/// Pages of bytes that differ from line to line and page to page, none of them 0.
fn pattern(pages: usize, seed: usize) -> Vec<Page> {
    (0..pages)
        .map(|page| {
            Page(std::array::from_fn(|byte| {
                ((byte * 7 + byte / 64 + page * 13 + seed) % 255) as u8 + 1
            }))
        })
        .collect()
}

fn assert_guarded(memory: &[Page], what: &str) {
    let (first, last) = (memory.first().unwrap(), memory.last().unwrap());
    assert!(first.0.iter().all(|&byte| byte == GUARD), "{what}: wrote below the pages");
    assert!(last.0.iter().all(|&byte| byte == GUARD), "{what}: wrote above the pages");
}

fn guarded(pages: usize, seed: usize) -> Vec<Page> {
    let mut memory = pattern(pages + 2, seed);
    *memory.first_mut().unwrap() = Page([GUARD; PAGE_BYTES]);
    *memory.last_mut().unwrap() = Page([GUARD; PAGE_BYTES]);
    memory
}

#[test]
fn every_cpu_has_movnti_and_the_rest_follows_cpuid() {
    let names: Vec<_> = available().iter().map(|kind| kind.name()).collect();
    assert_eq!(names.first(), Some(&"movnti"));
    let cpu = Cpu::detect();
    assert_eq!(names.contains(&"movdir64b"), cpu.has("movdir64b"));
}

#[test]
fn clear_zeroes_every_byte_and_none_beside_them() {
    for kind in available().iter().filter(|kind| kind.clear.is_some()) {
        for pages in [0, 1, 2, 3, 16, 512, 513] {
            let mut memory = guarded(pages, pages);
            assert!(kind.clear(&mut memory[1..=pages]));
            assert_guarded(&memory, kind.name());
            for (index, page) in memory[1..=pages].iter().enumerate() {
                assert!(*page == Page::ZERO, "{}: page {index} of {pages} not zero", kind.name());
            }
        }
    }
}

#[test]
fn copy_copies_every_byte_and_none_beside_them() {
    for kind in available().iter().filter(|kind| kind.copy.is_some()) {
        for pages in [0, 1, 2, 3, 16, 512, 513] {
            let from = pattern(pages, 99);
            let before = from.clone();
            let mut memory = guarded(pages, pages);
            assert!(kind.copy(&mut memory[1..=pages], &from));
            assert_guarded(&memory, kind.name());
            assert!(memory[1..=pages] == from[..], "{}: {pages} pages differ", kind.name());
            assert!(before == from, "{}: the source changed", kind.name());
        }
    }
}

#[test]
fn what_cannot_be_done_is_said_and_leaves_the_bytes_alone() {
    for kind in available() {
        let from = pattern(2, 1);
        let mut to = pattern(2, 2);
        if kind.copy.is_none() {
            assert!(!kind.copy(&mut to, &from));
        }
        if kind.clear.is_none() {
            assert!(!kind.clear(&mut to));
        }
        assert!(to == pattern(2, 2), "{}", kind.name());
        assert!(kind.clear.is_some() || kind.copy.is_some(), "{}: good for nothing", kind.name());
    }
}

/// Stores on top of lines that are dirty in the cache, and loads right behind the fence.
#[test]
fn lines_that_are_dirty_in_the_cache_are_replaced() {
    for kind in available().iter().filter(|kind| kind.clear.is_some()) {
        let mut memory = pattern(8, 3);
        for round in 0..50 {
            for page in &mut memory {
                page.0.fill(round as u8 | 1);
            }
            assert!(kind.clear(&mut memory));
            assert!(memory.iter().all(|page| *page == Page::ZERO), "{} round {round}", kind.name());
        }
    }
}

#[test]
fn another_thread_sees_the_pages_behind_the_fence() {
    use std::sync::mpsc;
    for kind in available().iter().filter(|kind| kind.clear.is_some()) {
        let (send, receive) = mpsc::channel::<Vec<Page>>();
        let reader = std::thread::spawn(move || {
            receive.into_iter().filter(|pages| pages.iter().any(|page| *page != Page::ZERO)).count()
        });
        for seed in 0..64 {
            let mut pages = pattern(16, seed);
            assert!(kind.clear(&mut pages));
            send.send(pages).unwrap();
        }
        drop(send);
        assert_eq!(reader.join().unwrap(), 0, "{}: stale pages", kind.name());
    }
}
