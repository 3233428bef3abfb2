//! How long compiling is going to take, by what this machine has compiled before.

use serde::Serialize;

use super::workshop::{State, Workshop};
use crate::cache::Built;

/// Objects that have to be compiled before their time is that of others: the first ones are small.
const LEARNT: u64 = 100;
/// Milliseconds that one compiler takes for an object of a small kernel, on the machine on which
/// first builds were measured: 145 s for 1259 objects by two.
const ELSEWHERE_MS: f64 = 230.0;

/// What compiling takes from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Time {
    /// Seconds for all objects that are left; nothing where no source is here to count them in.
    pub seconds: Option<u64>,
    /// Milliseconds for one, with this many compilers at work.
    pub object_ms: u64,
    /// What that rests on, and what it does not know.
    pub basis: String,
}

/// What was compiled here.
pub(super) struct Known<'a> {
    /// The build that is gone on with.
    pub begun: Option<&'a Workshop>,
    /// All packages that were made here, the last first.
    pub earlier: &'a [Workshop],
    /// The kernels of `ntcopy kernel build`.
    pub kernels: &'a [Built],
    /// Whether a cache of the compiler may have shortened that.
    pub has_ccache: bool,
}

/// A pace, and what it rests on.
type Pace = (f64, String);

/// What is to be compiled.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// All objects, if they could be counted.
    pub objects: Option<u64>,
    /// Those that an earlier run has compiled.
    pub compiled: u64,
    /// Whether with debug information.
    pub has_debug_info: bool,
    /// Compilers at a time.
    pub jobs: usize,
}

/// How long the work takes.
pub(super) fn of(work: Work, known: &Known<'_>) -> Time {
    let Work { objects, compiled, has_debug_info, jobs } = work;
    let own = known.begun.and_then(|begun| {
        let pace = pace_of(&begun.state, compiled, jobs)?;
        Some((pace, "by what this build has compiled so far".to_owned()))
    });
    let (ms, mut basis) = own
        .or_else(|| of_packages(known.earlier, has_debug_info, jobs))
        .or_else(|| of_kernels(known.kernels, has_debug_info))
        .unwrap_or_else(|| elsewhere(has_debug_info, jobs));
    if known.has_ccache {
        basis.push_str("; ccache may have shortened that");
    }
    let left = objects.map(|objects| objects.saturating_sub(compiled));
    let seconds = left.map(|left| (left as f64 * ms / 1e3).ceil() as u64);
    Time { seconds, object_ms: ms.round().max(1.0) as u64, basis }
}

/// Milliseconds for an object of a build, as they would be with `jobs` compilers.
fn pace_of(state: &State, objects: u64, jobs: usize) -> Option<f64> {
    if objects < LEARNT || state.seconds == 0 {
        return None;
    }
    let then = if state.jobs == 0 { jobs } else { state.jobs };
    Some(state.seconds as f64 * 1e3 / objects as f64 * then as f64 / jobs.max(1) as f64)
}

/// By the last packages that were made here, best with debug information as now.
fn of_packages(earlier: &[Workshop], has_debug_info: bool, jobs: usize) -> Option<Pace> {
    let usable = earlier.iter().filter_map(|shop| {
        let pace = pace_of(&shop.state, shop.state.done.as_ref()?.objects, jobs)?;
        Some((shop, pace))
    });
    let usable: Vec<(&Workshop, f64)> = usable.collect();
    let is_like = |shop: &Workshop| shop.state.has_debug_info == has_debug_info;
    let like = usable.iter().find(|(shop, _)| is_like(shop));
    let (shop, pace) = like.or(usable.first())?;
    let mut basis = format!("by the packages of Linux {} made here", shop.state.version);
    if !is_like(shop) {
        basis.push_str(match has_debug_info {
            true => ", without debug information; with it an object takes longer",
            false => ", with debug information; without it an object takes less",
        });
    }
    Some((*pace, basis))
}

/// By the kernel that was built here last.
fn of_kernels(kernels: &[Built], has_debug_info: bool) -> Option<Pace> {
    let pace = |built: &Built| {
        let lines = *built.meta.profile.last()?;
        let is_usable = lines >= LEARNT && built.meta.seconds > 0;
        is_usable.then(|| built.meta.seconds as f64 * 1e3 / lines as f64)
    };
    let usable = kernels.iter().filter_map(|built| Some((built, pace(built)?)));
    let (built, pace) = usable.max_by_key(|(built, _)| built.meta.built_unix_s)?;
    let basis = format!("by {} built here, a small kernel", built.key);
    Some((pace, basis + with_debug_info(has_debug_info)))
}

/// Where nothing was compiled yet.
fn elsewhere(has_debug_info: bool, jobs: usize) -> Pace {
    let basis = "no kernel was compiled here yet: as measured on another machine, a small kernel";
    (ELSEWHERE_MS / jobs.max(1) as f64, basis.to_owned() + with_debug_info(has_debug_info))
}

/// What is said of a small kernel's pace, which was compiled without.
fn with_debug_info(has_debug_info: bool) -> &'static str {
    if has_debug_info { ", without debug information; with it an object takes longer" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::super::workshop::{Done, tests::shop};
    use super::*;

    const NOTHING: Known<'_> = Known { begun: None, earlier: &[], kernels: &[], has_ccache: false };

    /// A thousand objects for two compilers, without debug information.
    const WORK: Work = Work { objects: Some(1000), compiled: 0, has_debug_info: false, jobs: 2 };
    const WITH_DEBUG_INFO: Work = Work { has_debug_info: true, ..WORK };

    /// Packages of a thousand objects that took this many seconds with two compilers.
    fn made(seconds: u64, has_debug_info: bool) -> Workshop {
        let mut shop = shop(has_debug_info);
        (shop.state.seconds, shop.state.jobs) = (seconds, 2);
        shop.state.done =
            Some(Done { release: "7.3.4-x".into(), objects: 1000, size_bytes: 1, built_unix_s: 1 });
        shop
    }

    #[test]
    fn before_anything_was_compiled_it_says_so_and_compilers_share_the_work() {
        let two = of(WORK, &NOTHING);
        assert_eq!((two.seconds, two.object_ms), (Some(115), 115));
        assert!(two.basis.starts_with("no kernel was compiled here yet"), "{}", two.basis);
        assert_eq!(of(Work { jobs: 8, ..WORK }, &NOTHING).object_ms, 29);
        let with = of(WITH_DEBUG_INFO, &NOTHING).basis;
        assert!(with.contains("with it an object takes longer"), "{with}");
    }

    #[test]
    fn packages_made_here_are_the_measure_best_those_like_it() {
        let earlier = [made(500, true), made(200, false)];
        let known = Known { earlier: &earlier, ..NOTHING };
        let like = of(WORK, &known);
        assert_eq!((like.seconds, like.basis.contains("debug information")), (Some(200), false));
        // Four compilers instead of two.
        assert_eq!(of(Work { jobs: 4, ..WORK }, &known).seconds, Some(100));
        let unlike = of(WITH_DEBUG_INFO, &Known { earlier: &earlier[1..], ..NOTHING });
        assert_eq!(unlike.seconds, Some(200));
        assert!(unlike.basis.contains("with it an object takes longer"), "{}", unlike.basis);
        let ccache = of(WORK, &Known { has_ccache: true, ..known });
        assert!(ccache.basis.ends_with("ccache may have shortened that"), "{}", ccache.basis);
    }

    #[test]
    fn a_build_that_was_begun_is_its_own_measure_once_it_has_compiled_enough() {
        let begun = made(60, false);
        let earlier = [made(500, false)];
        let known = Known { begun: Some(&begun), earlier: &earlier, ..NOTHING };
        let time = of(Work { compiled: 600, ..WORK }, &known);
        assert_eq!((time.seconds, time.object_ms), (Some(40), 100));
        assert!(time.basis.contains("so far"), "{}", time.basis);
        assert_eq!(of(Work { compiled: 10, ..WORK }, &known).object_ms, 500);
    }

    #[test]
    fn without_a_source_there_is_a_pace_and_no_time() {
        let earlier = [made(200, false)];
        let time = of(Work { objects: None, ..WORK }, &Known { earlier: &earlier, ..NOTHING });
        assert_eq!((time.seconds, time.object_ms), (None, 200));
    }
}
