//! `ntcopy bench pages`: clearing and copying pages.

use std::process::ExitCode;

use ntcopy_bench::experiments::bulk::pages::fork;
use ntcopy_bench::experiments::bulk::pages::{Form, Settings};
use ntcopy_kernel::Kind;
use ntcopy_record::ExperimentKind;

use super::args::Common;
use super::launch::{KernelCpus, Launch};
use crate::cmd::{not_available, usage};

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench pages --quick                             18 cells, about a minute
  ntcopy bench pages --action copy --read-back all       the question of 2004
  ntcopy bench pages --buffer 32KiB,256KiB --modes movnti,sse-nt-t0
  ntcopy bench pages --form fork --kernel um             the fork() loop, 32 cells, some minutes

Form pages, in user space. A call clears or copies every page of a buffer, each fenced by \
itself, and then reads back nothing, some of it (100 bytes of each page) or all of it.

Ways: rep-b (rep stosb, rep movsb: what the others are compared with), rep-q, sse-t0, sse-nta \
(normal stores; PREFETCHT0 or PREFETCHNTA on the source), sse-nt-t0, sse-nt-nta (non-temporal \
stores), movnti, movdir64b.

Form fork: alloc(buffer); for (;;) { fork(); use(buffer); }. Parent or child writes to the \
buffer while the other waits, one byte a page or every byte, and the kernel copies the pages. \
Modes: temporal (the baseline), nt (the kernel clears and copies non-temporally), nt-copy (it \
only copies so). Only --kernel um can be switched. /proc/vmstat's counters must agree with the mode in every sample.";

/// An option that the form does not have, in words.
fn of_the_other_form(common: &Common, settings: &Settings) -> Option<String> {
    let of_pages =
        [("action", !settings.actions.is_empty()), ("read-back", !settings.read_back.is_empty())];
    let of_fork = [("kernel", common.place.kernel != "host")];
    let (others, form, hint) = match settings.form {
        Form::Pages => (&of_fork[..], "fork", "add --form fork"),
        Form::Fork => (&of_pages[..], "pages", "leave out --form fork"),
    };
    let (option, _) = others.iter().find(|(_, is_given)| *is_given)?;
    Some(format!("--{option} is of --form {form}: {hint}"))
}

pub fn run(common: &Common, settings: &Settings) -> anyhow::Result<ExitCode> {
    if let Some(why) = of_the_other_form(common, settings) {
        return Err(usage(why));
    }
    if settings.form == Form::Pages {
        return super::user_space::run(common, settings);
    }
    // Inside the kernel that was booted it is the host's.
    if !common.place.measure_only && Kind::parse(&common.place.kernel).ok() != Some(Kind::Um) {
        return Err(not_available(format!(
            "{} has no setting to clear and copy pages of 4 KiB non-temporally, so there is nothing \
             to compare: --kernel um",
            common.place.kernel
        )));
    }
    let launch = Launch {
        common,
        experiment: ExperimentKind::Pages,
        kernel_cpus: KernelCpus::OnePinned,
        worker_args: Vec::new(),
        against: None,
        plan: &|_| fork::plan(settings),
        is_asked: &super::names(&settings.modes),
    };
    launch.run()
}
