//! What is said of a program's turns.

use ntcopy_judge::stats::Verdict;
use ntcopy_judge::stats::turns::{FigureOf, Outcome};

/// A part of the hinted bytes that counts as most of them.
const MOST: f64 = 0.5;

/// The verdict, what the machine makes of turns that are alike, what was counted, what to do.
pub(super) fn sentences(outcome: &Outcome) -> Vec<String> {
    let mut said = vec![verdict(outcome)];
    said.extend(cpu(outcome));
    said.extend(alike(outcome));
    said.extend([counted(outcome), advice(outcome).to_owned()]);
    said
}

/// The verdict and what to do.
pub(crate) fn said_of(outcome: &Outcome) -> String {
    format!("{} {}", verdict(outcome), advice(outcome))
}

fn verdict(outcome: &Outcome) -> String {
    let figures = format!("{}, {} pairs", outcome.versus.result(), outcome.versus.ratios.len());
    let (better, worse) = match outcome.metric {
        FigureOf::Time => ("faster", "slower"),
        FigureOf::Latency | FigureOf::Printed(_) => ("better", "worse"),
    };
    match outcome.verdict() {
        Verdict::Win => format!("Win: hinted, the program is {better}: {figures}."),
        Verdict::Loss => format!("Loss: hinted, the program is {worse}: {figures}."),
        Verdict::Equal => format!("Equal: hinted, the program is as good as plain: {figures}."),
        Verdict::Unresolved => format!("Unresolved, by a bar of 3 %: {figures}."),
    }
}

fn alike(outcome: &Outcome) -> Option<String> {
    let alike = outcome.alike?;
    Some(match outcome.is_unfit() {
        false => format!("Plain turns relative to plain ones, odd against even: {alike}."),
        true => format!(
            "Not fit: plain turns relative to plain ones, odd against even, are at {alike}, so \
             the machine makes differences of its own."
        ),
    })
}

/// Where the load had a rate, CPU time is the other half of the answer.
fn cpu(outcome: &Outcome) -> Option<String> {
    let cpu = outcome.beside.iter().rfind(|beside| beside.is_cpu)?;
    (outcome.metric == FigureOf::Latency).then(|| {
        let verdict = outcome.verdict_of(&cpu.versus).as_str();
        format!("{}: {verdict}, {}.", cpu.metric, cpu.versus.result())
    })
}

fn counted(outcome: &Outcome) -> String {
    let counted = &outcome.counted;
    let Some(part) = counted.bypassed_part() else {
        return "No hinted byte was counted.".to_owned();
    };
    let each = counted.hinted_bytes / outcome.versus.ratios.len().max(1) as u64;
    let of_opted_in = counted.hinted_part().map_or_else(String::new, |part| {
        format!(", {:.1} % of those on sockets that opted in", part * 100.0)
    });
    let past = part * 100.0;
    format!(
        "{each} hinted bytes were counted per turn{of_opted_in}; {past:.1} % of them went past the \
         caches."
    )
}

pub(crate) fn advice(outcome: &Outcome) -> &'static str {
    let counted = &outcome.counted;
    match outcome.verdict() {
        _ if outcome.hinted_plain_bytes > 0 => {
            "The program hints by itself: hinted bytes were counted in its plain turns, so these \
             figures compare little."
        }
        _ if counted.hinted_bytes == 0 => {
            "Leave it as it is: no send of it was large enough, or none goes through the C library's \
             calls to a socket of the kinds that were named. What difference there is comes of \
             loading the library."
        }
        Verdict::Win => "Start it by `ntcopy run` with the same options.",
        Verdict::Loss => "Leave it as it is.",
        Verdict::Unresolved => {
            "Leave it as it is for now, and take more turns (--budget) on a quieter machine."
        }
        Verdict::Equal if counted.bypassed_part().unwrap_or(0.0) < MOST => {
            "Leave it as it is: most of its hinted bytes did not go past the caches, since the kernel \
             reads them itself or the socket cannot."
        }
        Verdict::Equal => {
            "Leave it as it is; `ntcopy bench retention` shows what its sends leave of the cache for \
             others on its CPU."
        }
    }
}

#[cfg(test)]
mod tests;
