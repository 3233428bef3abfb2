//! The report for programs.

use ntcopy_report::advice::json_of;
use serde_json::{Value, json};

use super::Report;
use crate::analysis::advice::{ModelAdvice, Rests};
use crate::analysis::facts::{Differs, Thresholds};
use crate::analysis::order::Over;
use crate::analysis::series::{Point, Series};
use crate::analysis::unlike::{Example, LEAST_OFF, LEVEL, Unlike};
use crate::analysis::{Analysis, ModelView};
use crate::summary::Question;

/// All of it as one object.
///
/// `records`, `machines`, `judged` (machines that were held against their model), `left_out`,
/// `unlike` and `models` are always there. Ratios have `median`, `ci` (the 95 % interval over
/// machines; null with fewer than five) and `span`. A crossover's `bytes` are null where the machine
/// in the middle wins at every size (then `always` counts more than half) or at none (`never`).
/// `advice` is there where it was asked for.
#[must_use]
pub fn object(report: &Report<'_>) -> Value {
    let analysis = report.analysis;
    let left_out = analysis.fleet.left_out.iter();
    json!({
        "records": analysis.fleet.records,
        "machines": analysis.fleet.machines.len(),
        "judged": analysis.judged,
        "level": LEVEL,
        "least_off": LEAST_OFF,
        "left_out": left_out
            .map(|(why, records)| json!({"why": why, "records": records}))
            .collect::<Vec<Value>>(),
        "unlike": analysis.unlike.iter().map(|one| unlike(analysis, one)).collect::<Vec<Value>>(),
        "models": analysis.models.iter().map(|view| model(report, view)).collect::<Vec<Value>>(),
    })
}

fn unlike(analysis: &Analysis, one: &Unlike) -> Value {
    let machine = &analysis.fleet.machines[one.machine];
    let resembles = one.resembles.as_ref();
    json!({
        "machine": machine.facts.id,
        "node": machine.node,
        "signature": one.signature,
        "off": one.off,
        "chance": one.chance,
        "experiments": one.experiments,
        "behaves_like": resembles.map(|like| json!({"signature": like.signature, "off": like.off})),
        "differs": one.differs.iter().map(differs).collect::<Vec<Value>>(),
        "examples": one.examples.iter().map(example).collect::<Vec<Value>>(),
    })
}

fn differs(one: &Differs) -> Value {
    json!({
        "what": one.what,
        "here": one.here,
        "others": one.others,
        "with": one.with,
        "of": one.of,
        "same": one.same,
    })
}

fn example(one: &Example) -> Value {
    let mut object = question(&one.question);
    object["size_bytes"] = one.question.size_bytes.into();
    object["ratio"] = one.here.into();
    object["model"] = over(&one.model);
    object
}

fn question(question: &Question) -> Value {
    json!({
        "experiment": question.experiment,
        "mode": question.mode,
        "baseline": question.baseline,
        "metric": question.metric,
        "about": question.about,
    })
}

fn over(over: &Over) -> Value {
    json!({
        "median": over.median,
        "ci": over.ci.map(|(low, high)| [low, high]),
        "span": [over.span.0, over.span.1],
        "machines": over.machines,
    })
}

fn model(report: &Report<'_>, view: &ModelView) -> Value {
    let machines = view.machines.len();
    let mut object = json!({
        "signature": view.signature,
        "names": view.names,
        "machines": machines,
        "unlike": machines - view.like.len(),
        "records": view.records,
        "note": view.note,
        "libc": view.thresholds.iter().map(thresholds).collect::<Vec<Value>>(),
        "series": view.series.iter().map(series).collect::<Vec<Value>>(),
    });
    if let Some(found) = report.advice_of(&view.signature) {
        object["advice"] = advice(found);
    }
    object
}

fn thresholds(one: &Thresholds) -> Value {
    json!({
        "libc": one.libc,
        "memcpy_nt_threshold_bytes": one.memcpy_bytes,
        "memset_nt_threshold_bytes": one.memset_bytes,
        "machines": one.machines,
    })
}

fn series(series: &Series) -> Value {
    let mut object = question(&series.question);
    object["basis"] = series.basis().as_str().into();
    object["wins_from_bytes"] = series.wins_from_bytes.into();
    object["gain"] = over(&series.gain);
    object["gain"]["bracket"] = json!([series.gain_bracket.0, series.gain_bracket.1]);
    object["crossover"] = series.crossover.as_ref().map_or(Value::Null, |crossover| {
        // No number is infinite in JSON; 0 is a size that was not asked about.
        let size = |bytes: f64| (bytes.is_finite() && bytes > 0.0).then(|| bytes.round() as u64);
        let ci = crossover.bytes.ci.map(|(low, high)| [size(low), size(high)]);
        json!({
            "bytes": size(crossover.bytes.median),
            "ci": ci,
            "machines": crossover.bytes.machines,
            "always": crossover.always,
            "never": crossover.never,
        })
    });
    object["points"] = series.points.iter().map(point).collect::<Vec<Value>>().into();
    object
}

fn point(point: &Point) -> Value {
    let mut object = over(&point.ratio);
    object["size_bytes"] = point.size_bytes.into();
    object["bracket"] = json!([point.bracket.0, point.bracket.1]);
    object["verdict"] = point.verdict().as_str().into();
    object
}

fn advice(advice: &ModelAdvice) -> Value {
    let rests = match &advice.rests {
        Rests::Machines(machines) => json!({"machines": machines}),
        Rests::One(machine) => json!({"machines": 1, "machine": machine}),
    };
    json!({
        "rests_on": rests,
        "pieces": advice.advice.iter().map(json_of).collect::<Vec<Value>>(),
    })
}
