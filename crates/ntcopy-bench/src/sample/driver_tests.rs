use std::path::Path;

use ntcopy_record::{FILE_NAME, LookEnd, Record};

use super::*;

/// What a lane does when it is asked for a sample of a pair.
type Act = fn(mode: char, pair: u32) -> Result<u64, Failure>;

/// Lanes that run nothing, and note what they are asked.
struct Mock<'a> {
    act: Act,
    asked: String,
    stop: &'a Stop,
    /// The sample before which a signal comes.
    signal_at: Option<usize>,
}

impl Lanes for Mock<'_> {
    type Mode = char;

    fn begin_group(
        &mut self,
        _at: At,
        order: &mut Vec<char>,
        _recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        self.asked += &format!(" {}:", order.iter().collect::<String>());
        Ok(())
    }

    fn figure(&self, sample: &Sample) -> Option<f64> {
        Some(sample.bytes as f64)
    }

    fn sample(&mut self, mode: char, at: At) -> Result<Sample, Failure> {
        if self.signal_at == Some(self.asked.matches(|c: char| c.is_uppercase()).count()) {
            self.stop.ask(2);
        }
        self.asked.push(mode.to_ascii_uppercase());
        self.stop.check()?;
        let bytes = (self.act)(mode, at.pair)?;
        Ok(at.sample(mode, bytes, 1000))
    }
}

/// Two cells of three modes, with a mock in each.
struct MockPlan {
    act: Act,
    signal_at: Option<usize>,
}

const PAIRS: u32 = 5;

impl MockPlan {
    /// Measures; what the lanes were asked for, and what came of it.
    fn measured(
        &self,
        place: &Path,
        budget: Option<Duration>,
    ) -> (String, Result<Outcome, MeasureError>) {
        let machine = ntcopy_record::testing::record(&["a"], &[]).machine;
        let options = Options { out: Some(place.to_owned()), budget, ..no_options() };
        let (stop, mut progress, mut asked) = (Stop::default(), Progress::none(), String::new());
        let context = Context { machine, options: &options, stop: &stop, progress: &mut progress };
        let measured = Recording::begin(self, context).and_then(|mut recording| {
            recording.cells(0..2, |recording, number| {
                let cell = index(number);
                // A row about a cell waits for the cell's own line.
                recording.unavailable('d', "it is not here", Some(cell))?;
                recording.cell(cell, Params::new())?;
                let (act, signal_at) = (self.act, self.signal_at);
                let mut mock = Mock { act, asked: String::new(), stop: &stop, signal_at };
                let (modes, alive) = (&['a', 'b', 'c'], vec!['a', 'b', 'c']);
                let groups = Groups { modes, alive, cells: &[(cell, "a cell")], pairs: PAIRS };
                let done = recording.groups(&mut mock, groups);
                asked += &mock.asked;
                done
            })?;
            recording.end()
        });
        (asked, measured)
    }
}

fn no_options() -> Options {
    Options {
        out: None,
        command: vec![],
        not_a_timing: None,
        worker_args: vec![],
        patience: Duration::ZERO,
        budget: None,
        spoil: false,
    }
}

impl Experiment for MockPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (ExperimentKind::Unix, ["a", "b", "c"].map(Mode::named).into())
    }

    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        let Options { out, budget, .. } = context.options;
        self.measured(out.as_deref().unwrap_or(Path::new("")), *budget).1
    }
}

fn measured(act: Act, signal_at: Option<usize>) -> (String, Outcome, Record) {
    let place = tempfile::tempdir().unwrap();
    let (asked, outcome) = MockPlan { act, signal_at }.measured(place.path(), None);
    (asked, outcome.unwrap(), Record::read(place.path()).unwrap())
}

/// Every cell's groups as they are when nothing fails.
const GROUPS: &str = " abc:ABC cba:CBA bca:BCA acb:ACB cab:CAB";

#[test]
fn the_groups_of_every_cell_are_interleaved_and_each_sample_is_written() {
    let (asked, outcome, record) = measured(|_, pair| Ok(u64::from(pair) + 1), None);
    assert_eq!((asked, outcome.stopped), (GROUPS.repeat(2), None));
    assert!(record.complete && record.errors.is_empty());
    assert_eq!((record.cells.len(), record.samples.len()), (2, 30));
    let missing = record.unavailable.iter().map(|missing| (&missing.mode[..], missing.cell));
    assert_eq!(missing.collect::<Vec<_>>(), [("d", Some(0)), ("d", Some(1))]);
    let places: Vec<(u32, u32, u32, &str)> = record.samples[3..6]
        .iter()
        .map(|sample| (sample.cell, sample.pair, sample.position, sample.mode.as_str()))
        .collect();
    assert_eq!(places, [(0, 1, 0, "c"), (0, 1, 1, "b"), (0, 1, 2, "a")]);
}

#[test]
fn a_mode_that_failed_has_an_error_row_and_is_left_out_of_its_cell() {
    let fails = |mode, pair| match (mode, pair) {
        ('b', 1) => Err(Failure::WrongInChild),
        _ => Ok(1),
    };
    let (asked, _, record) = measured(fails, None);
    assert_eq!(asked, " abc:ABC cba:CBA ca:CA ac:AC ca:CA".repeat(2));
    assert!(record.complete);
    let errors = record.errors.iter().map(|error| (error.cell, &error.mode[..], error.wrong_byte));
    assert_eq!(errors.collect::<Vec<_>>(), [(0, "b", true), (1, "b", true)]);
    assert_eq!(record.samples.iter().filter(|sample| sample.mode == "b").count(), 2);
}

#[test]
fn a_signal_ends_the_run_and_leaves_a_record_without_its_last_line() {
    for signal_at in [0, 4] {
        let (_, outcome, record) = measured(|_, _| Ok(1), Some(signal_at));
        assert_eq!(outcome.stopped, Some(2));
        assert!(!record.complete && record.errors.is_empty(), "{signal_at}");
        assert_eq!((record.cells.len(), record.samples.len()), (1, signal_at));
    }
}

#[test]
fn what_all_cells_need_and_is_not_to_be_had_ends_the_measurement() {
    let place = tempfile::tempdir().unwrap();
    let plan = MockPlan { act: |_, _| Ok(1), signal_at: None };
    let machine = ntcopy_record::testing::record(&["a"], &[]).machine;
    let (stop, mut progress) = (Stop::default(), Progress::none());
    let options = Options { out: Some(place.path().to_owned()), ..no_options() };
    let context = Context {
        machine: machine.clone(),
        options: &options,
        stop: &stop,
        progress: &mut progress,
    };
    let mut recording = Recording::begin(&plan, context).unwrap();
    let mut cells = 0;
    let ended = recording.cells(0..3, |_, _| {
        cells += 1;
        Err(Halt::from(Failure::Limit("no room".to_owned())))
    });
    assert!(matches!(ended, Err(MeasureError::Start(Failure::Limit(_)))), "{ended:?}");
    assert_eq!(cells, 1);
    // The record that began is there, and no other one takes its place.
    assert!(place.path().join(FILE_NAME).exists());
    let mut progress = Progress::none();
    let context = Context { machine, options: &options, stop: &stop, progress: &mut progress };
    let again = Recording::begin(&plan, context).err();
    assert!(matches!(again, Some(MeasureError::Write(WriteError::Exists(_)))));
}

#[test]
fn with_a_budget_a_cell_is_sampled_until_it_is_resolved_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    let faster = |mode, _| Ok(if mode == 'a' { 1000 } else { 1500 });
    let plan = MockPlan { act: faster, signal_at: None };
    let (asked, outcome) = plan.measured(place.path(), Some(Duration::from_secs(3600)));
    outcome.unwrap();
    let record = Record::read(place.path()).unwrap();
    let ends: Vec<LookEnd> = record.looks.iter().map(|look| look.end).collect();
    assert_eq!(ends, [LookEnd::Resolved, LookEnd::Resolved]);
    let pairs = record.looks[0].pairs as usize;
    assert!(pairs > PAIRS as usize && asked.matches(':').count() == 2 * pairs, "{asked}");
}
