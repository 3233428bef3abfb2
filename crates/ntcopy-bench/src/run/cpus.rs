//! Which CPUs there are, and staying on one.

use ntcopy_record::CpuList;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Failure;
use crate::plan::{CpuPair, Cpus};

pub fn cpus() -> Result<Cpus, Failure> {
    let set = sched_getaffinity(None).map_err(Failure::os("cannot ask for the CPUs to run on"))?;
    let most = u32::try_from(CpuSet::MAX_CPU).unwrap_or(u32::MAX);
    let allowed: Vec<u32> = (0..most).filter(|cpu| set.is_set(*cpu as usize)).collect();
    let sharing_l2 = sharing_l2(&allowed);
    Ok(Cpus { allowed, sharing_l2 })
}

pub fn pin(cpu: u32) -> Result<(), Failure> {
    if cpu as usize >= CpuSet::MAX_CPU {
        let most = CpuSet::MAX_CPU;
        return Err(Failure::Limit(format!("CPU {cpu}: only CPUs below {most} can be named")));
    }
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    sched_setaffinity(None, &set).map_err(Failure::os(format!("cannot run on CPU {cpu}")))
}

pub fn stay_on(cpu: Option<u32>) -> Result<(), Failure> {
    cpu.map_or(Ok(()), pin)
}

/// The first two of the CPUs that share their L2 cache, as sysfs says.
fn sharing_l2(allowed: &[u32]) -> Option<CpuPair> {
    allowed.iter().find_map(|&sender| {
        let sharing = ntcopy_kernel::boot::sharing_l2(sender as usize)?;
        let sharing: CpuList = sharing.parse().ok()?;
        let shares = |cpu: &u32| *cpu != sender && sharing.numbers().contains(cpu);
        let reader = allowed.iter().copied().find(shares)?;
        Some(CpuPair { sender, reader })
    })
}
