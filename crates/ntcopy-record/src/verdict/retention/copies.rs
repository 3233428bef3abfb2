//! What copies cost another program, in words: the two questions first, then what limits the answer.

use crate::record::{Cell, Record};
use crate::stats::MIN_PAIRS;
use crate::stats::retention::copies::{
    COPY, Felt, IDLE, NT_BOTH, Ratio, felt, is_felt, is_short, number, part_of_slow_down,
};
use crate::units::Bytes;

pub fn sentences(record: &Record) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(neighbour(record));
    sentences.extend(same_core(record));
    sentences.extend(rates(record));
    sentences.extend(missing(record));
    sentences.extend(short(record));
    if sentences.is_empty() {
        sentences.push("Nothing was compared: the record holds no passes.".to_owned());
    }
    sentences
}

fn cells<'a>(record: &'a Record, victim: &'a str) -> impl Iterator<Item = &'a Cell> {
    let is_there = move |cell: &&Cell| {
        cell.params.get("victim").and_then(serde_json::Value::as_str) == Some(victim)
    };
    record.cells.iter().filter(is_there)
}

/// How much of the slow-down is left, where normal copies slow the neighbour most; and the range
/// over the other cells.
fn neighbour(record: &Record) -> Vec<String> {
    let mut felt_cells: Vec<(&Cell, f64, Ratio)> = Vec::new();
    let (mut unfelt, mut untold) = (0, 0);
    for cell in cells(record, "neighbour") {
        let felt = felt(record, cell);
        let normal = felt.iter().find(|felt| felt.mode == COPY).and_then(|felt| felt.slow_down[0]);
        match (normal, part_of_slow_down(record, cell, NT_BOTH)) {
            (Some(normal), Some(part)) => felt_cells.push((cell, normal.ratio, part)),
            (Some(normal), None) if !is_felt(&normal) => unfelt += 1,
            _ if felt.is_empty() => {}
            _ => untold += 1,
        }
    }
    let mut sentences = Vec::new();
    let worst = felt_cells.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((cell, normal, part)) = worst {
        sentences.push(format!(
            "A neighbour with a hot set of {} takes {normal:.2}x its time beside normal copies{}; \
             with NT on both sides {:.2} of that slow-down is left (interval {:.2}-{:.2}).",
            hot_set(cell),
            at_rate(cell),
            part.ratio,
            part.ci.0,
            part.ci.1,
        ));
    }
    if felt_cells.len() > 1 {
        let parts = felt_cells.iter().map(|(_, _, part)| part.ratio);
        let least = parts.clone().fold(f64::INFINITY, f64::min);
        let most = parts.fold(f64::NEG_INFINITY, f64::max);
        sentences.push(format!(
            "Over the {} neighbours that normal copies slow down clearly, {least:.2} to {most:.2} \
             of it is left.",
            felt_cells.len()
        ));
    }
    if untold > 0 {
        sentences.push(format!(
            "{untold} {} no result: fewer than {MIN_PAIRS} groups with good samples of {COPY}, \
             {NT_BOTH} and {IDLE}.",
            if untold == 1 { "neighbour has" } else { "neighbours have" }
        ));
    }
    if unfelt > 0 {
        sentences.push(format!(
            "Normal copies do not clearly slow down {unfelt} of the {} neighbours, so there is \
             nothing to spare them.",
            unfelt + untold + felt_cells.len()
        ));
    }
    sentences
}

/// What a victim on the same core keeps of its speed, with the smallest hot set (half of L2
/// unless others were asked for), and what all of it comes to.
fn same_core(record: &Record) -> Vec<String> {
    let smallest =
        cells(record, "same-core").filter_map(|cell| number(cell, "hot_set_bytes")).min();
    let ours = cells(record, "same-core").filter(|cell| number(cell, "hot_set_bytes") == smallest);
    ours.filter_map(|cell| kept(record, cell)).collect()
}

fn kept(record: &Record, cell: &Cell) -> Option<String> {
    let all = felt(record, cell);
    let speed = |mode: &str| {
        let ours = all.iter().find(|felt| felt.mode == mode);
        ours.and_then(|felt| felt.speed.as_ref())
    };
    let (both, normal) = (speed(NT_BOTH)?, speed(COPY)?);
    let object = number(cell, "object_bytes").map_or(String::new(), |n| format!("{} ", Bytes(n)));
    let whole = all.iter().find(|felt| felt.mode == NT_BOTH).and_then(whole);
    Some(format!(
        "Another program on the same core with a hot set of {} keeps {:.2} of its speed between \
         {object}copies with NT on both sides (interval {:.2}-{:.2}), and {:.2} between normal \
         ones{}.",
        hot_set(cell),
        both.ratio,
        both.ci.0,
        both.ci.1,
        normal.ratio,
        whole.unwrap_or_default(),
    ))
}

/// What copies and the other program together come to.
fn whole(felt: &Felt) -> Option<String> {
    let whole = felt.whole_by_copy.as_ref()?;
    let says = super::together(whole.verdict());
    Some(format!(
        "; copies and that program together {says} ({:.2}x, interval {:.2}-{:.2})",
        whole.ratio, whole.ci.0, whole.ci.1
    ))
}

fn hot_set(cell: &Cell) -> Bytes {
    Bytes(number(cell, "hot_set_bytes").unwrap_or(0))
}

fn at_rate(cell: &Cell) -> String {
    number(cell, "rate_bytes_per_s")
        .map_or(String::new(), |rate| format!(" at {:.1} GB/s", rate as f64 / 1e9))
}

/// Whether less was offered than was asked for.
fn rates(record: &Record) -> Option<String> {
    let lowered: Vec<(u64, u64)> = record
        .cells
        .iter()
        .filter_map(|cell| {
            Some((number(cell, "rate_bytes_per_s")?, number(cell, "asked_rate_bytes_per_s")?))
        })
        .collect();
    let least = lowered.iter().map(|(rate, _)| *rate).min()? as f64 / 1e9;
    let most = lowered.iter().map(|(_, asked)| *asked).max()? as f64 / 1e9;
    Some(format!(
        "In {} of {} cells the slowest mode cannot copy the {most:.1} GB/s that were asked for, so \
         every mode was offered less there (down to {least:.1} GB/s).",
        lowered.len(),
        record.cells.len()
    ))
}

fn missing(record: &Record) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in record.unavailable.iter().filter(|line| line.mode != IDLE) {
        let why = line.why.trim_end_matches('.');
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, modes)) if modes.contains(&line.mode.as_str()) => {}
            Some((_, modes)) => modes.push(&line.mode),
            None => reasons.push((why, vec![&line.mode])),
        }
    }
    let say = |(why, modes): (&str, Vec<&str>)| {
        format!("Not available here ({}): {why}.", modes.join(", "))
    };
    reasons.into_iter().map(say).collect()
}

fn short(record: &Record) -> Option<String> {
    let short = record.samples.iter().filter(|sample| is_short(sample)).count();
    (short > 0).then(|| {
        format!(
            "In {short} of {} samples the streamer fell more than 2 % behind what it was offered; \
             they do not count.",
            record.samples.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::retention::copies::tests::sketch;

    #[test]
    fn both_questions_are_answered() {
        let said = sentences(&sketch([100, 150, 120, 110], [100, 200, 125, 112]));
        assert_eq!(
            said,
            [
                "A neighbour with a hot set of 1 MiB takes 1.50x its time beside normal copies at \
                 10.0 GB/s; with NT on both sides 0.20 of that slow-down is left (interval \
                 0.20-0.20).",
                "Another program on the same core with a hot set of 1 MiB keeps 0.89 of its speed \
                 between 256 KiB copies with NT on both sides (interval 0.89-0.89), and 0.50 \
                 between normal ones; copies and that program together are faster (1.25x, \
                 interval 1.25-1.25).",
            ]
        );
    }

    #[test]
    fn what_was_not_felt_is_said() {
        let said = sentences(&sketch([100, 101, 100, 100], [100, 200, 150, 150])).join(" ");
        assert!(said.contains("do not clearly slow down 1 of the 1 neighbours"), "{said}");
    }

    #[test]
    fn lowered_rates_and_short_samples_are_said() {
        let mut record = sketch([100, 150, 120, 110], [100, 200, 125, 112]);
        let params = &mut record.cells[0].params;
        params.insert("asked_rate_bytes_per_s".to_owned(), 20_000_000_000_u64.into());
        record.samples[1].series.insert("offered_bytes".to_owned(), vec![u64::MAX]);
        let said = sentences(&record).join(" ");
        assert!(said.contains("In 1 of 2 cells") && said.contains("20.0 GB/s"), "{said}");
        assert!(said.contains("In 1 of 40 samples the streamer fell"), "{said}");
    }

    #[test]
    fn a_neighbour_whose_samples_do_not_count_has_no_result() {
        let mut record = sketch([100, 150, 120, 110], [100, 200, 125, 112]);
        for sample in record.samples.iter_mut().filter(|s| s.cell == 0 && s.mode == NT_BOTH) {
            sample.bytes /= 2;
        }
        let said = sentences(&record).join(" ");
        assert!(said.contains("1 neighbour has no result"), "{said}");
        assert!(!said.contains("do not clearly slow down"), "{said}");
    }

    #[test]
    fn a_reason_is_said_once_for_all_modes_and_cells() {
        let mut record = sketch([100, 150, 120, 110], [100, 200, 125, 112]);
        for cell in 0..2 {
            for mode in [IDLE, COPY, NT_BOTH] {
                let (mode, why) = (mode.to_owned(), "only one CPU".to_owned());
                record.unavailable.push(crate::record::Unavailable { mode, why, cell: Some(cell) });
            }
        }
        let said = missing(&record);
        assert_eq!(said, ["Not available here (copy, nt-both): only one CPU."]);
    }
}
