//! `ntcopy try`: the user's own program in turns, plain and hinted, and one verdict.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::experiments::turns::{self, Expression, Metric, Outside, TurnsPlan};
use ntcopy_bench::sample::Needs;
use ntcopy_record::ExperimentKind;
use ntcopy_record::units::Bytes;
use serde_json::json;

use super::NOT_AVAILABLE;
use super::bench::{NO_TIMING, Place, Runner};
use super::run::{self, Hinting};

const LEAST_PAIRS: u32 = 6;

/// Where programs write what nobody keeps.
const SCRATCH: [&str; 2] = ["/tmp", "/var/tmp"];

const HELP: &str = "\
Examples:
  ntcopy try --kernel auto -- ./import --from big.dump
  ntcopy try --kernel auto --load 'curl -so /dev/null --unix-socket /tmp/b.sock http://b/[1-500]' \
-- ./backend /tmp/b.sock
  ntcopy try --family tcp --load 'wrk -t1 -c16 -d3s --latency http://127.0.0.1:8080/big' -- ./server
  ntcopy try --kernel auto --load 'head -c 1M /dev/zero | redis-cli -x set key:__rand_int__; \
redis-benchmark -t get -n 1000 -q' -- redis-server
  ntcopy try --at-least 1.05 --metric 's/^rate: ([0-9.]+) MB.*/\\1/' -- ./sender

A turn is one run of the program; with --load it is the program as a server, started anew, and one \
run of the load against it. Turns come in pairs, plain and hinted, the first of a pair in turns as \
well. The hinted program has the library of `ntcopy run`, or its sockets are set from outside as by \
`ntcopy set` (Go, statically linked); a load is never hinted.

In a booted kernel (--kernel auto) each pair has a boot of its own, a second each. /tmp, /var/tmp \
and the folder that the command was given in can be written there, and what is written is thrown \
away; --write keeps it. A socket that an earlier server has left there is not in the way.

After 8, 16, 32, 64 and 128 pairs the answer is looked at, and turns end where it is a win, a loss or \
equal, by the bar of 3 %. They end as well once --budget is spent and there are six pairs. --pairs \
sets their number.

What counts is the time that the program takes; with --metric a number that it prints (or the \
load, if there is one), found by a substitution of sed -E; with --load and no --metric the requests \
per second that wrk, hey, ab, oha, redis-benchmark print, or the latency if the load was told its \
rate (wrk2 -R, hey -q, oha -q, redis-benchmark --rps). Beside it stand the CPU time of program and \
load, per GB where the load prints how much came (wrk, oha, hey, ab), else per million answers, and \
the p50 and p99 that the load prints. A turn in which answers failed, as the load says, has failed. \
A ratio above 1 means that hinted was better.

All processes that a turn started end with it, also by Ctrl-C.

Exit codes: 0 done, whichever side won; 1 a turn failed; 2 usage; 3 the hint would reach no \
socket here; 127 there is no such program, 126 it cannot be run. With --at-least: 0 reached, 5 \
unresolved, 6 not reached.";

#[derive(clap::Args)]
#[command(
    about = "Try the hint on a program of one's own: plain and hinted, in turns, one verdict",
    override_usage = "ntcopy try [OPTIONS] -- PROGRAM...",
    after_help = HELP,
    args_override_self = true
)]
pub struct Args {
    #[command(flatten)]
    hint: run::Hint,
    /// A number that is printed counts: what this substitution makes of the last line it matches
    #[arg(long, value_name = "s/.../.../")]
    metric: Option<Expression>,
    /// Smaller numbers are the better ones
    #[arg(long, requires = "metric")]
    less: bool,
    /// The program is a server, and this command, given to sh, asks it
    #[arg(long, value_name = "COMMAND")]
    load: Option<String>,
    /// A command, given to sh, that succeeds once the server can be asked [default: wait until a
    /// socket of it listens]
    #[arg(long, value_name = "COMMAND", requires = "load")]
    ready: Option<String>,
    /// A command, given to sh, before each turn
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// The ratio to reach, as 1.05: the exit code says whether the whole interval lies there
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    at_least: Option<f64>,
    /// Number of pairs of turns, at least 5 [default: 6 or more, until the verdict is clear]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..))]
    pairs: Option<u32>,
    /// Seconds after which no other pair begins, once there are six
    #[arg(long, value_name = "SECONDS", default_value = "100", conflicts_with = "pairs",
          value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Seconds after which a turn has failed
    #[arg(long, hide = true, value_name = "SECONDS", default_value = "600",
          value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    #[command(flatten)]
    place: Place,
    /// Memory of a booted kernel
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    mem: Bytes,
    /// A folder that the program may write in a booted kernel; may be repeated
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Take turns also where the hint reaches no socket: then only loading the library differs
    #[arg(long)]
    anyway: bool,
    /// The number of the one pair that is measured: for the inside of a booted kernel.
    #[arg(long, hide = true, value_name = "N")]
    block: Option<u32>,
    /// The program and its arguments as JSON: for the inside of a booted kernel.
    #[arg(long, hide = true, value_name = "JSON", conflicts_with = "command")]
    words: Option<String>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "PROGRAM", required_unless_present = "words")]
    command: Vec<OsString>,
}

pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if let Some(words) = &args.words {
        let words: Vec<String> = serde_json::from_str(words).context("--words")?;
        args.command = words.into_iter().map(OsString::from).collect();
    }
    args.place.choose()?;
    let mut runner = Runner::from(&args.place);
    runner.options.patience = Duration::from_secs(args.patience);
    let is_set = args.pairs.is_some() || args.block.is_some();
    runner.options.budget = (!is_set).then(|| Duration::from_secs(args.budget));
    runner.at_least = args.at_least.filter(|_| !args.place.measure_only);
    if args.place.kernel == "host" {
        on_this_kernel(&args, &runner)
    } else {
        in_a_booted_kernel(&args, &runner)
    }
}

fn on_this_kernel(args: &Args, runner: &Runner) -> anyhow::Result<ExitCode> {
    let hinting = Hinting::of(&args.hint, &args.command[0])?;
    if !args.anyway && !hinting.obstacles().is_empty() {
        return Ok(refused(&hinting));
    }
    if !args.place.measure_only {
        say_from_outside(&hinting);
    }
    let is_outside = !hinting.out_of_reach().is_empty() && hinting.obstacles().is_empty();
    let from_outside = is_outside.then(|| outside(&args.hint)).transpose()?;
    let plan = TurnsPlan {
        program: args.command.clone(),
        hinting: turns::Hinting { environment: hinting.environment, from_outside },
        prepare: args.prepare.clone(),
        load: args.load.clone(),
        ready: args.ready.clone(),
        metric: metric(args),
        pairs: if args.block.is_some() { 1 } else { args.pairs.unwrap_or(LEAST_PAIRS) },
        first_pair: args.block.unwrap_or(0),
    };
    runner.measure(&plan, &|_| false)
}

fn say_from_outside(hinting: &Hinting) {
    for why in hinting.out_of_reach() {
        eprintln!("ntcopy: {why}; its sockets are set from outside");
    }
}

/// The command that sets a program's sockets: this program's own.
fn outside(hint: &run::Hint) -> anyhow::Result<Outside> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut words: Vec<OsString> = vec![program.into(), "set".into()];
    words.extend(hint.words());
    let with = |options: &[&str]| {
        words.iter().cloned().chain(options.iter().map(OsString::from)).collect()
    };
    Ok(Outside { once: with(&["--pid"]), watch: with(&["--watch", "--pid"]) })
}

/// Says why the hint would reach no socket, and what to do.
fn refused(hinting: &Hinting) -> ExitCode {
    for obstacle in hinting.in_the_way() {
        eprintln!("ntcopy: not available: {obstacle}");
    }
    if hinting.needs_kernel {
        eprintln!(
            "ntcopy: --kernel auto boots a kernel that has the flag, built if need be, and takes \
             the turns inside"
        );
    }
    ExitCode::from(NOT_AVAILABLE)
}

fn metric(args: &Args) -> Metric {
    match &args.metric {
        Some(expression) => {
            Metric::Printed { expression: expression.clone(), less_is_better: args.less }
        }
        None => args.load.as_deref().map_or(Metric::Time, turns::metric_of),
    }
}

fn in_a_booted_kernel(args: &Args, runner: &Runner) -> anyhow::Result<ExitCode> {
    let kernel = runner.kernel(NO_TIMING)?;
    // That it is there is known before a kernel is built.
    say_from_outside(&Hinting::of(&args.hint, &args.command[0])?);
    let needs = Needs { samples: 2, memory_bytes: args.mem.0, sysctls: Vec::new(), longest: None };
    let mut request = runner.request(kernel, needs, &ExperimentKind::Try)?;
    (request.writable, request.args) = (args.write.clone(), inside(&args.command)?);
    request.scratch = SCRATCH.map(PathBuf::from).into();
    request.scratch.extend(std::env::current_dir());
    runner.boot_blocks(&request, args.pairs.unwrap_or(LEAST_PAIRS), |block| {
        ["--block".into(), block.to_string().into()]
    })
}

fn ratio(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse().ok();
    number
        .filter(|number: &f64| *number > 0.0 && number.is_finite())
        .ok_or_else(|| format!("`{text}` is no ratio above 0, as 1.05"))
}

/// This program's arguments for the inside: options, and the user's program as one of them, since
/// others come after.
fn inside(command: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let mut inside: Vec<OsString> = std::env::args_os().skip(1).collect();
    inside.truncate(inside.len().saturating_sub(command.len()));
    if inside.last().is_some_and(|word| word == "--") {
        inside.pop();
    }
    let words: Option<Vec<&str>> = command.iter().map(|word| word.to_str()).collect();
    let words = words.context("a word of the command is no UTF-8")?;
    inside.extend(["--words".into(), json!(words).to_string().into()]);
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &[&str]) -> Result<Args, clap::Error> {
        Line::try_parse_from([&["try"], line].concat()).map(|line| line.args)
    }

    #[test]
    fn what_counts_follows_from_what_was_said() {
        let of = |line: &[&str]| metric(&parse(line).unwrap_or_else(|error| panic!("{error}")));
        assert_eq!(of(&["--", "cat"]), Metric::Time);
        assert_eq!(of(&["--load", "wrk x", "--", "cat", "--load"]), Metric::Requests);
        assert_eq!(of(&["--load", "wrk2 -R9 x", "--", "cat"]), Metric::Latency);
        let found = of(&["--metric", "s/a(.)/\\1/", "--less", "--load", "x", "--", "cat"]);
        assert!(matches!(found, Metric::Printed { less_is_better: true, .. }), "{found:?}");
    }

    #[test]
    fn a_bar_is_a_ratio() {
        assert_eq!(ratio("1.05x"), Ok(1.05));
        assert!(ratio("0").is_err() && ratio("five").is_err() && ratio("inf").is_err());
    }

    #[test]
    fn what_follows_the_program_is_its_own() {
        for line in [&["--json", "ls", "--less", "-l"][..], &["--json", "--", "ls", "--less", "-l"]]
        {
            let args = parse(line).unwrap_or_else(|error| panic!("{error}"));
            assert!(args.place.json && !args.less);
            assert_eq!(args.command, ["ls", "--less", "-l"]);
        }
    }
}
