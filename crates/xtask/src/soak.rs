//! Random programs from a seed, for as long as is asked for.
//!
//! [`run`]: sends, in boots of one kernel that differ only in net.core.ntcopy: 0, 3, 1, and one in
//! which it changes all the time. What the programs saw must be the same in all of them.
//! [`module`]: whatever can be done to a socket, done to attached ones by processes and threads,
//! under KASAN, lockdep and kmemleak. [`holes`]: gathered sends from memory in which pages are
//! missing, plain against hinted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use ntcopy_kernel::{Built, Outcome, Output};

use crate::error::{Doing, Error};
use crate::guests::{Guests, kernel, module as module_for};
use crate::programs::root;
use crate::running;

pub struct Soak<'a> {
    pub kernel: &'a str,
    /// With two the setting changes on one CPU while another one sends.
    pub cpus: u32,
    pub seed: u32,
    /// With 0 each setting is booted once.
    pub minutes: u64,
    /// For each boot.
    pub programs: u32,
}

/// The settings of net.core.ntcopy, by name: with its value, and whether it changes meanwhile.
const SETTINGS: [(&str, &str, bool); 4] =
    [("0", "0", false), ("2", "2", false), ("1", "1", false), ("flip", "1", true)];

pub fn run(ntcopy: &Path, soak: &Soak) -> Result<(), Error> {
    let kernel = kernel(soak.kernel)?;
    let guests = Guests::new(ntcopy, "soak", &["soak"])?;
    println!("soak: seed {}, {} minutes, kernel {}", soak.seed, soak.minutes, soak.kernel);
    let begun = Instant::now();
    let mut seed = soak.seed;
    loop {
        let programs = soak.programs.to_string();
        let mut saw = BTreeMap::new();
        for setting in SETTINGS {
            let more = ["--count", programs.as_str()];
            saw.insert(setting.0, boot(&guests, &kernel, soak, setting, seed, &more)?);
        }
        for setting in &SETTINGS[1..] {
            if saw[setting.0] != saw["0"] {
                let number = first_difference(&saw["0"], &saw[setting.0]);
                let again = again(&guests, &kernel, soak, *setting, seed, number)?;
                let what = format!("net.core.ntcopy={} and 0 differ, seed {seed}", setting.0);
                return Err(Error::Failed(format!("soak: {what}, program {number}:\n{again}")));
            }
        }
        let seconds = begun.elapsed().as_secs();
        println!("soak: seed {seed}: {programs} programs the same in 4 boots ({seconds} s)");
        if seconds >= soak.minutes * 60 {
            return Ok(());
        }
        seed = seed.wrapping_add(1);
    }
}

/// What the programs saw.
fn boot(
    guests: &Guests,
    kernel: &Built,
    soak: &Soak,
    (name, value, flips): (&str, &str, bool),
    seed: u32,
    more: &[&str],
) -> Result<String, Error> {
    running::check()?;
    let (program, seed) = (guests.program("soak"), seed.to_string());
    let mut words = vec![program.as_str(), "--seed", &seed];
    words.extend(more);
    words.extend(flips.then_some("--flip"));
    let mut boot = guests.command(kernel, &words);
    (boot.cpus, boot.timeout) = (soak.cpus, Some(Duration::from_secs(1200)));
    boot.sysctls.push(("net.core.ntcopy".into(), value.into()));
    let outcome = boot.run()?;
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let log = guests.log(kernel, name);
    fs::write(&log, &said).doing("writing what a guest said")?;
    let what = format!("net.core.ntcopy={name}, seed {seed}, see {}", log.display());
    must_be_good(&outcome, &what).map(|()| said)
}

fn must_be_good(outcome: &Outcome, what: &str) -> Result<(), Error> {
    if outcome.code == 0 && outcome.fault_reports.is_empty() {
        return Ok(());
    }
    let titles: Vec<&str> =
        outcome.fault_reports.iter().map(|report| report.title.as_str()).collect();
    let (code, titles) = (outcome.code, titles.join("\n"));
    Err(Error::Failed(format!("soak: {what}: exit code {code}\n{titles}")))
}

/// The number of the first program that differs: each line begins with its program's.
fn first_difference(one: &str, other: &str) -> u32 {
    let (one, other): (Vec<&str>, Vec<&str>) = (one.lines().collect(), other.lines().collect());
    let at = one.iter().zip(&other).position(|(a, b)| a != b).unwrap_or(one.len().min(other.len()));
    let line = one.get(at).or(other.get(at)).copied().unwrap_or_default();
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// One program once more, with all that it saw under both settings.
fn again(
    guests: &Guests,
    kernel: &Built,
    soak: &Soak,
    setting: (&str, &str, bool),
    seed: u32,
    number: u32,
) -> Result<String, Error> {
    let number = number.to_string();
    let mut text = String::new();
    for setting in [SETTINGS[0], setting] {
        let saw = boot(guests, kernel, soak, setting, seed, &["--only", &number])?;
        text += &format!("net.core.ntcopy={}:\n{saw}", setting.0);
    }
    Ok(text)
}

pub fn module(ntcopy: &Path, name: &str, seed: u32, minutes: u64) -> Result<(), Error> {
    let (kernel, module) = module_for(name)?;
    let guests = Guests::new(ntcopy, "soak", &["module_fuzz"])?;
    println!("soak: the module, seed {seed}, {minutes} minutes, kernel {name}");
    // kmemleak is asked when the module has gone: nothing refers to what it left in memory then.
    let fuzz = [guests.program("module_fuzz"), seed.to_string(), (minutes * 60).to_string()];
    let limit = Duration::from_secs(minutes * 60 + 1200);
    let mut boot = guests.command(&kernel, &guests.through(&module, &fuzz));
    (boot.timeout, boot.output) = (Some(limit), Output::Inherit);
    must_be_good(&boot.run()?, "the module")
}

/// The loops of the copy, whatever this CPU's own is.
const WAYS: [&str; 2] = ["turns", "lines"];

pub fn holes(ntcopy: &Path, cases: usize) -> Result<(), Error> {
    let kernel = kernel("um")?;
    let guests = Guests::new(ntcopy, "holes", &["holes"])?;
    let source =
        fs::read_to_string(root().join("kernel/selftests/holes.c")).doing("reading holes.c")?;
    let variants = source.lines().filter(|it| it.starts_with("FIXTURE_VARIANT_ADD(holes")).count();
    let each = cases.div_ceil(WAYS.len() * variants.max(1));
    for way in WAYS {
        let boot = guests.command(&kernel, &[&guests.program("holes")]);
        let mut boot = boot.env("NTCOPY_SELFTEST_HOLES", each.to_string());
        boot.cpus = 1;
        boot.arguments.push(format!("nontemporal={way}"));
        guests.run(&kernel, way, boot)?.must_pass("holes")?;
    }
    println!("holes: {} cases, no difference", each * WAYS.len() * variants);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_program_that_differs_is_named_by_its_line() {
        assert_eq!(first_difference("1 a\n2 b\n3 c\n", "1 a\n2 x\n3 c\n"), 2);
        assert_eq!(first_difference("1 a\n2 b\n", "1 a\n"), 2);
    }
}
