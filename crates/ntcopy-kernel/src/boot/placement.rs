//! Where the guest's threads run, and whether they spin.
//!
//! In seccomp mode every system call of the guest hands over between two host threads through a
//! futex. Unpinned, sleeping on it, that costs about 100 µs, since an idle CPU has to be woken;
//! with everything on one CPU about 15 µs; with both sides spinning a while before they sleep
//! about 4 µs, on two CPUs. Spinning with everything on one CPU only keeps the other side from
//! running.

use std::fmt;

/// Iterations that a side spins before it sleeps, where it spins at all.
pub const DEFAULT_SPIN: u32 = 10_000;

/// Environment variable that overrides [`DEFAULT_SPIN`]; 0 is off.
pub const SPIN_VARIABLE: &str = "NTCOPY_UM_SPIN";

/// CPUs of the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cpus {
    /// One: for everything that is heavy in system calls.
    #[default]
    One,
    /// Two: for a sender and a receiver that both stay busy.
    Two,
    /// Four: in QEMU, for races that two do not show.
    Four,
}

impl Cpus {
    /// The number.
    pub fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

impl std::str::FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1" => Ok(Self::One),
            "2" => Ok(Self::Two),
            "4" => Ok(Self::Four),
            _ => Err(format!("a guest has 1, 2 or 4 CPUs, not {text}")),
        }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count())
    }
}

/// What the kernel is told, and where it is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// `ncpus=`.
    pub guest_cpus: u32,
    /// `seccomp_spin=`, iterations; 0 is off. A kernel without the bench's patches ignores it.
    pub spin: u32,
    /// The one host CPU that everything is pinned to.
    pub pin: Option<usize>,
}

/// Decides the placement. `host_cpus` are those that this process may use; `spin` is the user's
/// override.
pub fn placement(cpus: Cpus, host_cpus: usize, pin: Option<usize>, spin: Option<u32>) -> Placement {
    let crowded = pin.is_some() || host_cpus < 2;
    let spin = match (crowded, cpus) {
        (true, _) => 0,
        (false, Cpus::One) => spin.unwrap_or(DEFAULT_SPIN),
        // Two guest CPUs are two pairs of threads. With fewer host CPUs than threads, whoever
        // spins takes the CPU from whom it waits for.
        (false, Cpus::Two | Cpus::Four) if host_cpus < 4 => spin.unwrap_or(0),
        (false, Cpus::Two | Cpus::Four) => spin.unwrap_or(DEFAULT_SPIN),
    };
    Placement { guest_cpus: cpus.count(), spin, pin }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_guest_cpu_on_two_host_cpus_spins_unpinned() {
        let expected = Placement { guest_cpus: 1, spin: DEFAULT_SPIN, pin: None };
        assert_eq!(placement(Cpus::One, 2, None, None), expected);
        assert_eq!(placement(Cpus::One, 2, None, Some(0)).spin, 0);
        assert_eq!(placement(Cpus::One, 2, None, Some(500)).spin, 500);
    }

    #[test]
    fn nothing_ever_spins_with_everything_on_one_cpu() {
        for cpus in [Cpus::One, Cpus::Two] {
            assert_eq!(placement(cpus, 1, None, Some(9)).spin, 0);
            assert_eq!(placement(cpus, 8, Some(3), Some(9)).spin, 0);
            assert_eq!(placement(cpus, 8, Some(3), None).pin, Some(3));
        }
    }

    #[test]
    fn two_guest_cpus_spin_only_where_there_are_four() {
        assert_eq!(placement(Cpus::Two, 2, None, None).spin, 0);
        assert_eq!(placement(Cpus::Two, 4, None, None).spin, DEFAULT_SPIN);
        assert_eq!(placement(Cpus::Two, 2, None, Some(100)).spin, 100);
        assert_eq!(placement(Cpus::Two, 2, None, None).guest_cpus, 2);
    }
}
