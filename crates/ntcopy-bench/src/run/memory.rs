//! Memory: how much there is, and mapping some.

use memmap2::{Advice, MmapMut, MmapOptions};
use ntcopy_record::units::Bytes;

use super::Failure;

/// Bytes of memory that are to be had without pushing anything out; 0 if they can't be read.
pub fn available_bytes() -> u64 {
    ntcopy_kernel::boot::available_bytes().unwrap_or(0)
}

/// Maps memory without touching it, on pages of the kind that is advised.
pub fn map(len_bytes: u64, advice: Advice) -> Result<MmapMut, Failure> {
    let doing = || format!("cannot map {}", Bytes(len_bytes));
    let len = usize::try_from(len_bytes).map_err(|_| Failure::Limit(doing()))?;
    // A mapping of nothing is refused.
    let map = MmapOptions::new().len(len.max(1)).map_anon().map_err(Failure::io(doing()))?;
    // A kernel without huge pages has no advice about them either, and then all are small.
    let _ = map.advise(advice);
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_bytes() {
        assert!((1 << 20..1 << 60).contains(&available_bytes()));
    }
}
