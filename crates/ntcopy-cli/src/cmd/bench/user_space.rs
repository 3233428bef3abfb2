//! `ntcopy bench memcpy`, `memset`, `order` and `pages`: copies and fills in user space, on this kernel.

use std::process::ExitCode;

use ntcopy_bench::experiments::bulk::Asked;
use ntcopy_bench::experiments::bulk::run::resources;

use super::args::Common;
use super::launch::Runner;
use crate::cmd::{not_available, usage};

/// Runs what is measured by a worker: plan, measure, say.
pub fn run<A: Asked>(common: &Common, asked: &A) -> anyhow::Result<ExitCode> {
    if common.list {
        super::list(&A::EXPERIMENT);
        return Ok(ExitCode::SUCCESS);
    }
    if common.place.kernel != "host" {
        return Err(usage(format!(
            "--kernel {}: copies and fills are made in user space, where no other kernel changes \
             anything; leave it out",
            common.place.kernel
        )));
    }
    ntcopy::init().map_err(usage)?;
    let plan = asked.plan(&resources()?).map_err(usage)?;
    if plan.cells.iter().all(|cell| cell.left_out.is_some()) {
        let why = plan.cells.first().and_then(|cell| cell.left_out.clone());
        return Err(not_available(why.unwrap_or_else(|| "there is nothing to measure".to_owned())));
    }
    let mut here = Runner::from(common);
    here.options.worker_args = super::process_args("worker");
    here.measure(&plan, &super::names(asked.named()))
}
