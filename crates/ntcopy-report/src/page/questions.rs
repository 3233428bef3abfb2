//! The records of a page by the question that each of them answers.

use maud::{Markup, html};
use ntcopy_judge::Judged;
use ntcopy_judge::experiments::experiment;
use ntcopy_record::ExperimentKind;
use ntcopy_record::lists::grouped;

/// A question, and the numbers of the records that answer it.
pub(super) struct Question<'a> {
    /// The experiment that asks it.
    experiment: &'a ExperimentKind,
    /// In words.
    pub words: String,
    /// In the order in which they were given.
    pub records: Vec<usize>,
}

/// The questions that the records answer.
pub(super) fn asked<'r>(records: &'r [Judged]) -> Vec<Question<'r>> {
    let numbers = records.iter().map(|record| &record.header.experiment).zip(0..);
    let question = |(experiment, numbers): (&'r ExperimentKind, Vec<usize>)| {
        let words = words(&records[numbers[0]]);
        Question { experiment, words, records: numbers }
    };
    let mut questions: Vec<Question<'r>> = grouped(numbers).into_iter().map(question).collect();
    questions.sort_by_key(|question| place(question.experiment));
    questions
}

fn place(experiment: &ExperimentKind) -> usize {
    let known = ExperimentKind::KNOWN;
    known.iter().position(|known| known == experiment).unwrap_or(known.len())
}

fn words(record: &Judged) -> String {
    let unknown = || format!("Experiment {}", record.header.experiment);
    experiment(&record.header.experiment).question.map_or_else(unknown, str::to_owned)
}

/// What is on the page, with links.
pub(super) fn contents(records: &[Judged], questions: &[Question<'_>]) -> Markup {
    html! {
        nav class="contents" aria-labelledby="contents-name" {
            h2 id="contents-name" { "Contents" }
            ul {
                @for (number, question) in questions.iter().enumerate() {
                    li {
                        a href=(format!("#question-{number}")) { (question.words) }
                        ul {
                            @for at in &question.records {
                                li { a href=(format!("#record-{at}")) { (records[*at].header.id) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
