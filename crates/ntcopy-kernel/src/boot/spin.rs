//! Whether a um guest's threads spin.
//!
//! In seccomp mode every system call of the guest hands over between two host threads through a
//! futex. Unpinned, sleeping on it, that costs about 100 µs, since an idle CPU has to be woken;
//! with everything on one CPU about 15 µs; with both sides spinning a while before they sleep
//! about 4 µs, on two CPUs. Spinning with everything on one CPU only keeps the other side from
//! running. A guest of two CPUs whose each is one of the host's (`host_cpus=`) pays what one CPU
//! does, 8 µs on a Zen 4, on both at once; left to the host, two busy processes pay 20.

use super::HostCpus;

/// Iterations that a side spins before it sleeps, where it spins at all.
const DEFAULT: u32 = 10_000;

/// Environment variable that overrides [`DEFAULT`]; 0 is off.
pub(super) const VARIABLE: &str = "NTCOPY_UM_SPIN";

/// Iterations for a guest of so many CPUs; 0 is off. This process may use `allowed` CPUs; `asked` is
/// the user's override.
pub(super) fn iterations(
    cpus: u32,
    allowed: usize,
    host_cpus: &HostCpus,
    asked: Option<u32>,
) -> u32 {
    // Kernel and process of a CPU that is one of the host's take turns on that, too.
    let crowded = *host_cpus != HostCpus::Any || allowed < 2;
    match (crowded, cpus) {
        (true, _) => 0,
        // Two guest CPUs are two pairs of threads. With fewer host CPUs than threads, whoever
        // spins takes the CPU from whom it waits for.
        (false, 2..) if allowed < 4 => asked.unwrap_or(0),
        (false, _) => asked.unwrap_or(DEFAULT),
    }
}

#[cfg(test)]
mod tests {
    use HostCpus::{Any, Each, One};

    use super::*;

    #[test]
    fn one_guest_cpu_on_two_host_cpus_spins_unpinned() {
        assert_eq!(iterations(1, 2, &Any, None), DEFAULT);
        assert_eq!(iterations(1, 2, &Any, Some(0)), 0);
        assert_eq!(iterations(1, 2, &Any, Some(500)), 500);
    }

    #[test]
    fn nothing_ever_spins_with_everything_on_one_cpu() {
        for cpus in [1, 2] {
            assert_eq!(iterations(cpus, 1, &Any, Some(9)), 0);
            assert_eq!(iterations(cpus, 8, &One(3), Some(9)), 0);
            assert_eq!(iterations(cpus, 8, &Each(vec![3, 5]), Some(9)), 0);
        }
    }

    #[test]
    fn two_guest_cpus_spin_only_where_there_are_four() {
        assert_eq!(iterations(2, 2, &Any, None), 0);
        assert_eq!(iterations(2, 4, &Any, None), DEFAULT);
        assert_eq!(iterations(2, 2, &Any, Some(100)), 100);
    }
}
