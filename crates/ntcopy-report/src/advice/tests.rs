use ntcopy_judge::Ratio;
use ntcopy_judge::advice::{
    About, Advice, Decision, Hot, Measure, Now, OWN_STACK, ProfileFacts, Reason, Taker, Topic,
};
use ntcopy_judge::claims::{Claim, Outcomes, Parts, Size, Worst};
use ntcopy_judge::modes::MOVNTI;
use ntcopy_judge::stats::{Tally, Verdict};

use super::{headline, topics, words};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn ratio(ratio: f64) -> Ratio {
    Ratio { ratio, ci: (ratio - 0.05, ratio + 0.05) }
}

fn claim(verdict: Verdict, ratios: [f64; 3], cells: usize) -> Claim {
    let [least, all, most] = ratios.map(ratio);
    Claim { all, verdict, cells, least, most }
}

const ONE_LOSS: Tally = Tally { wins: 3, losses: 1, equal: 1, unresolved: 0 };

fn one_loss(of: &'static str) -> Outcomes {
    let worst = Worst { result: ratio(0.8), size: Size { bytes: 48 * MIB, of } };
    Outcomes { tally: ONE_LOSS, worst: Some(worst) }
}

fn wins(wins: usize) -> Outcomes {
    Outcomes { tally: Tally { wins, ..Tally::default() }, worst: None }
}

fn sends(decision: Decision, reason: Reason) -> Advice {
    let about = About::Sockets("tcp".to_owned());
    Advice { about, ..Advice::bare(Topic::Sends, decision, reason) }
}

#[test]
fn a_number_is_said_with_what_it_is_of_and_its_losses_with_their_source() {
    let lengths = Reason::Lengths {
        from_bytes: Some(256 * KIB),
        below: Some(one_loss("a send")),
        above: wins(1),
        all: one_loss("a send"),
    };
    let hot = Hot {
        claim: claim(Verdict::Win, [0.8, 1.1, 1.4], 3),
        losses: 1,
        worst: Some(Worst { result: ratio(0.8), size: Size { bytes: MIB, of: "a send" } }),
        wins_from_in_flight_bytes: None,
    };
    let from_bytes = Some(256 * KIB);
    let advice = Advice { from_bytes, hot: Some(hot), ..sends(Decision::Set, lengths) };
    assert_eq!(
        headline(&advice),
        "USE SO_NTCOPY = 262144 (sends of 256 KiB and more) on tcp sockets of programs that answer from \
         more data than the caches hold"
    );
    assert_eq!(
        words::why(&advice),
        "Out of more data than the caches hold, of 1 cell with hinted sends of 256 KiB and more 1 wins. \
         Among shorter ones 3 win, 1 loses (worst 0.80x (0.75-0.85) at 48 MiB a send), 1 makes no \
         difference."
    );
    assert_eq!(
        words::costs(&advice).unwrap(),
        "Out of more data than the caches hold: 1 of 5 cells loses, 0.80x (0.75-0.85) at 48 MiB a send. \
         The same few bytes again and again: 1 of 3 cells loses, 0.80x (0.75-0.85) at 1 MiB a send."
    );
    let run = Advice { topic: Topic::Run, ..advice };
    assert_eq!(headline(&run), "USE ntcopy run --min-bytes 256KiB -- PROGRAM");
    assert_eq!(topics::about(&run), None);
    let by_module = Advice { taker: Taker::Module, ..run };
    assert_eq!(topics::about(&by_module).unwrap(), "by the module");
    let sends = Advice { topic: Topic::Sends, ..by_module };
    assert_eq!(topics::about(&sends).unwrap(), "tcp sockets (by the module)");
}

#[test]
fn where_the_longest_lose_or_plain_sends_differ_that_is_why() {
    let lengths =
        || Reason::Lengths { from_bytes: None, below: None, above: wins(2), all: wins(2) };
    let advice = Advice { alike: Some(ratio(1.2)), ..sends(Decision::Unresolved, lengths()) };
    assert_eq!(
        words::why(&advice),
        "Out of more data than the caches hold even the longest sends lose: of 2 cells 2 win. The \
         machine is not fit to tell: plain sends are at 1.20x (1.15-1.25) of plain ones of other turns."
    );
    let advice = sends(Decision::Leave, lengths());
    assert_eq!(headline(&advice), "leave off SO_NTCOPY");
    assert_eq!(
        words::costs(&advice).unwrap(),
        "Out of more data than the caches hold: none of 2 cells loses."
    );
}

#[test]
fn a_threshold_says_from_where_on_it_wins_and_what_it_is_now() {
    let from = Size { bytes: 32 * MIB, of: "a call" };
    let gain = Some(claim(Verdict::Win, [1.1, 1.2, 1.3], 2));
    let reason = Reason::WinsFrom { from, below: None };
    let now = Some(Now::Threshold(32 * MIB));
    let set = Advice::bare(Topic::MemcpyThreshold, Decision::Set, reason);
    let set = Advice { from_bytes: Some(32 * MIB), gain, now, ..set };
    let tunable = "glibc.cpu.x86_non_temporal_threshold=33554432";
    assert_eq!(headline(&set), format!("SET GLIBC_TUNABLES={tunable}"));
    assert_eq!(words::now(&set).unwrap(), format!("{tunable} (32 MiB)"));
    let why = "Lower thresholds of memcpy win in every cell from 32 MiB a call on (2 cells, 1.10x to \
               1.30x). Nothing smaller was measured.";
    assert_eq!(words::why(&set), why);
    let already = Advice { decision: Decision::AsItIs, ..set };
    assert_eq!(words::why(&already), format!("{why} That is how it is set already."));
}

#[test]
fn what_does_not_win_from_some_size_on_is_said_over_all_cells() {
    for (decision, verdict, outcomes, says) in [
        (Decision::Set, Verdict::Win, wins(5), "win over all cells together"),
        (Decision::Leave, Verdict::Loss, one_loss("a call"), "do not pay"),
        (Decision::AsItIs, Verdict::Win, one_loss("a call"), "win and lose, and at no size"),
        (Decision::AsItIs, Verdict::Win, wins(5), "win over all cells, and at no size"),
        (Decision::AsItIs, Verdict::Equal, wins(5), "make no difference"),
        (Decision::Unresolved, Verdict::Unresolved, wins(5), "are unresolved"),
    ] {
        let advice = Advice::bare(Topic::CopiesInUse, decision, Reason::OverAll(outcomes));
        let gain = Some(claim(verdict, [0.8, 1.0, 1.2], 5));
        let why = words::why(&Advice { gain, about: About::Mode(MOVNTI), ..advice });
        let thing = "Copies by MOVNTI into the same buffer again and again";
        assert!(why.starts_with(&format!("{thing} {says}")), "{why}");
        assert!(why.contains(": of 5 cells "), "{why}");
    }
}

#[test]
fn the_same_backend_is_set_by_its_own_option_and_the_hot_set_by_what_the_sends_have() {
    let set = |topic, about| {
        let bare = Advice::bare(topic, Decision::Set, Reason::OverAll(wins(1)));
        headline(&Advice { from_bytes: Some(MIB), about, ..bare })
    };
    let stack = |name: &str| set(Topic::Http, About::Stack(name.to_owned()));
    let where_asked = "where 1 MiB or more are asked for at a time";
    assert_eq!(stack(OWN_STACK), format!("USE --mode nt of storaged {where_asked}"));
    assert_eq!(stack("nginx"), format!("USE SO_NTCOPY in the backend {where_asked}"));
    let beside = |sends| set(Topic::HotSetSends, About::BesideSends(sends));
    assert!(beside(Decision::Set).starts_with("USE SO_NTCOPY as for the sends"));
    assert!(beside(Decision::Leave).contains("hot data matters more"));
}

#[test]
fn what_is_not_known_is_a_command() {
    let command = |advice: &Advice| words::measure(advice).unwrap().join(" ");
    let measure = |topic, measure| {
        let bare = Advice::bare(topic, Decision::NoEvidence, Reason::NotMeasured);
        command(&Advice { measure: Some(measure), ..bare })
    };
    assert_eq!(
        measure(Topic::MemsetThreshold, Measure::Sizes(vec![2 * MIB, 4 * MIB])),
        "ntcopy bench memset --modes libc-tuned --libc-threshold 2MiB --size 2MiB,4MiB"
    );
    assert_eq!(measure(Topic::Http, Measure::Usual), "ntcopy bench http --kernel um");
    let reason = Reason::NoneLikeIt { least_bytes: Some(MIB), most_bytes: Some(128 * MIB) };
    let rounds = Measure::Rounds { sockets: 64, object_bytes: 128 * KIB };
    let advice = Advice { measure: Some(rounds), ..sends(Decision::NoEvidence, reason) };
    assert_eq!(
        command(&advice),
        "ntcopy bench unix --kernel um --family tcp --modes hinted --sockets 64 --object 128KiB"
    );
    assert_eq!(
        words::why(&advice),
        "No record of this machine has hinted sends on tcp sockets with about as much in flight. Those \
         that there are have 1 MiB to 128 MiB."
    );
}

#[test]
fn what_is_not_here_says_why() {
    let libc = || "glibc 2.36".to_owned();
    let why = |reason| words::why(&Advice::bare(Topic::MemsetThreshold, Decision::NotHere, reason));
    assert!(why(Reason::NoTunable { libc: libc() }).contains("for memset since 2.40"));
    let unknown = why(Reason::ThresholdUnknown { libc: libc() });
    assert_eq!(unknown, "glibc 2.36 does not tell from which size its memset is.");
    let within = why(Reason::ThresholdWithinLevel2 { libc: libc(), bytes: MIB });
    assert!(within.starts_with("glibc 2.36's own threshold, 1 MiB, lies within the level-2 cache"));
}

#[test]
fn the_library_goes_by_its_profile_or_by_cpuid() {
    let bare = Advice::bare(Topic::Fills, Decision::NoEvidence, Reason::NotMeasured);
    let now = |now| words::now(&Advice { now: Some(now), ..bare.clone() }).unwrap();
    assert!(now(Now::NoProfile).starts_with("by CPUID"));
    let profile = ProfileFacts {
        place: "/etc/p".to_owned(),
        date: "2026-11-21".to_owned(),
        copy_from_bytes: None,
        fill_from_bytes: Some(MIB),
    };
    let by = |from_bytes| now(Now::Profile { profile: profile.clone(), from_bytes });
    let by_profile = "by the profile of 2026-11-21 (/etc/p)";
    assert_eq!(by(Some(MIB)), format!("non-temporal from 1 MiB on, {by_profile}"));
    assert_eq!(by(None), format!("non-temporal never, {by_profile}"));
}

#[test]
fn the_three_parts_stand_side_by_side() {
    let patches = Some(claim(Verdict::Win, [1.07; 3], 1));
    let hint = Some(claim(Verdict::Equal, [0.99; 3], 4));
    assert_eq!(
        words::parts(&Parts { patches, hint, at_most: None }),
        "patches alone 1.07x (1.02-1.12) in 1 cell; the hint on top 0.99x (0.94-1.04) in 4 cells; sends \
         that copy nothing not measured"
    );
}
