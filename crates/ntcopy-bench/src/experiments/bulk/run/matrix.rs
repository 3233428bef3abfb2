//! Walks through a square matrix of 8-byte numbers: the plain loops that a programmer writes.

use std::hint::black_box;

use crate::experiments::bulk::task::ELEMENT_BYTES;
use crate::experiments::bulk::task::{MatrixTask, Walk};
use crate::run::Failure;

use super::lanes::{Lane, wrong_number};

/// What is written where: every element differs from its neighbours.
fn value(place: usize) -> u64 {
    (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Does a task `calls` times; gives the last sum.
pub fn walk(lane: &mut Lane<'_>, task: MatrixTask, walk: Walk, calls: u64) -> u64 {
    let side = crate::experiments::bulk::plan::side(lane.size as u64) as usize;
    let (source, destination) = numbers(lane, side);
    let mut sum = 0;
    for _ in 0..calls {
        let (source, destination) = (black_box(source), black_box(&mut *destination));
        match (task, walk.nontemporal) {
            (MatrixTask::Sum, _) => sum = add(source, side, walk.by_columns),
            (MatrixTask::Write, false) => {
                each(side, walk.by_columns, |place| destination[place] = value(place));
            }
            (MatrixTask::Copy, false) => {
                each(side, walk.by_columns, |place| destination[place] = source[place]);
            }
            (MatrixTask::Write, true) => {
                each(side, walk.by_columns, |place| stream(&mut destination[place], value(place)));
                ntcopy::fence();
            }
            (MatrixTask::Copy, true) => {
                each(side, walk.by_columns, |place| stream(&mut destination[place], source[place]));
                ntcopy::fence();
            }
        }
    }
    black_box(sum)
}

fn add(source: &[u64], side: usize, by_columns: bool) -> u64 {
    let mut sum = 0_u64;
    each(side, by_columns, |place| sum = sum.wrapping_add(source[place]));
    sum
}

/// Every place of the matrix, in order.
#[inline(always)]
fn each(side: usize, by_columns: bool, mut at: impl FnMut(usize)) {
    if by_columns {
        for column in 0..side {
            for row in 0..side {
                at(row * side + column);
            }
        }
    } else {
        for place in 0..side * side {
            at(place);
        }
    }
}

/// One element past the caches, without a fence.
#[inline(always)]
fn stream(to: &mut u64, value: u64) {
    // SAFETY: the reference is valid for a write of 8 bytes; MOVNTI is in every x86-64 CPU.
    unsafe {
        core::arch::x86_64::_mm_stream_si64(std::ptr::from_mut(to).cast(), value.cast_signed());
    }
}

fn numbers<'a>(lane: &'a mut Lane<'_>, side: usize) -> (&'a [u64], &'a mut [u64]) {
    let bytes = side * side * ELEMENT_BYTES as usize;
    // SAFETY: any bytes are numbers.
    let (_, source, _) = unsafe { lane.source[..bytes].align_to::<u64>() };
    // SAFETY: any bytes are numbers, and any number is bytes.
    let (_, destination, _) = unsafe { lane.destination[..bytes].align_to_mut::<u64>() };
    (source, destination)
}

/// Compares what a walk left behind with what it should have; `sum` is what it gave.
pub fn verify(lane: &mut Lane<'_>, task: MatrixTask, sum: u64) -> Result<(), Failure> {
    let side = crate::experiments::bulk::plan::side(lane.size as u64) as usize;
    let (source, destination) = numbers(lane, side);
    if task == MatrixTask::Sum {
        let right = source.iter().fold(0_u64, |sum, number| sum.wrapping_add(*number));
        return if sum == right { Ok(()) } else { Err(wrong_number(0, right, sum)) };
    }
    let right = |place: usize| if task == MatrixTask::Copy { source[place] } else { value(place) };
    for (place, got) in destination.iter().enumerate() {
        if *got != right(place) {
            return Err(wrong_number(place, right(place), *got));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{Places, Stand};
    use super::*;
    use crate::experiments::bulk::task::{Heat, Task, Way};

    #[test]
    fn every_walk_does_its_task_and_half_a_walk_is_noticed() {
        let source: Vec<u64> = (0..49).map(|n| value(n) ^ 1).collect();
        let mut destination = [0_u64; 49];
        let places = Places::new(392, 392, Heat::Hot);
        let mut stand = Stand { source: places, destination: places };
        // SAFETY: any number is bytes, and any bytes are numbers.
        let (source, destination) =
            unsafe { (source.align_to::<u8>().1, destination.align_to_mut::<u8>().1) };
        let mut lane = Lane {
            source,
            source_start: 0,
            destination,
            stand: &mut stand,
            size: 392,
            is_read_back: false,
        };
        for task in [MatrixTask::Sum, MatrixTask::Write, MatrixTask::Copy] {
            for way in Task::Matrix(task).ways() {
                let Way::Walk(through) = way else { panic!("{way} is no walk") };
                lane.destination.fill(0);
                let sum = walk(&mut lane, task, through, 1);
                assert_eq!(verify(&mut lane, task, sum), Ok(()), "{way} {task:?}");
                if task != MatrixTask::Sum {
                    lane.destination[391] ^= 0x80;
                    assert!(verify(&mut lane, task, sum).is_err(), "{way} {task:?}");
                }
            }
        }
        assert!(verify(&mut lane, MatrixTask::Sum, 1).is_err());
    }
}
