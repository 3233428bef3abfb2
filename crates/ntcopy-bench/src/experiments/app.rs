//! Small requests beside large ones, in a program of another project.
//!
//! One client multigets hot keys at random moments, and fetches large values beside that, at an
//! offered rate or without a pause. It is one thread and drops large values unread, in the socket.
//! The program runs as it is, and hinted. Here are its defaults, what a user may set, and the plan of
//! it.

mod client;
mod measure;
mod rates;
mod server;
mod store;
mod traffic;
mod wire;

pub use self::rates::LargeRate;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ntcopy_record::{Params, Record, number};
use serde::Deserialize;

use crate::experiment::{Mode, Rate, reads_defaults, size, with_baseline, words};
use crate::experiments::http::run::KnownProgram;
use crate::plan::error::{TWO_CPUS, check_connections, check_pairs, check_zeros, two_places};
use crate::plan::{Cpus, PlanError, or, params};

/// Connections beyond this are more than memcached takes as it comes.
const MOST_CONNECTIONS: u32 = 900;
/// The number of values that the digits of a key can tell apart.
const MOST_VALUES: u64 = 1_000_000;
/// The memory that a server of large values takes, in percent of the values.
const SERVER_PERCENT: u64 = 130;
/// What it takes beside that; the client takes as much.
const SERVER_BYTES: u64 = 24 << 20;

/// The program.
pub const APP: &str = "memcached";

pub fn find() -> Result<PathBuf, String> {
    KnownProgram::Memcached.find()
}

/// How the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppMode {
    /// The program as it is: the baseline.
    Plain,
    /// The program as it is, with small requests only.
    Idle,
    /// Its large sends hinted by `ntcopy run`.
    Hinted,
}

words!(AppMode, Plain = "plain", Idle = "idle", Hinted = "hinted");

impl AppMode {
    pub fn sends(self) -> Mode {
        match self {
            AppMode::Hinted => Mode::Hinted,
            _ => Mode::Plain,
        }
    }

    /// The mode whose server answers: `idle` has none of its own.
    pub fn server(self) -> AppMode {
        if self == AppMode::Idle { AppMode::Plain } else { self }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: AppMode,
    pub modes: Vec<AppMode>,
    pub large_bytes: u64,
    pub dataset_bytes: u64,
    pub small_bytes: u64,
    pub small_keys: u64,
    pub multiget: u64,
    pub small_connections: u32,
    pub connections: Vec<u32>,
    pub large_rates: Vec<LargeRate>,
    pub small_rate: Rate,
    pub pairs: u32,
    pub sample_ms: u64,
    pub warm_up_ms: u64,
}

reads_defaults!("app.toml");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default)]
pub struct Settings {
    /// Modes to compare with plain and idle
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<AppMode>,
    /// Size of a large value
    #[arg(long = "large", value_name = "SIZE", value_parser = size)]
    pub large_bytes: Option<u64>,
    /// Size of all large values of a server together
    #[arg(long = "dataset", value_name = "SIZE", value_parser = size)]
    pub dataset_bytes: Option<u64>,
    /// Connections that fetch large values
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub connections: Vec<u32>,
    /// What they are offered: a part of what plain does without multigets and without a pause,
    /// bytes per second, or max, without a pause
    #[arg(long = "large-rate", value_name = "FRACTION|RATE|max", value_delimiter = ',')]
    pub large_rates: Vec<LargeRate>,
    /// Multigets that are offered: a part of what plain does without large values and without a
    /// pause, or a number per second
    #[arg(long = "rate", value_name = "FRACTION|REQ/S", value_parser = small_rate)]
    pub small_rate: Option<Rate>,
    /// Whether this is one boot of several: the interval is drawn from boots, not from groups.
    #[arg(skip)]
    pub one_boot: bool,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

impl Settings {
    /// What one boot measures of two that are compared, briefly.
    pub fn of_one_boot(mut self, modes: Vec<AppMode>, _is_module: bool) -> Settings {
        if self.connections.is_empty() {
            self.connections = vec![16, 64];
        }
        if self.large_rates.is_empty() {
            self.large_rates = vec![LargeRate::BytesPerSecond(1_000_000_000)];
        }
        (self.modes, self.quick, self.one_boot) = (modes, true, true);
        self.pairs = Some(defaults(true).pairs);
        self
    }
}

fn small_rate(text: &str) -> Result<Rate, String> {
    match text.parse() {
        Ok(Rate::Off) => Err("without multigets nothing is measured".to_owned()),
        rate => rate,
    }
}

/// What is stored, and what is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    pub large_bytes: u64,
    pub large_values: u64,
    pub small_bytes: u64,
    pub small_keys: u64,
    pub multiget: u64,
}

/// What a program has in its environment when it is hinted, or why the hint would reach no socket.
pub type Hinting = Result<Vec<(OsString, OsString)>, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppCell {
    pub connections: u32,
    pub rate: LargeRate,
}

impl AppCell {
    fn what(&self) -> String {
        format!("{} connections, {} of large values", self.connections, self.rate.asked())
    }
}

/// What a cell offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offered {
    small_per_1000_s: u64,
    /// Large values in 1000 s; none: each connection asks without a pause.
    large_per_1000_s: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct AppPlan {
    pub program: PathBuf,
    pub hinting: BTreeMap<AppMode, Hinting>,
    /// The modes, the baseline first.
    pub modes: Vec<AppMode>,
    pub data: Data,
    pub small_connections: u32,
    pub small_rate: Rate,
    pub cells: Vec<AppCell>,
    pub pairs: u32,
    pub sample: Duration,
    pub warm_up: Duration,
    pub cpus: [u32; 2],
}

impl AppPlan {
    pub fn samples(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.pairs) * self.modes.len() as u64
    }

    fn servers(&self) -> u64 {
        self.modes.iter().filter(|mode| mode.server() == **mode).count() as u64
    }

    pub fn memory_bytes(&self) -> u64 {
        let servers = self.servers();
        let values = self.data.large_values * self.data.large_bytes;
        values * SERVER_PERCENT / 100 * servers + SERVER_BYTES * (servers + 1)
    }

    fn params(&self, cell: &AppCell, offered: &Offered, version: &str) -> Params {
        let data = &self.data;
        let form = if offered.large_per_1000_s.is_some() { "open" } else { "closed" };
        let [server_cpu, client_cpu] = self.cpus;
        let bytes_per_s =
            |rate: u64| (rate as f64 / 1000.0 * data.large_bytes as f64).round() as u64;
        params([
            ("app", APP.into()),
            ("app_version", version.into()),
            ("form", form.into()),
            ("connections", cell.connections.into()),
            ("large_rate", cell.rate.asked().into()),
            ("large_bytes", data.large_bytes.into()),
            ("dataset_bytes", (data.large_bytes * data.large_values).into()),
            ("small_bytes", data.small_bytes.into()),
            ("small_keys", data.small_keys.into()),
            ("multiget_keys", data.multiget.into()),
            ("small_connections", self.small_connections.into()),
            ("server_cpu", server_cpu.into()),
            ("client_cpu", client_cpu.into()),
            ("offered_requests_per_1000_s", offered.small_per_1000_s.into()),
            ("offered_bytes_per_s", offered.large_per_1000_s.map(bytes_per_s).into()),
        ])
    }
}

pub fn plan(
    settings: &Settings,
    program: PathBuf,
    hinting: BTreeMap<AppMode, Hinting>,
    cpus: &Cpus,
) -> Result<AppPlan, PlanError> {
    let defaults = defaults(settings.quick);
    let pairs = settings.pairs.unwrap_or(defaults.pairs);
    if !settings.one_boot {
        check_pairs(pairs)?;
    }
    let data = data(settings)?;
    let connections = or(&settings.connections, &defaults.connections);
    check_connections(&connections, MOST_CONNECTIONS)?;
    let cell = |rate: LargeRate| {
        connections.iter().map(move |connections| AppCell { connections: *connections, rate })
    };
    let ms = Duration::from_millis;
    Ok(AppPlan {
        program,
        hinting,
        modes: modes(settings),
        data,
        small_connections: defaults.small_connections,
        small_rate: settings.small_rate.unwrap_or(defaults.small_rate),
        cells: or(&settings.large_rates, &defaults.large_rates)
            .into_iter()
            .flat_map(cell)
            .collect(),
        pairs,
        sample: ms(defaults.sample_ms),
        warm_up: ms(defaults.warm_up_ms),
        cpus: two_places(&[], cpus, TWO_CPUS)?,
    })
}

fn modes(settings: &Settings) -> Vec<AppMode> {
    let asked = or(&settings.modes, &defaults(settings.quick).modes);
    let asked: Vec<AppMode> = [AppMode::Idle].into_iter().chain(asked).collect();
    with_baseline(AppMode::Plain, &asked)
}

fn data(settings: &Settings) -> Result<Data, PlanError> {
    let defaults = defaults(settings.quick);
    let large_bytes = settings.large_bytes.unwrap_or(defaults.large_bytes);
    check_zeros(&[("large", large_bytes == 0)])?;
    let dataset = settings.dataset_bytes.unwrap_or(defaults.dataset_bytes.max(large_bytes));
    let large_values = dataset / large_bytes;
    if !(1..=MOST_VALUES).contains(&large_values) {
        return Err(PlanError::small_dataset(dataset, large_bytes));
    }
    Ok(Data {
        large_bytes,
        large_values,
        small_bytes: defaults.small_bytes,
        small_keys: defaults.small_keys,
        multiget: defaults.multiget,
    })
}

/// What multigets the other boots are offered, a second, by the record of the first: the same.
pub fn settled_per_s(first: &Record) -> Option<u64> {
    let params = &first.cells.first()?.params;
    let per_1000_s = number(params, "offered_requests_per_1000_s")?;
    Some((per_1000_s / 1000).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(settings: &Settings, allowed: &[u32]) -> Result<AppPlan, PlanError> {
        let cpus = Cpus { allowed: allowed.to_vec(), sharing_l2: None };
        plan(settings, APP.into(), BTreeMap::new(), &cpus)
    }

    #[test]
    fn the_defaults_make_a_plan_whose_baseline_and_idle_come_first() {
        for quick in [false, true] {
            let plan = planned(&Settings { quick, ..Settings::default() }, &[0, 1]).unwrap();
            assert_eq!(plan.modes[..2], [AppMode::Plain, AppMode::Idle]);
            assert_eq!(plan.cpus, [0, 1]);
            let cells = if quick { 2 } else { 6 };
            assert_eq!(plan.samples(), cells * u64::from(plan.pairs) * plan.modes.len() as u64);
            // A server a mode but idle, each with all large values.
            let servers = plan.modes.len() as u64 - 1;
            assert!(plan.memory_bytes() > servers * (plan.data.large_values << 20));
        }
        assert_eq!(planned(&Settings::default(), &[3]).unwrap().cpus, [3, 3]);
    }

    #[test]
    fn what_cannot_be_is_an_error_that_names_the_option() {
        let default = Settings::default;
        for (settings, words) in [
            (Settings { pairs: Some(4), ..default() }, "--pairs 4"),
            (Settings { connections: vec![1000], ..default() }, "--connections 1000"),
            (Settings { connections: vec![0], ..default() }, "--connections 0"),
            (Settings { large_bytes: Some(0), ..default() }, "--large 0"),
            (Settings { dataset_bytes: Some(100), ..default() }, "--dataset 100"),
        ] {
            let said = planned(&settings, &[0, 1]).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    }
}
