//! What is read where a run's clock starts, and again where it stops.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Failure;
use crate::hardware::Hardware;

/// Hardware counters of this thread and of all that it starts from then on, and the machine's.
///
/// Opened once, before the first server or daemon: a counter is handed on to whatever threads and
/// processes they start later, and across exec. Those of other modes wait while a sample is taken,
/// and whoever waits counts nothing.
pub type Events = RefCell<Hardware>;

/// Opens them. What is missing is left out.
pub fn open_events() -> Events {
    Events::new(Hardware::open())
}

/// CPU time of the processes that take part so far, nanoseconds, in the experiment's own order.
pub type CpuNs<const N: usize> = [u64; N];

pub fn cpu_since<const N: usize>(to: CpuNs<N>, from: CpuNs<N>) -> CpuNs<N> {
    std::array::from_fn(|at| to[at].saturating_sub(from[at]))
}

/// Reads the CPU time of so many processes, and has the hardware count in between.
#[derive(Clone, Copy)]
pub struct Meter<'a, const N: usize> {
    cpu: &'a dyn Fn() -> Result<CpuNs<N>, Failure>,
    events: Option<&'a Events>,
}

impl<'a, const N: usize> Meter<'a, N> {
    /// Reads these clocks, and no counter: for what is not recorded.
    pub fn new(cpu: &'a dyn Fn() -> Result<CpuNs<N>, Failure>) -> Meter<'a, N> {
        Meter { cpu, events: None }
    }

    pub fn counting(self, events: &'a Events) -> Meter<'a, N> {
        Meter { events: Some(events), ..self }
    }

    /// Right before the clock starts: switching counters on takes a while.
    pub fn start(&self) -> Result<CpuNs<N>, Failure> {
        if let Some(events) = self.events {
            events.borrow_mut().start();
        }
        (self.cpu)()
    }

    /// Right after it has stopped; gives what was counted as well.
    pub fn stop(&self) -> Result<(CpuNs<N>, BTreeMap<String, u64>), Failure> {
        let cpu = (self.cpu)()?;
        Ok((cpu, self.events.map_or_else(BTreeMap::new, |events| events.borrow_mut().stop())))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// More programs than this process has page faults while it waits for a line.
    const PROGRAMS: u64 = 40;

    /// Waits for a line, runs programs, says so.
    fn shell() -> Child {
        let script = format!("read go; for i in $(seq {PROGRAMS}); do /bin/true; done; echo done");
        Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    #[test]
    fn what_another_process_and_its_children_do_is_in_the_sum() {
        let Some(events) = Hardware::of_kernel().map(Events::new) else {
            println!("not run: perf_event_open is refused, even for the kernel's own events");
            return;
        };
        let clock = || Ok([7]);
        let meter = Meter::new(&clock).counting(&events);
        assert_eq!(meter.start(), Ok([7]));
        let (_, alone) = meter.stop().unwrap();
        let mut child = shell();
        assert_eq!(meter.start(), Ok([7]));
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let (cpu, counted) = meter.stop().unwrap();
        child.wait().unwrap();
        assert_eq!((cpu, said.as_str()), ([7], "done\n"));
        assert_eq!(
            counted.keys().collect::<Vec<_>>(),
            ["page-faults", "task-clock"],
            "as they were named, and without a mark: these take no turns"
        );
        // A program that is started has a page fault for its text, its data and its stack.
        let least = alone["page-faults"] + 3 * PROGRAMS;
        assert!(counted["page-faults"] > least, "{alone:?} {counted:?}");
    }

    #[test]
    fn without_counters_only_the_clocks_are_read() {
        let clock = || Ok([7]);
        assert_eq!(Meter::new(&clock).start(), Ok([7]));
        assert_eq!(Meter::new(&clock).stop(), Ok(([7], BTreeMap::new())));
    }
}
