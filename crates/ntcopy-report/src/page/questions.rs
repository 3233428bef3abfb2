//! The records of a page by the question that each of them answers.

use maud::{Markup, html};
use ntcopy_record::Record;

use super::room::of_record;

/// The question of each experiment, in the order in which a page answers them.
const QUESTIONS: [(&str, &str); 12] = [
    ("unix", "From how much in flight does a hinted send pay?"),
    ("retention", "What is left of a hot set?"),
    ("app", "Does a real program keep its cache?"),
    ("try", "What does the hint do for a program of one's own?"),
    ("footprint", "How much of the cache does a call displace?"),
    ("http", "What does a proxy gain?"),
    ("net", "What do requests and responses over a network gain?"),
    ("pingpong", "What does the hint do to latency?"),
    ("memcpy", "Which copy is the fastest in user space?"),
    ("memset", "Which fill is the fastest?"),
    ("pages", "How should pages be cleared and copied?"),
    ("order", "What does the order of a walk through memory cost?"),
];

/// A question, and the numbers of the records that answer it.
pub(super) struct Question<'a> {
    /// The part of ids that is its own.
    pub experiment: &'a str,
    /// In words.
    pub words: String,
    /// In the order in which they were given.
    pub records: Vec<usize>,
}

/// The questions that the records answer.
pub(super) fn of(records: &[Record]) -> Vec<Question<'_>> {
    let mut questions: Vec<Question<'_>> = Vec::new();
    for (number, record) in records.iter().enumerate() {
        let experiment = record.header.experiment.as_str();
        match questions.iter_mut().find(|question| question.experiment == experiment) {
            Some(question) => question.records.push(number),
            None => questions.push(Question {
                experiment,
                words: words(experiment),
                records: vec![number],
            }),
        }
    }
    questions.sort_by_key(|question| place(question.experiment));
    questions
}

fn place(experiment: &str) -> usize {
    QUESTIONS.iter().position(|(name, _)| *name == experiment).unwrap_or(QUESTIONS.len())
}

fn words(experiment: &str) -> String {
    let known = QUESTIONS.iter().find(|(name, _)| *name == experiment);
    known.map_or_else(|| format!("Experiment {experiment}"), |(_, words)| (*words).to_owned())
}

/// What is on the page, with links.
pub(super) fn contents(
    records: &[Record],
    questions: &[Question<'_>],
    more: &[(&str, &str)],
) -> Markup {
    html! {
        nav class="contents" aria-labelledby="contents-name" {
            h2 id="contents-name" { "Contents" }
            ul {
                @for (number, question) in questions.iter().enumerate() {
                    li {
                        a href=(format!("#question-{number}")) { (question.words) }
                        ul {
                            @for at in &question.records {
                                @let link = html! {
                                    li { a href=(format!("#record-{at}")) { (records[*at].header.id) } }
                                };
                                (of_record(*at, &link))
                            }
                        }
                    }
                }
                @for (id, name) in more { li { a href=(format!("#{id}")) { (name) } } }
            }
        }
    }
}
