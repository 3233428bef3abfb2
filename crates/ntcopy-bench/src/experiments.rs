//! The experiments, each whole in one place: what can be asked, the plan that is made of it, what
//! it runs, and what a sample is.
//!
//! What several of them share is beside them, in the stages: the sends of `unix` and `retention`,
//! the copies and fills of `memcpy`, `memset`, `order` and `pages`, the servers of `net` and
//! `pingpong`.

pub mod app;
pub mod footprint;
pub mod http;
pub mod memcpy;
pub mod memset;
pub mod net;
pub mod order;
pub mod pages;
pub mod pingpong;
pub mod retention;
pub mod turns;
pub mod unix;

use ntcopy_record::ExperimentKind;

/// An experiment's definition as it ships, for `--list`.
#[derive(Debug, Clone)]
pub struct Listed {
    pub experiment: ExperimentKind,
    /// The file with its defaults, comments included.
    pub defaults: &'static str,
}

pub const EXPERIMENTS: &[Listed] = &[
    Listed { experiment: ExperimentKind::Unix, defaults: unix::DEFAULTS_TOML },
    Listed { experiment: ExperimentKind::Retention, defaults: retention::DEFAULTS_TOML },
    Listed { experiment: ExperimentKind::Memcpy, defaults: memcpy::DEFAULTS_TOML },
    Listed { experiment: ExperimentKind::Memset, defaults: memset::DEFAULTS_TOML },
    Listed { experiment: ExperimentKind::Order, defaults: order::DEFAULTS_TOML },
    Listed { experiment: ExperimentKind::Pages, defaults: pages::DEFAULTS_TOML },
    Listed { experiment: ExperimentKind::Http, defaults: http::DEFAULTS_TOML },
    Listed { experiment: ExperimentKind::Net, defaults: net::DEFAULTS_TOML },
    Listed { experiment: ExperimentKind::Pingpong, defaults: pingpong::DEFAULTS_TOML },
    Listed {
        experiment: ExperimentKind::App,
        defaults: include_str!("../../../bench/experiments/app.toml"),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::bulk::{Action, Heat, MatrixTask, ReadBack, Task};

    #[test]
    fn defaults_are_of_their_experiments_and_name_what_there_is() {
        for listed in EXPERIMENTS {
            let table: toml::Table = toml::from_str(listed.defaults).unwrap();
            assert_eq!(table["name"].as_str(), Some(listed.experiment.as_str()));
        }
        for is_quick in [false, true] {
            let families = &net::defaults(is_quick).families;
            assert!(families.iter().all(|family| net::FAMILIES.contains(family)));
            let families = &pingpong::defaults(is_quick).families;
            assert!(families.iter().all(|family| pingpong::FAMILIES.contains(family)));
            let (unix, http) = (unix::defaults(is_quick).pairs, http::defaults(is_quick).pairs);
            let (app, sends) = (app::defaults(is_quick).pairs, retention::defaults(is_quick));
            let all = [unix, http, app, sends.sends.pairs, sends.copies.pairs];
            let least = if is_quick { 5 } else { 9 };
            assert!(all.iter().all(|pairs| (*pairs == 5) == is_quick && *pairs >= least));
        }
        let (copies, fills) = (memcpy::defaults(true), memset::defaults(true));
        let (walks, pages) = (order::defaults(true), &pages::defaults(true).pages);
        let cold = Heat::Cold;
        for (task, baseline, peers) in [
            (Task::Copy { source: cold, destination: cold }, &copies.baseline, &copies.peers),
            (Task::Fill { value: 0, destination: cold }, &fills.baseline, &fills.peers),
            (Task::Matrix(MatrixTask::Sum), &walks.baseline, &walks.peers),
            (
                Task::Pages { action: Action::Copy, read_back: ReadBack::None },
                &pages.baseline,
                &pages.peers,
            ),
        ] {
            for way in peers.iter().chain([baseline]) {
                assert!(task.way(way).is_ok(), "{way}");
            }
        }
    }
}
