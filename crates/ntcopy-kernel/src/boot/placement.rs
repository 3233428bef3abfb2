//! Where the guest's threads run, and whether they spin.
//!
//! In seccomp mode every system call of the guest hands over between two host threads through a
//! futex. Unpinned, sleeping on it, that costs about 100 µs, since an idle CPU has to be woken;
//! with everything on one CPU about 15 µs; with both sides spinning a while before they sleep
//! about 4 µs, on two CPUs. Spinning with everything on one CPU only keeps the other side from
//! running. A guest of two CPUs whose each is one of the host's (`host_cpus=`) pays what one CPU
//! does, 8 µs on a Zen 4, on both at once; left to the host, two busy processes pay 20.

use super::HostCpus;

/// Iterations that a side spins before it sleeps, where it spins at all.
pub const DEFAULT_SPIN: u32 = 10_000;

/// Environment variable that overrides [`DEFAULT_SPIN`]; 0 is off.
pub const SPIN_VARIABLE: &str = "NTCOPY_UM_SPIN";

/// What the kernel gets on its command line, and where its CPUs run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// `ncpus=`.
    pub guest_cpus: u32,
    /// `seccomp_spin=`, iterations; 0 is off. A kernel without the bench's patches ignores it.
    pub spin: u32,
    /// Where its CPUs run. Each on one of its own is `host_cpus=`, for a um kernel.
    pub host_cpus: HostCpus,
}

/// Decides the placement. This process may use `allowed` CPUs; `spin` is the user's override.
pub fn placement(cpus: u32, allowed: usize, host_cpus: HostCpus, spin: Option<u32>) -> Placement {
    // Kernel and process of a CPU that is one of the host's take turns on that, too.
    let crowded = host_cpus != HostCpus::Any || allowed < 2;
    let spin = match (crowded, cpus) {
        (true, _) => 0,
        // Two guest CPUs are two pairs of threads. With fewer host CPUs than threads, whoever
        // spins takes the CPU from whom it waits for.
        (false, 2..) if allowed < 4 => spin.unwrap_or(0),
        (false, _) => spin.unwrap_or(DEFAULT_SPIN),
    };
    Placement { guest_cpus: cpus, spin, host_cpus }
}

#[cfg(test)]
mod tests {
    use HostCpus::{Any, Each, One};

    use super::*;

    #[test]
    fn one_guest_cpu_on_two_host_cpus_spins_unpinned() {
        let expected = Placement { guest_cpus: 1, spin: DEFAULT_SPIN, host_cpus: Any };
        assert_eq!(placement(1, 2, Any, None), expected);
        assert_eq!(placement(1, 2, Any, Some(0)).spin, 0);
        assert_eq!(placement(1, 2, Any, Some(500)).spin, 500);
    }

    #[test]
    fn nothing_ever_spins_with_everything_on_one_cpu() {
        for cpus in [1, 2] {
            assert_eq!(placement(cpus, 1, Any, Some(9)).spin, 0);
            assert_eq!(placement(cpus, 8, One(3), Some(9)).spin, 0);
            assert_eq!(placement(cpus, 8, Each(vec![3, 5]), Some(9)).spin, 0);
            assert_eq!(placement(cpus, 8, One(3), None).host_cpus, One(3));
        }
    }

    #[test]
    fn two_guest_cpus_spin_only_where_there_are_four() {
        assert_eq!(placement(2, 2, Any, None).spin, 0);
        assert_eq!(placement(2, 4, Any, None).spin, DEFAULT_SPIN);
        assert_eq!(placement(2, 2, Any, Some(100)).spin, 100);
        assert_eq!(placement(2, 2, Any, None).guest_cpus, 2);
    }
}
