//! Records of formats 1 and 2, read as ones of today: by one table of their names of modes, and
//! with what was a parameter there and is a mode today.

use std::collections::BTreeMap;

use super::{Cell, ExperimentKind, Header, Kernel, Mode, Params, Record, Sends, word};
use crate::lists::unique;

/// Names of these formats, today's, and the kernel that they meant, if they meant one. Those that
/// were kernels and no sends have no name: the cell says what was sent.
const NAMES: [(&str, Option<&str>, Option<Kernel>); 8] = [
    ("copy", Some("plain"), None),
    ("nt", Some("hinted"), None),
    ("unpatched", Some("plain"), Some(Kernel::Stock)),
    ("patched", Some("plain"), Some(Kernel::Patched)),
    ("series", None, Some(Kernel::Patched)),
    ("module", None, Some(Kernel::Module)),
    ("old", None, Some(Kernel::OtherPatches)),
    ("new", None, Some(Kernel::Patched)),
];

/// The parameter that said what was sent where modes were kernels; before there was one, hinted
/// sends were.
const SENDS: &str = "sends";
const SENDS_BEFORE: &str = "nt";
/// The forms, and the parameter of other experiments, that said that kernels were compared.
const BOOTS: &str = "boots";

/// Whether modes are ways to send; others have kept their names.
fn is_of_sends(experiment: &ExperimentKind) -> bool {
    use ExperimentKind::{Footprint, Memcpy, Memset, Order, Pages};
    !matches!(experiment, Footprint | Memcpy | Memset | Order | Pages)
}

/// Makes a record of format 1 or 2 one of today.
pub(super) fn translate(record: &mut Record) {
    let kernel_kind = record.machine.kernel_kind.clone();
    let is_of_sends = is_of_sends(&record.header.experiment);
    let cells = if is_of_sends { joined(&mut record.cells) } else { BTreeMap::new() };
    let first = record.cells.first().map_or(0, |cell| cell.cell);
    let mut modes = Vec::new();
    let mut rename = |name: &mut String, cell: &mut u32| {
        let there = cells.get(cell);
        let sends = there.map_or(SENDS_BEFORE, |(_, sends)| sends);
        let mode = if is_of_sends { today(name, sends) } else { Mode::named(name.as_str()) };
        *cell = there.map_or(*cell, |(cell, _)| *cell);
        name.clone_from(&mode.mode);
        modes.push(mode.measured_in(&kernel_kind));
    };
    rename(&mut record.header.baseline, &mut first.clone());
    for sample in &mut record.samples {
        rename(&mut sample.mode, &mut sample.cell);
    }
    for line in &mut record.unavailable {
        let mut cell = line.cell.unwrap_or(first);
        rename(&mut line.mode, &mut cell);
        line.cell = line.cell.map(|_| cell);
    }
    for error in &mut record.errors {
        rename(&mut error.mode, &mut error.cell);
    }
    record.header.modes = unique(modes);
}

impl Header {
    /// The command that measures the like today: its words of now, without the place that the record
    /// went to, and without a rule that the kernel has no more.
    #[must_use]
    pub fn again(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut command = self.command.iter().map(String::as_str);
        while let Some(word) = command.next() {
            match word {
                "--out" => drop(command.next()),
                // What records of 0.1 called it.
                "--peers" => words.push("--modes".to_owned()),
                "--against" => {
                    let kernel =
                        command.next().map(|of| if of == "unpatched" { "stock" } else { of });
                    words.extend(["--against"].into_iter().chain(kernel).map(str::to_owned));
                }
                "--modes" => {
                    words.push(word.to_owned());
                    words.extend(command.next().map(|modes| self.modes_again(modes)));
                }
                word => words.push(word.to_owned()),
            }
        }
        words
    }

    /// A list of modes in the words of today.
    fn modes_again(&self, modes: &str) -> String {
        if !is_of_sends(&self.experiment) {
            // It is a mode of memset, and one of pages no more.
            let went = |mode: &&str| self.experiment == ExperimentKind::Pages && *mode == "clzero";
            return modes.split(',').filter(|mode| !went(mode)).collect::<Vec<&str>>().join(",");
        }
        let today = modes.split(',').map(|mode| today(mode, mode));
        let left: Vec<String> =
            today.filter(|mode| mode.sends != Sends::ByRule).map(|mode| mode.mode).collect();
        if left.is_empty() { "hinted".to_owned() } else { left.join(",") }
    }
}

/// A mode of today for a name of then, in a cell where this was sent.
fn today(name: &str, sends: &str) -> Mode {
    let (stack, name) = name.split_once(':').map_or((None, name), |(at, name)| (Some(at), name));
    let row = |name: &str| NAMES.into_iter().find(|(then, ..)| *then == name);
    let now =
        |name: &str| row(name).map_or(Some(name.to_owned()), |(_, now, _)| now.map(str::to_owned));
    let mut mode = Mode::named(now(name).or(now(sends)).unwrap_or_else(|| name.to_owned()));
    if let Some(stack) = stack {
        mode = mode.of_stack(stack);
    }
    match row(name).and_then(|(.., kernel)| kernel) {
        Some(kernel) => mode.on(kernel),
        None => mode,
    }
}

/// Takes what is a mode today out of the cells, and joins those that are one then; of each cell of
/// before, its number now, and what was sent in it.
fn joined(cells: &mut Vec<Cell>) -> BTreeMap<u32, (u32, String)> {
    let mut known: Vec<Cell> = Vec::new();
    let mut numbers = BTreeMap::new();
    for mut cell in std::mem::take(cells) {
        let sends = cell.params.remove(SENDS);
        let sends_word = sends.as_ref().and_then(|sends| sends.as_str()).unwrap_or(SENDS_BEFORE);
        restore_form(&mut cell.params);
        let same = known.iter().find(|one| sends.is_some() && one.params == cell.params);
        let number = same.map_or(cell.cell, |same| same.cell);
        numbers.insert(cell.cell, (number, sends_word.to_owned()));
        if number == cell.cell {
            known.push(cell);
        }
    }
    *cells = known;
    numbers
}

/// The form that cells would have had if no kernels had been compared.
fn restore_form(params: &mut Params) {
    params.remove(BOOTS);
    if word(params, "form").is_some_and(|form| form.contains(BOOTS)) {
        let form = if params.contains_key("in_flight_bytes") { "rounds" } else { "free-running" };
        params.insert("form".to_owned(), form.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{params, record, sample};
    use super::*;

    fn read(modes: &[&str], experiment: &str) -> Record {
        let mut old = record(&modes[..1], &[&[]]);
        old.header.experiment = experiment.into();
        for mode in modes {
            old.samples.push(sample((0, 0, 0), mode, 1, 1));
        }
        translate(&mut old);
        old
    }

    fn names(record: &Record) -> Vec<&str> {
        record.samples.iter().map(|sample| sample.mode.as_str()).collect()
    }

    #[test]
    fn names_of_then_are_those_of_today_and_say_what_they_are() {
        let old = read(&["unpatched", "patched", "nt", "adaptive", "sendfile", "idle"], "http");
        let now = ["plain-stock", "plain", "hinted", "adaptive", "sendfile", "idle"];
        assert_eq!((names(&old), old.header.baseline.as_str()), (now.to_vec(), "plain-stock"));
        let is = |name: &str| old.header.mode(name).map(|mode| (mode.sends, mode.kernel));
        assert_eq!(is("plain-stock"), Some((Sends::Plain, Some(Kernel::Stock))));
        assert_eq!(is("plain"), Some((Sends::Plain, Some(Kernel::Patched))));
        assert_eq!(is("adaptive"), Some((Sends::ByRule, Some(Kernel::Host))));
        let of_stacks = read(&["a+b:copy", "a+b:sendfile"], "http");
        assert_eq!(names(&of_stacks), ["a+b:plain", "a+b:sendfile"]);
        assert_eq!(of_stacks.header.modes[1].stack.as_deref(), Some("a+b"));
        assert_eq!(names(&read(&["temporal", "nt"], "pages")), ["temporal", "nt"], "no sends");
    }

    #[test]
    fn a_command_of_then_is_said_as_it_is_typed_today() {
        let again = |line: &str| {
            let mut old = read(&["copy"], "http");
            old.header.command = line.split(' ').map(str::to_owned).collect();
            old.header.again().join(" ")
        };
        let then =
            "ntcopy bench http --against unpatched --modes nt,adaptive,sendfile --out x --pairs 7";
        let now = "ntcopy bench http --against stock --modes hinted,sendfile --pairs 7";
        assert_eq!(again(then), now);
        assert_eq!(again("bench --modes adaptive"), "bench --modes hinted");
    }

    #[test]
    fn cells_that_differed_in_what_was_sent_are_one_of_several_modes() {
        let mut old = record(&["series"], &[]);
        for (cell, sends) in (0..).zip(["nt", "adaptive"]) {
            let form = json!({"form": "boots-by-mode", "in_flight_bytes": 1, "sends": sends});
            old.cells.push(Cell { cell, params: params(form) });
            for mode in ["series", "module"] {
                old.samples.push(sample((cell, 0, 0), mode, 1, 1));
            }
        }
        translate(&mut old);
        assert_eq!(names(&old), ["hinted", "hinted-module", "adaptive", "adaptive-module"]);
        assert_eq!(old.header.baseline, "hinted");
        let [cell] = &old.cells[..] else { panic!("one cell: {:?}", old.cells) };
        assert_eq!(cell.params, params(json!({"form": "rounds", "in_flight_bytes": 1})));
        assert!(old.samples.iter().all(|sample| sample.cell == 0));
    }
}
