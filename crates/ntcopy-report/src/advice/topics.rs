//! The topics of advice: a row for each, with the words that are its own.

use ntcopy_judge::advice::{About, Advice, Decision, OWN_STACK, Taker, Topic};
use ntcopy_record::units::Bytes;

/// What is said of a topic.
pub struct Words {
    pub title: &'static str,
    /// How to go back, once it is set.
    pub undo: &'static str,
    /// What pays or does not.
    pub thing: &'static str,
    /// What to type or write where it pays, from this size on.
    pub set: fn(&Advice, Bytes) -> String,
    /// What to leave where it does not.
    pub left: &'static str,
    /// The command that gives evidence. Sends are measured in a kernel of their own, since the running
    /// one may have no flag.
    pub measure: &'static str,
}

const MEMCPY_TUNABLE: &str = "glibc.cpu.x86_non_temporal_threshold";
const MEMSET_TUNABLE: &str = "glibc.cpu.x86_memset_non_temporal_threshold";

const SOCKETS_BACK: &str = "setsockopt() of SO_NTCOPY to 0, or the program without it; of all programs \
                            at once: sudo sysctl net.core.ntcopy=0";
const RUN_BACK: &str =
    "start PROGRAM without ntcopy run; after ntcopy set --pid PID: the same with --off";
const TUNABLE_BACK: &str = "take it out of GLIBC_TUNABLES, and start the programs anew";
const HINTS_BACK: &str = "take the hint out of the call: without one the library decides";

/// A threshold's name in `GLIBC_TUNABLES`, of topics that are about one.
pub fn tunable(topic: Topic) -> Option<&'static str> {
    match topic {
        Topic::MemcpyThreshold => Some(MEMCPY_TUNABLE),
        Topic::MemsetThreshold => Some(MEMSET_TUNABLE),
        _ => None,
    }
}

/// The row of a topic.
pub fn words(topic: Topic) -> Words {
    match topic {
        Topic::MemcpyThreshold => Words {
            title: "glibc's memcpy: non-temporal from which size",
            undo: TUNABLE_BACK,
            thing: "Lower thresholds of memcpy",
            set: |_, from| format!("GLIBC_TUNABLES={MEMCPY_TUNABLE}={}", from.0),
            left: "another threshold of memcpy",
            measure: "ntcopy bench memcpy --modes libc-tuned",
        },
        Topic::MemsetThreshold => Words {
            title: "glibc's memset: non-temporal from which size",
            undo: TUNABLE_BACK,
            thing: "Lower thresholds of memset",
            set: |_, from| format!("GLIBC_TUNABLES={MEMSET_TUNABLE}={}", from.0),
            left: "another threshold of memset",
            measure: "ntcopy bench memset --modes libc-tuned",
        },
        Topic::Run => Words {
            title: "ntcopy run: an unmodified program, its large sends hinted",
            undo: RUN_BACK,
            set: |_, from| format!("ntcopy run --min-bytes {} -- PROGRAM", from.argument()),
            left: "ntcopy run",
            ..words(Topic::Sends)
        },
        Topic::Copies => Words {
            title: "libntcopy: copies into memory that is not read soon",
            undo: HINTS_BACK,
            thing: "Non-temporal copies of a stream into memory that is not in cache",
            set: |_, from| {
                format!(
                    "ntcopy::Stream::known(total), or a non-temporal hint for the destination, for \
                     calls of {from} and more"
                )
            },
            left: "non-temporal hints for the destination",
            measure: "ntcopy bench memcpy --modes ours --destination cold",
        },
        Topic::CopiesInUse => Words {
            title: "libntcopy: copies into a buffer in use",
            undo: HINTS_BACK,
            thing: "Non-temporal copies into the same buffer again and again",
            set: |_, _| "Hints::AUTO, the library's own choice".to_owned(),
            left: "non-temporal stores into buffers in use",
            measure: "ntcopy bench memcpy --modes ours,movnti --destination hot",
        },
        Topic::Fills => Words {
            title: "libntcopy: fills",
            undo: HINTS_BACK,
            thing: "Non-temporal fills",
            set: |_, from| {
                format!(
                    "a non-temporal hint for fills of {from} and more (ntcopy footprint calibrate \
                     writes the library's own threshold)"
                )
            },
            left: "non-temporal hints for fills",
            measure: "ntcopy bench memset --modes ours",
        },
        Topic::Sends => Words {
            title: "hinted sends",
            undo: SOCKETS_BACK,
            thing: "Hinted sends",
            set: hinted_sends,
            left: "SO_NTCOPY",
            measure: "ntcopy bench unix --kernel um --sweep",
        },
        Topic::Http => Words {
            title: "hinted responses behind a proxy",
            undo: SOCKETS_BACK,
            thing: "Hinted responses",
            set: hinted_backend,
            left: "SO_NTCOPY in the backend",
            measure: "ntcopy bench http --kernel um",
        },
        Topic::App => Words {
            title: "ntcopy run: small requests beside large ones",
            undo: RUN_BACK,
            thing: "Small requests beside large ones",
            // No size is asked for: all its sends are hinted, or none.
            set: |_, _| RUN_PROGRAM.to_owned(),
            left: RUN_PROGRAM,
            measure: "ntcopy bench app --kernel um",
        },
        Topic::HotSetSends => Words {
            title: "sends beside a hot set",
            undo: SOCKETS_BACK,
            thing: "For a hot set on the sender's CPU, hinted sends",
            set: beside_sends,
            left: "SO_NTCOPY for a hot set's sake",
            measure: "ntcopy bench retention --kernel um --modes hinted",
        },
    }
}

const RUN_PROGRAM: &str = "ntcopy run -- PROGRAM";

fn hinted_sends(advice: &Advice, from: Bytes) -> String {
    let sockets = about(advice).unwrap_or_default();
    format!(
        "SO_NTCOPY = {} (sends of {from} and more) on {sockets} of programs that answer from more data \
         than the caches hold",
        from.0
    )
}

fn hinted_backend(advice: &Advice, from: Bytes) -> String {
    let how = match &advice.about {
        About::Stack(stack) if stack == OWN_STACK => "--mode nt of storaged",
        _ => "SO_NTCOPY in the backend",
    };
    format!("{how} where {from} or more are asked for at a time")
}

fn beside_sends(advice: &Advice, _: Bytes) -> String {
    let whose = match advice.about {
        About::BesideSends(Decision::Set) => "as for the sends, for the hot set's sake too",
        _ => "in programs whose hot data matters more than the sends",
    };
    format!("SO_NTCOPY {whose}")
}

/// What of the topic, where there are several: `unix sockets (by the module)`. A program is run without
/// asking for its sockets.
pub fn about(advice: &Advice) -> Option<String> {
    let words = match &advice.about {
        _ if advice.topic == Topic::Run => None,
        About::Sockets(family) => Some(format!("{family} sockets")),
        About::Stack(stack) => Some(stack.clone()),
        About::Whole | About::Mode(_) | About::BesideSends(_) => None,
    };
    match (advice.taker, words) {
        (Taker::Kernel, words) => words,
        (Taker::Module, Some(words)) => Some(format!("{words} (by the module)")),
        (Taker::Module, None) => Some("by the module".to_owned()),
    }
}
