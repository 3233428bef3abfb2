//! The memory that is sent from: mapped once, touched once, kept.

use memmap2::{Advice, MmapMut};

use crate::run::{Failure, map, pattern};

/// The data set: objects that are sent round-robin.
pub struct DataSet {
    buffer: MmapMut,
    object_bytes: usize,
    next: usize,
}

/// The data set's pattern; far from the seeds of the verification.
pub const DATA_SET_SEED: u64 = 1 << 40;

impl DataSet {
    /// Maps the data set and fills it with its pattern; `kept` is another data
    /// set's memory, which will do as it is if it has the size.
    pub fn new(
        dataset_bytes: u64,
        object_bytes: u64,
        kept: Option<MmapMut>,
    ) -> Result<DataSet, Failure> {
        let kept = kept.filter(|buffer| buffer.len() as u64 == dataset_bytes);
        let buffer = match kept {
            Some(buffer) => buffer,
            None => {
                let mut buffer = map(dataset_bytes, Advice::Normal)?;
                // It touches the memory as well.
                pattern::fill(DATA_SET_SEED, 0, &mut buffer);
                buffer
            }
        };
        // The mapping has shown that the larger number fits.
        let object_bytes = object_bytes as usize;
        Ok(DataSet { buffer, object_bytes, next: 0 })
    }

    /// Its memory, for another data set of the same size.
    pub fn into_buffer(self) -> MmapMut {
        self.buffer
    }

    pub fn next(&mut self) -> (usize, &[u8]) {
        let at = self.next;
        let end = at + self.object_bytes;
        let last = end + self.object_bytes > self.buffer.len();
        self.next = if last { 0 } else { end };
        (at, &self.buffer[at..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_round_robin_and_whole() {
        let mut data = DataSet::new(10_000, 3000, None).unwrap();
        let places: Vec<usize> = (0..5).map(|_| data.next().0).collect();
        assert_eq!(places, [0, 3000, 6000, 0, 3000]);
        let (at, bytes) = data.next();
        assert_eq!(pattern::first_wrong(DATA_SET_SEED, at as u64, bytes), None);
    }

    #[test]
    fn a_data_set_of_one_object_repeats_it() {
        let mut data = DataSet::new(4096, 4096, None).unwrap();
        assert_eq!((data.next().0, data.next().0), (0, 0));
    }

    #[test]
    fn memory_is_kept_for_a_data_set_of_the_same_size_only() {
        let first = DataSet::new(8192, 4096, None).unwrap();
        let place = first.buffer.as_ptr();
        let second = DataSet::new(8192, 1024, Some(first.into_buffer())).unwrap();
        assert_eq!(second.buffer.as_ptr(), place);
        let third = DataSet::new(4096, 1024, Some(second.into_buffer())).unwrap();
        assert_eq!(third.buffer.len(), 4096);
        assert_eq!(pattern::first_wrong(DATA_SET_SEED, 0, &third.buffer), None);
    }
}
