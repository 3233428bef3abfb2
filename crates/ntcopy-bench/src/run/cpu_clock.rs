//! CPU time of processes, to the nanosecond.

use std::fs;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::run::Failure;

/// The clock that counts the CPU time of a process, all its threads together, those that have
/// ended included.
///
/// `/proc/PID/stat` says the same in hundredths of a second, of which a sample has few.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    pid: Pid,
    clock: libc::clockid_t,
}

impl CpuClock {
    pub fn new(pid: Pid) -> Result<CpuClock, Failure> {
        let mut clock = 0;
        // SAFETY: the pointer is to a local, which the call writes.
        let error = unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &mut clock) };
        if error == 0 { Ok(CpuClock { pid, clock }) } else { Err(gone(pid, error)) }
    }

    pub fn ns(&self) -> Result<u64, Failure> {
        read(self.clock).map_err(|error| gone(self.pid, error))
    }
}

/// Nanoseconds, or the system's error. By the C library: rustix wants a vDSO for clocks, and a
/// user-mode kernel has none.
fn read(clock: libc::clockid_t) -> Result<u64, i32> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local, which the call writes.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    let (seconds, rest) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    Ok(seconds.unwrap_or(0) * 1_000_000_000 + rest.unwrap_or(0))
}

fn gone(pid: Pid, error: i32) -> Failure {
    let doing = format!("cannot ask for the CPU time of process {}", pid.as_raw_nonzero());
    Failure::Os { doing, errno: Errno::from_raw_os_error(error) }
}

/// A process and those that it started, and so on.
pub fn family(pid: Pid) -> Result<Vec<Pid>, Failure> {
    let mut parents: Vec<(Pid, Pid)> = Vec::new();
    for entry in fs::read_dir("/proc").map_err(Failure::io("cannot read /proc"))? {
        let Ok(entry) = entry else { continue };
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // One that has just gone has no parent any more.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let (Some(child), Some(parent)) = (number.and_then(Pid::from_raw), parent(&stat)) {
            parents.push((child, parent));
        }
    }
    let mut all = vec![pid];
    let mut looked_at = 0;
    while let Some(&parent) = all.get(looked_at) {
        looked_at += 1;
        all.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
    }
    Ok(all)
}

/// The parent in a line of `/proc/PID/stat`, where the name before it may hold anything.
fn parent(stat: &str) -> Option<Pid> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(1)?.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (a) b (c)) S 42 7 7 0"), Pid::from_raw(42));
        assert_eq!(parent("1 (init) S 0 1 1 0"), None);
        assert_eq!(parent("nothing"), None);
    }

    #[test]
    fn work_counts_and_waiting_does_not() {
        let clock = CpuClock::new(rustix::process::getpid()).unwrap();
        let before = clock.ns().unwrap();
        // Until it shows: a clock that stood still would never end this.
        let mut word = 1_u64;
        while clock.ns().unwrap() == before {
            word = std::hint::black_box(word.wrapping_mul(3));
        }
        assert!(clock.ns().unwrap() > before);
    }

    #[test]
    fn children_of_children_are_family_and_the_dead_have_no_clock() {
        let mut child = Command::new("sh")
            .args(["-c", "cat; exit 0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(family(rustix::process::getpid()).unwrap().contains(&pid));
        let clock = CpuClock::new(pid).unwrap();
        assert!(clock.ns().is_ok());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(clock.ns().is_err());
    }
}
