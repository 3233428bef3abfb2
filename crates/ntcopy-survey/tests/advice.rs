//! What a model wants, from the summaries of all of its machines and the records of one.

mod generated;

use std::convert::Infallible;
use std::path::Path;

use generated::{Fleet, Size};
use ntcopy_record::Record;
use ntcopy_record::advice::{Decision, Topic};
use ntcopy_report::advice::dropins;
use ntcopy_survey::analysis::advice::{ModelAdvice, Rests, of_models, representative};
use ntcopy_survey::analysis::{Analysis, ModelView, analyse};
use ntcopy_survey::page::{Report, html, json, text};
use ntcopy_survey::summary::{RecordId, Summary};

/// 240 records of 8 models: of one, two, three and five machines, and of more.
const FEW: Size = Size { models: 8, machines: 60, carriers: 0 };

fn read(fleet: &Fleet, id: &RecordId) -> Option<Record> {
    let number = (0..fleet.records()).find(|number| fleet.id(*number) == id.0)?;
    Some(fleet.record(number))
}

fn asked(fleet: &Fleet, analysis: &Analysis) -> Vec<ModelAdvice> {
    let views: Vec<&ModelView> = analysis.models.iter().collect();
    of_models(analysis, &views, |id| Ok::<_, Infallible>(read(fleet, id))).expect("no errors")
}

#[test]
fn a_generated_summary_is_what_the_statistics_make_of_the_generated_record() {
    let fleet = Fleet::new(FEW, 3);
    for number in [0, 1, 2, 3, 97] {
        let (made, record) = (fleet.summary(number), fleet.record(number));
        let facts = fleet.machine(number);
        let of = Summary::of(&record, facts.id.clone(), made.node.clone(), facts.dimms.clone());
        assert_eq!(of.machine, made.machine);
        assert_eq!(of.findings.len(), made.findings.len());
        for (ours, theirs) in made.findings.iter().zip(&of.findings) {
            assert_eq!(ours.question, theirs.question);
            let pairs =
                [(ours.ratio, theirs.ratio), (ours.low, theirs.low), (ours.high, theirs.high)];
            assert!(pairs.iter().all(|(a, b)| (a / b - 1.0).abs() < 1e-9), "{ours:?} {theirs:?}");
        }
    }
}

#[test]
fn advice_rests_on_all_machines_of_a_model_and_on_one_where_there_are_few() {
    let fleet = Fleet::new(FEW, 3);
    let analysis = analyse(&fleet.summaries());
    let all = asked(&fleet, &analysis);
    assert_eq!(all.len(), analysis.models.len());
    for (view, advice) in analysis.models.iter().zip(&all) {
        assert_eq!(view.signature, advice.signature);
        match &advice.rests {
            Rests::Machines(machines) => {
                assert!(*machines == view.like.len() && *machines >= 5, "{machines}");
            }
            Rests::One(name) => assert!(view.like.len() < 5 && name.starts_with('n'), "{name}"),
        }
        gains_are_those_of_the_series(view, advice);
    }
}

/// The gain of obeyed sends is the geometric mean of the series' points from the same size on.
fn gains_are_those_of_the_series(view: &ModelView, advice: &ModelAdvice) {
    let piece = advice.advice.iter().find(|one| one.topic == Topic::SendsObeyed).expect("sends");
    let (Decision::Set, Some(gain)) = (piece.decision, piece.gain) else { return };
    let is_it = |series: &&ntcopy_survey::analysis::series::Series| {
        series.question.kind() == "booted unix nt/copy"
    };
    let series = view.series.iter().find(is_it).expect("the series");
    let points = &series.points[series.points.len() - gain.cells..];
    let mean = points.iter().map(|p| p.ratio.median.ln()).sum::<f64>() / points.len() as f64;
    let off = (gain.ratio / mean.exp() - 1.0).abs();
    assert!(off < 0.05, "{}: {} beside {}", view.signature, gain.ratio, mean.exp());
    assert!(gain.ci.0 <= gain.ratio && gain.ratio <= gain.ci.1);
}

#[test]
fn the_representative_has_the_most_common_library_and_its_own_records() {
    let fleet = Fleet::new(FEW, 3);
    let analysis = analyse(&fleet.summaries());
    for view in &analysis.models {
        let one = representative(&analysis, view).expect("a machine");
        let machine = &analysis.fleet.machines[one.machine];
        assert_eq!(machine.facts.machine.libc, view.thresholds[0].libc);
        assert_eq!(one.records.len(), 4);
        assert!(view.like.contains(&one.machine));
    }
}

#[test]
fn advice_becomes_drop_ins_and_is_on_every_form_of_the_report() {
    let fleet = Fleet::new(FEW, 3);
    let analysis = analyse(&fleet.summaries());
    let all = asked(&fleet, &analysis);
    let report = Report { analysis: &analysis, advice: &all };
    let set = all.iter().flat_map(|model| &model.advice).filter(|one| one.value.is_some());
    assert!(set.count() > 0, "a fleet that wins somewhere wants something set");
    let program = Path::new("/usr/bin/ntcopy");
    let files = all.iter().map(|model| dropins::files(&model.advice, "", program).len());
    let files: usize = files.sum();
    assert!(files > 0);
    let said = text::terminal(&report);
    assert!(said.contains("Wants, over ") && said.contains("Wants, by the records of one machine"));
    let object = json::object(&report);
    let pieces = object["models"][0]["advice"]["pieces"].as_array().expect("advice");
    assert!(pieces.len() > 8, "{pieces:?}");
    assert!(html::html(&report, &[]).contains("What it wants"));
}
