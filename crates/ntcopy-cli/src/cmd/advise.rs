//! `ntcopy advise`: reads this machine's records and profile, and says what to set on it.

pub mod apply;
mod ceiling;
pub mod check;
mod here;
mod running;
mod unit;

use std::path::PathBuf;
use std::process::ExitCode;

use ntcopy_record::Record;
use ntcopy_record::advice::{self, Advice, Source, Target};
use ntcopy_record::units::Bytes;
use ntcopy_report::advice as show;
use ntcopy_report::advice::dropins::{self, Service};
use ntcopy_report::summary;
use serde_json::json;

use super::{not_available, sources, usage};
use crate::say::write_coloured;

const EXAMPLES: &str = "\
Examples:
  ntcopy advise                              what to set here, by this machine's records
  ntcopy advise bench/record/DATE-CPU --json
  ntcopy advise --for AuthenticAMD-26-2-1    by another machine's records, for that machine
  ntcopy advise --apply out/advice           drop-in files in a folder of your own
  ntcopy advise --apply out/advice --unit nginx   and one that starts nginx under ntcopy run
  ntcopy advise --apply out/advice --unit haproxy --min-bytes 64KiB
  ntcopy advise --check --quick              is it still true? measures with and without
  ntcopy advise --pid 4711                   how much a running program has in flight, on any kernel
  ntcopy advise --service nginx --watch      the same for a service, again and again
  ntcopy advise --ceiling                    what there is to gain here at most, on any kernel

Advice is given where every cell that was measured wins, its whole 95 % interval above 1, from some
size on. Where nothing was measured it names the command that does. Without RECORD it goes by the
records of this machine's CPU in the store, wherever it is called; `ntcopy report --out` makes a \
page of the same ones. Nothing is changed on this machine; --apply writes files that nothing reads \
where they are.

--pid, --service and --all read the kernel's socket diagnostics and /proc, for ten seconds, and \
change nothing; one's own processes need no root. What is said of them is of records with about as \
much in flight.

--ceiling measures, in some 20 s and without patches, how much faster a chain of client, proxy and
backend gets when the backend copies nothing; a hint gets a part of that. With --pid the chain has
about as much in flight as the program.

--check measures at most three pieces of advice anew, those for the whole machine first, then by
gain. Its records are not kept, unless --out says where.

Exit codes: 0 done, and with --check all of it held; 1 failed, or something did not hold; 2 usage;
3 not available here, with the reason; 4 a byte was wrong.";

/// Arguments.
#[derive(clap::Args)]
#[command(
    about = "What to set on this machine, by its own records and profile",
    after_help = EXAMPLES
)]
pub struct Args {
    /// Records, or folders with records in them [default: ~/.local/share/ntcopy/records]
    #[arg(value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// Advice for the machine with this CPUID signature, as its records name it, instead of this
    /// machine
    #[arg(long = "for", value_name = "SIGNATURE", conflicts_with_all = ["check", "running"])]
    other: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write drop-in files (sysctl.d, environment.d, systemd) into this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "running"])]
    apply: Option<PathBuf>,
    /// With --apply: a drop-in that starts this service under `ntcopy run`; a unit's name, or its
    /// file's path
    #[arg(long, value_name = "UNIT", requires = "apply")]
    unit: Vec<String>,
    /// With --unit: the smallest send that is hinted, whatever the records say
    #[arg(long, value_name = "SIZE", requires = "unit")]
    min_bytes: Option<Bytes>,
    /// Measure the three most valuable pieces of advice anew, with and without
    #[arg(long, conflicts_with = "running")]
    check: bool,
    /// With --check: fewer and shorter samples
    #[arg(long, requires = "check")]
    quick: bool,
    /// With --check: keep the records in this folder
    #[arg(long, value_name = "DIR", requires = "check")]
    out: Option<PathBuf>,
    #[command(flatten)]
    running: running::Options,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.running.is_wanted() {
        return running::run(&args.running, &args.records, args.json);
    }
    if args.running.ceiling {
        return ceiling::run(&ceiling::Chain::usual(), args.json);
    }
    // Before anything is read: what can't be written to needs no advice.
    let folder = args.apply.as_deref().map(apply::Folder::check).transpose().map_err(usage)?;
    let services = args.unit.iter().map(|name| unit::find(name)).collect::<Result<Vec<_>, _>>();
    let services = services.map_err(not_available)?;
    let found = sources::read(&args.records)?;
    let target = match &args.other {
        Some(signature) => {
            Target::of(sources::machine_of(&found, signature).map_err(not_available)?)
        }
        None => here::this(),
    };
    let (records, listed) = sources::counted(found, &target.machine);
    let references: Vec<&Record> = records.iter().collect();
    let all = advice::advise(&references, &target);
    if args.check {
        return check::run(&all, &target, &args);
    }
    if !args.unit.is_empty() && args.min_bytes.is_none() && !dropins::has_run(&all) {
        return Err(not_available(
            "no record says from which size on hinted sends pay here, so no unit is changed and \
             nothing was written: ntcopy bench unix --kernel um --sockets 1,64 measures it, and \
             --min-bytes says it by hand",
        ));
    }
    let origin = sources::origin(&args.records, &listed, &target.machine);
    let verdict = summary::of(&target.machine, references).lines();
    let opening = show::Opening { origin: &origin, verdict: &verdict };
    say(&args, (&opening, &all), &target, &listed, folder, &services)
}

fn say(
    args: &Args,
    (opening, all): (&show::Opening<'_>, &[Advice]),
    target: &Target,
    sources: &[Source],
    folder: Option<apply::Folder>,
    services: &[Service],
) -> anyhow::Result<ExitCode> {
    let min_bytes = args.min_bytes.map(|size| size.argument());
    let applied =
        folder.map(|folder| folder.write(all, services, min_bytes.as_deref())).transpose()?;
    if args.json {
        let mut object = show::object(all, target, sources);
        if let Some(applied) = &applied {
            let list = applied.written.iter();
            object["applied"] = list
                .map(|(path, then)| json!({"file": path.display().to_string(), "then": then}))
                .collect::<Vec<_>>()
                .into();
        }
        println!("{object:#}");
    } else {
        write_coloured(&show::terminal(opening, all, target, sources));
    }
    sources::hint(sources, &target.machine);
    Ok(match applied {
        Some(applied) => applied.say(args.json)?,
        None => ExitCode::SUCCESS,
    })
}
