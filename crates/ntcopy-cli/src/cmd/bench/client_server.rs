//! `ntcopy bench net` and its like: messages between a client and a server, in this kernel or in a
//! booted one.

use std::process::ExitCode;

use ntcopy_bench::experiments::messages::Asked;

use super::args::Common;
use super::launch::{KernelCpus, Launch};

pub fn run<A: Asked>(common: &Common, asked: &A) -> anyhow::Result<ExitCode> {
    let launch = Launch {
        common,
        experiment: A::EXPERIMENT,
        // Its processes take turns, and what one of them costs then shows.
        kernel_cpus: KernelCpus::Free(1),
        worker_args: super::process_args("server"),
        against: None,
        plan: &|cpus| asked.plan(cpus),
        is_asked: &|missing| asked.names(missing),
    };
    launch.run()
}
