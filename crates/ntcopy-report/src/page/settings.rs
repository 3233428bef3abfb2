//! What to set on each machine of a page, by `ntcopy advise`'s own rules.

use maud::{Markup, html};
use ntcopy_record::advice::{self, Advice, Decision, Target};
use ntcopy_record::{Machine, Record};

use super::scroll;
use crate::{advice as show, text};

/// A table a machine of what its records say about its settings; nothing of what they do not.
pub(super) fn section(records: &[Record]) -> Markup {
    let machines = machines(records);
    let advised: Vec<(&Machine, Vec<Advice>)> = machines
        .into_iter()
        .map(|(machine, ours)| (machine, of_machine(machine, &ours)))
        .filter(|(_, advice)| !advice.is_empty())
        .collect();
    html! {
        @if !advised.is_empty() {
            section class="settings" id="settings" aria-labelledby="settings-name" {
                h2 id="settings-name" { "Settings" }
                @for (index, (machine, advice)) in advised.iter().enumerate() {
                    @let id = format!("settings-{index}");
                    @if advised.len() > 1 { h3 id=(id) { (machine.cpu_model) } }
                    @let names = if advised.len() > 1 { id.as_str() } else { "settings-name" };
                    (scroll(names, &table(advice)))
                }
                p class="details" {
                    code { "ntcopy advise" } " says the same of this machine, and why in full."
                }
            }
        }
    }
}

fn machines(records: &[Record]) -> Vec<(&Machine, Vec<&Record>)> {
    let mut machines: Vec<(&Machine, Vec<&Record>)> = Vec::new();
    for record in records {
        let known =
            machines.iter_mut().find(|(machine, _)| advice::counts(record, machine).is_ok());
        match known {
            Some((_, ours)) => ours.push(record),
            None if advice::counts(record, &record.machine).is_ok() => {
                machines.push((&record.machine, vec![record]));
            }
            None => {}
        }
    }
    machines
}

fn of_machine(machine: &Machine, records: &[&Record]) -> Vec<Advice> {
    let mut advice = advice::advise(records, &Target::of(machine.clone()));
    advice.retain(|one| !matches!(one.decision, Decision::NoEvidence | Decision::NotHere));
    advice
}

fn table(all: &[Advice]) -> Markup {
    html! {
        table class="facts" {
            thead {
                tr {
                    th scope="col" { "What" }
                    th scope="col" { "Advice" }
                    th scope="col" { "Gain " small { "95 % interval" } }
                }
            }
            tbody {
                @for one in all {
                    tr {
                        th scope="row" {
                            (one.topic.title())
                            @if let Some(about) = &one.about { ": " (about) }
                        }
                        td {
                            (show::headline(one))
                            details { summary { "Why" } (one.why) }
                        }
                        td class="number" {
                            @if let Some(gain) = &one.gain {
                                (text::ratio(gain.ratio)) " " small { (text::interval(gain.ci)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
