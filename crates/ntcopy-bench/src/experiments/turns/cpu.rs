//! CPU time of a program that has ended.

/// What children of this process have used that ended, and were waited for, since it began.
pub struct CpuOfChildren {
    before_ns: u64,
}

impl CpuOfChildren {
    pub fn begin() -> CpuOfChildren {
        CpuOfChildren { before_ns: ended_ns() }
    }

    pub fn used_ns(&self) -> u64 {
        ended_ns().saturating_sub(self.before_ns)
    }
}

fn ended_ns() -> u64 {
    // SAFETY: rusage is a plain C struct, for which all zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local, which the call writes.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } != 0 {
        return 0;
    }
    let ns = |time: libc::timeval| {
        let (seconds, micros) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
        seconds.unwrap_or(0) * 1_000_000_000 + micros.unwrap_or(0) * 1000
    };
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_worked_and_was_waited_for_counts() {
        let cpu = CpuOfChildren::begin();
        let script = "n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done";
        let status = std::process::Command::new("sh").args(["-c", script]).status().unwrap();
        assert!(status.success());
        assert!(cpu.used_ns() > 0);
    }
}
