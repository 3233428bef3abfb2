//! `ntcopy footprint calibrate`: measures this machine, and writes the profile that the library goes by.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy::policy::{NEVER, Policy};
use ntcopy::profile::{self, PROFILE_VARIABLE, Profile};
use ntcopy_bench::alone::Alone;
use ntcopy_bench::calibrate::{self, Calibration};
use ntcopy_bench::experiments::bulk::run::{Setup, resources};
use ntcopy_bench::machine;
use ntcopy_bench::run::{Patience, Stop};
use ntcopy_bench::sample::Progress;
use ntcopy_record::beside;
use ntcopy_record::units::Bytes;

use crate::cmd::{bench, not_available, unmeasured};

/// How long a run may give no answer.
const PATIENCE: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Examples:
  ntcopy footprint calibrate
  sudo ntcopy footprint calibrate --out /etc/ntcopy/profile.toml

Measure on a quiet machine: whatever else runs is in the figures.

Exit codes: 0 done; 1 failed; 2 usage; 3 not available here; 4 a byte was wrong.";

#[derive(clap::Args)]
#[command(
    about = "Measure the library's profile",
    long_about = "Measure this machine, in under a minute, and write the profile that the library \
                  goes by: which stores it uses, and from which sizes on. Without a profile the \
                  library goes by CPUID. A profile of another machine is refused.",
    after_help = EXAMPLES
)]
pub struct Args {
    /// Where the profile goes [default: ~/.config/ntcopy/profile.toml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Measure under a debug kernel or an emulator too
    #[arg(long, hide = true)]
    allow_not_a_timing: bool,
    /// Memory of either side: for tests.
    #[arg(long, hide = true)]
    region: Option<Bytes>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let variable = |name: &str| std::env::var_os(name);
    // Before a minute is spent on measuring.
    let Some(out) = args.out.clone().or_else(|| profile::user_path(variable)) else {
        return Err(profile::ProfileError::NoHome).context("--out FILE says where it is to go");
    };
    if let Some(why) = machine::not_a_timing().filter(|_| !args.allow_not_a_timing) {
        return Err(not_available(format!(
            "what is measured here is not a timing ({why}), and a profile of it would mislead"
        )));
    }
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let alone = Alone::claim();
    let setup = Setup {
        args: &bench::process_args("worker"),
        patience: Patience { limit: PATIENCE, stop: &stop },
        tuned_threshold_bytes: None,
    };
    let mut progress = Progress::on_stderr();
    let region = args.region.map(|size| size.0);
    let calibration = calibrate::calibrate(&resources()?, region, &setup, &mut progress)
        .inspect_err(|_| progress.end())
        .map_err(unmeasured)
        .context("no profile was written")?;
    if let Some(who) = beside(&alone.others()) {
        eprintln!("note: {who}: calibrate again alone");
    }
    finish(&out, &calibration)
}

fn finish(out: &Path, calibration: &Calibration) -> anyhow::Result<ExitCode> {
    for note in &calibration.notes {
        eprintln!("note: {note}");
    }
    let profile = &calibration.profile;
    if let Ok(old) = Profile::read(out) {
        eprintln!("note: replaces the profile of {}", old.date);
    }
    profile.write(out)?;
    print!("{}", summary(calibration));
    eprintln!("profile: {}", out.display());
    if !profile::candidates(|name| std::env::var_os(name)).contains(&out.to_owned()) {
        eprintln!("note: the library looks for it elsewhere: {PROFILE_VARIABLE}={}", out.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// What the library will do, and what it did without a profile.
fn summary(calibration: &Calibration) -> String {
    let (after, before) = (&calibration.profile.policy, &calibration.before);
    let mut text = format!("{:<44}{:<24}by CPUID\n", "", "measured");
    let mut row = |what: &str, of: &dyn Fn(&Policy) -> String| {
        text.push_str(&format!("{what:<44}{:<24}{}\n", of(after), of(before)));
    };
    row("copies are non-temporal from", &|p| size(p.copy_nontemporal_from_bytes));
    row("  by", &|p| format!("{}+{}", p.copy_method.name(), p.copy_prefetch.name()));
    row("  pages and bytes in turn", &|p| p.turns.name().to_owned());
    row("  from calls of", &|p| size(p.turns_from_bytes));
    row("  below that, rep movsb", &|p| span(p.rep_movsb_from_bytes, p.rep_movsb_below_bytes));
    row("  of a cold source, normal stores", &|p| {
        span(p.temporal_from_bytes, p.temporal_below_bytes)
    });
    row("fills are non-temporal from", &|p| size(p.fill_nontemporal_from_bytes));
    row("  by", &|p| p.fill_method.name().to_owned());
    row("  with zeros by", &|p| p.zero_method.name().to_owned());
    row("  below that, rep stosb", &|p| span(p.rep_stosb_from_bytes, p.rep_stosb_below_bytes));
    text.push_str(&format!("Measured in {:.0} s.\n", calibration.took.as_secs_f64()));
    text
}

fn size(bytes: u64) -> String {
    if bytes == NEVER { "never".to_owned() } else { Bytes(bytes).to_string() }
}

fn span(from: u64, below: u64) -> String {
    match (from, below) {
        (NEVER, _) => "never".to_owned(),
        (from, NEVER) => format!("from {}", size(from)),
        // One more byte than the last size is below it.
        (from, below) => format!("from {} to {}", size(from), size(below & !1)),
    }
}
