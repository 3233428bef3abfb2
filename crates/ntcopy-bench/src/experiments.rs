//! The experiments. What one needs, or a family of them, is in one folder: what can be asked, the
//! plan that is made of it, what it runs, and what a sample is.

pub mod app;
pub mod bulk;
pub mod footprint;
pub mod http;
pub mod messages;
pub mod sends;
pub mod turns;

#[cfg(test)]
mod tests {
    use super::bulk::task::{Action, Heat, MatrixTask, ReadBack, Task};
    use super::bulk::{memcpy, memset, order, pages};
    use super::messages::{net, pingpong};
    use super::sends::{retention, unix};
    use super::{app, http};

    #[test]
    fn defaults_name_what_there_is() {
        for is_quick in [false, true] {
            let families = &net::defaults(is_quick).families;
            assert!(families.iter().all(|family| net::FAMILIES.contains(family)));
            let families = &pingpong::defaults(is_quick).families;
            assert!(families.iter().all(|family| pingpong::FAMILIES.contains(family)));
            let (unix, http) = (unix::defaults(is_quick).pairs, http::defaults(is_quick).pairs);
            let (app, sends) = (app::defaults(is_quick).pairs, retention::defaults(is_quick));
            let all = [unix, http, app, sends.pairs];
            let least = if is_quick { 5 } else { 9 };
            assert!(all.iter().all(|pairs| (*pairs == 5) == is_quick && *pairs >= least));
        }
        let (copies, fills) = (memcpy::defaults(true), memset::defaults(true));
        let (walks, pages) = (order::defaults(true), &pages::defaults(true).pages);
        let cold = Heat::Cold;
        for (task, baseline, peers) in [
            (Task::copy(cold, cold), &copies.baseline, &copies.peers),
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
