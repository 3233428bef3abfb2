//! A record, judged: what it says itself, what each mode did in each cell, and each comparison with
//! its interval, which is drawn here and nowhere else.

mod measured;

use std::collections::{BTreeMap, BTreeSet};

use ntcopy_record::lists::unique;
use ntcopy_record::{
    Cell, Header, Look, Machine, Record, RunError, Sample, Sends, Unavailable, beside,
    is_counting_mark,
};

use crate::modes::{OURS, is_library};
use crate::stats::footprint::{self, LevelFigures};
use crate::stats::turns::{self, Outcome};
use crate::stats::{
    ByPair, DISPLACED, Figures, METRICS, MIN_PAIRS, THROUGHPUT, TURNS, Use, Versus, WALKS,
    is_short, paired, place,
};

pub use measured::{CEILING, Measured};

/// What a record comes to. Whatever is said of it is said of this: nobody asks its samples again.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub header: Header,
    pub machine: Machine,
    pub cells: Vec<Cell>,
    /// The modes that have samples, in the order in which they first appear.
    pub modes: Vec<String>,
    pub unavailable: Vec<Unavailable>,
    pub errors: Vec<RunError>,
    pub looks: Vec<Look>,
    /// Whether the record has its last line.
    pub complete: bool,
    /// Processes that measured on the machine at the same time.
    pub beside: BTreeSet<u32>,
    /// How many samples there are, and in how many the traffic fell behind what was offered.
    pub samples: usize,
    pub short: usize,
    /// TCP's congestion controls.
    pub congestion: Vec<String>,
    /// The hardware events that were counted, by name.
    pub events: Vec<String>,
    /// What a program's turns came to.
    pub outcome: Option<Outcome>,
    /// What calls displaced of each level of the caches.
    pub levels: Vec<LevelFigures>,
    figures: BTreeMap<(u32, usize), Figures>,
    results: BTreeMap<Key, Versus>,
}

/// A cell's number, the places of a mode and of the other one in [`Judged::modes`], and that of the
/// metric in [`METRICS`].
type Key = (u32, usize, usize, usize);

#[must_use]
pub fn judge(record: &Record) -> Judged {
    let names = unique(record.samples.iter().map(|sample| sample.mode.as_str()));
    let mut samples: BTreeMap<(u32, usize), Vec<&Sample>> = BTreeMap::new();
    for sample in &record.samples {
        let mode = names.iter().position(|name| *name == sample.mode).unwrap_or_default();
        samples.entry((sample.cell, mode)).or_default().push(sample);
    }
    let mut figures = BTreeMap::new();
    let mut by_pair = BTreeMap::new();
    for (key, ours) in samples {
        let Some(cell) = record.cell(key.0) else { continue };
        let (of_mode, pairs) = Figures::of(&record.header.experiment, &cell.params, &ours);
        figures.insert(key, of_mode);
        by_pair.insert(key, pairs);
    }
    let is_event =
        |name: &&String| record.machine.is_hardware_counter(name) && !is_counting_mark(name);
    let counted = record.samples.iter().flat_map(|sample| sample.counters.keys());
    let mut judged = Judged {
        header: record.header.clone(),
        machine: record.machine.clone(),
        cells: record.cells.clone(),
        modes: names.into_iter().map(str::to_owned).collect(),
        unavailable: record.unavailable.clone(),
        errors: record.errors.clone(),
        looks: record.looks.clone(),
        complete: record.complete,
        beside: record.beside.clone(),
        samples: record.samples.len(),
        short: record.samples.iter().filter(|sample| is_short(sample)).count(),
        congestion: record.tcp_congestion_controls().into_iter().map(str::to_owned).collect(),
        events: unique(counted.filter(is_event)).into_iter().cloned().collect(),
        outcome: turns::outcome(record),
        levels: footprint::levels(record),
        figures,
        results: BTreeMap::new(),
    };
    judged.results = drawn(record, &judged, &by_pair);
    judged
}

/// Every comparison that anybody asks for, of each mode's figures in each cell.
fn drawn(
    record: &Record,
    judged: &Judged,
    figures: &BTreeMap<(u32, usize), Vec<ByPair>>,
) -> BTreeMap<Key, Versus> {
    let mut results = BTreeMap::new();
    for (&(cell, mode), ours) in figures {
        for (other, metric) in judged.asked(cell, mode) {
            let Some(theirs) = figures.get(&(cell, other)) else { continue };
            let (ours, theirs) = paired(&ours[metric], &theirs[metric]);
            if ours.len() >= MIN_PAIRS {
                let versus = Versus::of(&ours, &theirs, record.misses_permille(cell));
                results.insert((cell, mode, other, metric), versus);
            }
        }
    }
    results.extend(judged.own());
    results
}

impl Judged {
    /// What a mode is held against in a cell, and by what, each once.
    fn asked(&self, cell: u32, mode: usize) -> BTreeSet<(usize, usize)> {
        let name = self.modes[mode].as_str();
        let header = &self.header;
        let others = self.others(name).into_iter().filter_map(|other| self.mode(other));
        let of_samples =
            (0..METRICS.len()).filter(|at| matches!(METRICS[*at].used, Use::Judged | Use::Part));
        let mut asked: BTreeSet<(usize, usize)> = others
            .flat_map(|other| of_samples.clone().map(move |metric| (other, metric)))
            .collect();
        // A slow-down is relative to a victim that is left alone, a rule to what it chooses from.
        let idle = header.modes.iter().find(|mode| mode.sends == Sends::Idle);
        let by_rule = header.mode(name).filter(|mode| mode.sends == Sends::ByRule);
        let hinted = by_rule.and_then(|mode| header.beside(mode, Sends::Hinted));
        let best = if name == OURS { self.best_peer(cell) } else { None };
        let more = [
            (idle.map(|mode| mode.mode.as_str()), WALKS),
            (hinted.map(|mode| mode.mode.as_str()), THROUGHPUT),
            (best, THROUGHPUT),
        ];
        asked.extend(more.into_iter().filter_map(|(other, metric)| {
            Some((self.mode(other?).filter(|other| *other != mode)?, place(metric)?))
        }));
        asked
    }

    /// What turns and calls came to, which are compared by figures of their own.
    fn own(&self) -> impl Iterator<Item = (Key, Versus)> {
        let turns = self.outcome.as_ref().and_then(|outcome| {
            let key = self.key(self.cells.first()?.cell, turns::HINTED, turns::PLAIN, TURNS)?;
            Some((key, outcome.versus.clone()))
        });
        let calls = self.cells.iter().filter_map(|cell| {
            let (call, versus) = footprint::versus(&self.levels, cell)?;
            Some((self.key(cell.cell, call, footprint::NOTHING, DISPLACED)?, versus))
        });
        turns.into_iter().chain(calls)
    }

    fn mode(&self, name: &str) -> Option<usize> {
        self.modes.iter().position(|mode| mode == name)
    }

    fn key(&self, cell: u32, mode: &str, other: &str, metric: &str) -> Option<Key> {
        Some((cell, self.mode(mode)?, self.mode(other)?, place(metric)?))
    }

    /// One mode relative to another in a cell; none with too few pairs.
    #[must_use]
    pub fn versus(&self, cell: u32, mode: &str, other: &str, metric: &str) -> Option<&Versus> {
        self.results.get(&self.key(cell, mode, other, metric)?)
    }

    /// What each mode did in a cell: the one without traffic first, then the baseline.
    #[must_use]
    pub fn measured<'j>(&'j self, cell: &'j Cell) -> Vec<Measured<'j>> {
        let one = |(mode, name): (usize, &'j String)| {
            let figures = self.figures.get(&(cell.cell, mode))?;
            Some(Measured { judged: self, cell, mode: name, figures })
        };
        let mut all: Vec<Measured<'j>> = self.modes.iter().enumerate().filter_map(one).collect();
        all.sort_by_key(|one| (one.sends() != Sends::Idle, !one.is_baseline()));
        all
    }

    /// Median of a mode by a metric in a cell, whatever the number of samples; none without any.
    #[must_use]
    pub fn median(&self, cell: u32, mode: &str, metric: &str) -> Option<f64> {
        self.figures.get(&(cell, self.mode(mode)?))?.median(metric)
    }

    pub(crate) fn figures(&self, cell: u32, mode: &str) -> Option<&Figures> {
        self.figures.get(&(cell, self.mode(mode)?))
    }

    /// The modes that the record mentions, samples or not: those that have some first.
    #[must_use]
    pub fn mentioned(&self) -> Vec<&str> {
        let unavailable = self.unavailable.iter().map(|line| line.mode.as_str());
        let failed = self.errors.iter().map(|line| line.mode.as_str());
        unique(self.modes.iter().map(String::as_str).chain(unavailable).chain(failed))
    }

    /// What a mode is held against: the baseline; plain sends of its own kernel and stack, so that a
    /// hint has no credit for what the patches bring; and the same sends of the baseline's kernel.
    #[must_use]
    pub fn others(&self, name: &str) -> Vec<&str> {
        let header = &self.header;
        let mut others = vec![header.baseline.as_str()];
        if let Some(mode) = header.mode(name) {
            let home = header.mode(&header.baseline).and_then(|baseline| baseline.kernel);
            let elsewhere = home.and_then(|home| header.elsewhere(mode, home));
            let peers = header.beside(mode, Sends::Plain).into_iter().chain(elsewhere);
            others.extend(peers.map(|peer| peer.mode.as_str()));
        }
        others.retain(|other| *other != name);
        unique(others)
    }

    /// Of the ways to copy that are not the library's, the one with the best median in a cell. Where
    /// several are equal but for noise, that median is a little better than the truth; the error
    /// stands against us.
    #[must_use]
    pub fn best_peer(&self, cell: u32) -> Option<&str> {
        let peers = self.modes.iter().map(String::as_str).filter(|mode| !is_library(mode));
        let rated = peers.filter_map(|peer| Some((peer, self.median(cell, peer, THROUGHPUT)?)));
        rated.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(best, _)| best)
    }

    /// Who measured on the machine at the same time, in words, if anybody did.
    #[must_use]
    pub fn disturbed(&self) -> Option<String> {
        beside(&self.beside)
    }

    /// Why its figures count for no machine, if they do not.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        if let Some(why) = &self.header.not_a_timing {
            return Some(format!("it is not a timing ({why})"));
        }
        let wrong = self.errors.iter().any(|error| error.wrong_byte);
        self.disturbed().or(wrong.then(|| "a byte was wrong in it".to_owned()))
    }
}
