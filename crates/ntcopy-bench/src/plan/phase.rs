//! The plan of experiment `phase`.

use std::time::Duration;

use super::unix::{check_sizes, pin};
use super::{CellPlan, Cpus, Form, Plan, PlanError};
use crate::experiment::phase::{Settings, defaults};
use crate::experiment::{Family, Mode};
use crate::units::Bytes;

/// Makes the plan.
///
/// # Errors
///
/// When the settings ask for something that cannot be; nothing has been measured then.
pub fn plan(settings: &Settings, cpus: &Cpus) -> Result<Plan, PlanError> {
    let defaults = defaults();
    let object = settings.object_bytes.unwrap_or(defaults.object_bytes);
    let dataset = settings.dataset_bytes.unwrap_or(defaults.dataset_bytes.max(object));
    let sockets = settings.sockets.unwrap_or(defaults.sockets);
    let (phase_ms, pairs) = if settings.quick {
        (defaults.quick_phase_ms, defaults.quick_pairs)
    } else {
        (defaults.phase_ms, defaults.pairs)
    };
    let phase_ms = settings.phase_ms.unwrap_or(phase_ms);
    let pairs = settings.pairs.unwrap_or(pairs);
    if pairs < 5 {
        return Err(PlanError::TooFewPairs(pairs));
    }
    let zero = [("object", object), ("sockets", sockets.into()), ("phase-ms", phase_ms)];
    if let Some((name, _)) = zero.iter().find(|(_, value)| *value == 0) {
        return Err(PlanError::Zero(name));
    }
    check_sizes(&[sockets], &[object])?;
    if dataset < object {
        let (dataset, object) = (Bytes(dataset), Bytes(object));
        return Err(PlanError::DatasetTooSmall { dataset, object });
    }
    let form = Form::Phases {
        sockets,
        phase: Duration::from_millis(phase_ms),
        window: Duration::from_millis(defaults.window_ms),
    };
    let cell = CellPlan {
        family: settings.family.unwrap_or(Family::Unix),
        form,
        object_bytes: object,
        dataset_bytes: dataset / object * object,
        pipe_bytes: None,
        sndbuf_bytes: None,
        cpus: pin(&settings.cpus, cpus)?,
        published: None,
        note: None,
    };
    Ok(Plan {
        experiment: &defaults.name,
        cells: vec![cell],
        modes: vec![Mode::Adaptive],
        pairs,
        round_sample: Duration::ZERO,
        warm_up: Duration::ZERO,
        learning: Duration::ZERO,
        free_sample: Duration::ZERO,
        verified_sockets: u32::MAX,
    })
}
