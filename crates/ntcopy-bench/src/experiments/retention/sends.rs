//! The plan of experiment `retention` with sends; with copies it is in [`copies`].

use ntcopy_record::ExperimentKind;
use std::time::Duration;

use super::{Settings, defaults};
use crate::experiment::{Family, LINE_BYTES, Mode};
use crate::plan::error::{check_pairs, check_sizes, pin};
use crate::plan::{CellPlan, Cpus, Form, Plan, PlanError, or};

/// Makes the plan: victim, sender and reader all on one CPU.
pub fn plan(settings: &Settings, cpus: &Cpus) -> Result<Plan, PlanError> {
    let defaults = &defaults(settings.quick).sends;
    let pairs = check_pairs(settings.pairs.unwrap_or(defaults.pairs))?;
    let modes = settings.modes_of_sends()?;
    if modes.contains(&Mode::Vmsplice) {
        let what = "vmsplice copies nothing that could push a hot set out: leave it out of --modes";
        return Err(PlanError::family(settings.family.unwrap_or(Family::Unix), what));
    }
    let cpu = cpus.allowed.first().copied().unwrap_or(0);
    let pair = pin(&[cpu], cpus)?;
    let mut cells = Vec::new();
    for hot_set_bytes in hot_sets(settings)? {
        for (sockets, object) in settings.cells() {
            if sockets == 0 || object == 0 {
                return Err(PlanError::zero(if sockets == 0 { "sockets" } else { "object" }));
            }
            check_sizes(&[sockets], &[object])?;
            let dataset = settings.dataset_bytes.unwrap_or(defaults.dataset_bytes).max(object);
            cells.push(CellPlan {
                family: settings.family.unwrap_or(Family::Unix),
                form: Form::Victim { sockets, hot_set_bytes },
                object_bytes: object,
                pieces: 1,
                dataset_bytes: dataset / object * object,
                pipe_bytes: None,
                sndbuf_bytes: None,
                cpus: pair,
                others: vec![],
                published: None,
                note: None,
            });
        }
    }
    Ok(Plan {
        experiment: ExperimentKind::Retention,
        cells,
        modes,
        pairs,
        round_sample: Duration::from_millis(defaults.sample_ms),
        warm_up: Duration::ZERO,
        free_sample: Duration::ZERO,
        verified_sockets: u32::MAX,
    })
}

/// The hot sets, in whole lines.
fn hot_sets(settings: &Settings) -> Result<Vec<u64>, PlanError> {
    let asked = or(&settings.hot_set_bytes, &[defaults(settings.quick).sends.hot_set_bytes]);
    if asked.iter().any(|bytes| *bytes < 2 * LINE_BYTES) {
        return Err(PlanError::small_hot_set());
    }
    Ok(asked.into_iter().map(|bytes| bytes / LINE_BYTES * LINE_BYTES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::CpuPair;

    #[test]
    fn victims_are_rounds_with_their_own_parameters() {
        let two = Cpus { allowed: vec![0, 1], sharing_l2: None };
        let planned = plan(&Settings::default(), &two).unwrap();
        assert_eq!(planned.cells.len(), 2);
        let cell = &planned.cells[1];
        assert_eq!(cell.cpus, CpuPair { sender: 0, reader: 0 });
        assert_eq!(cell.params(None)["hot_set_bytes"], 512 << 10);
        let tiny = Settings { hot_set_bytes: vec![64], ..Settings::default() };
        assert!(plan(&tiny, &two).unwrap_err().to_string().contains("two cache"));
    }
}
