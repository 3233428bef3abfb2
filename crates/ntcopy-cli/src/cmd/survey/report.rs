//! `ntcopy survey report`: reads a store's summaries, says what they come to by CPU model.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ntcopy_survey::analysis::advice::{ModelAdvice, of_models};
use ntcopy_survey::analysis::{Analysis, ModelView, analyse};
use ntcopy_survey::page::{Report, html, json, text};
use ntcopy_survey::store::Place;
use serde_json::{Value, json};

use super::StoreArg;
use crate::cmd::advise::apply::Folder;
use crate::cmd::{NOT_AVAILABLE, report};

const EXAMPLES: &str = "\
Examples:
  ntcopy survey report
  ntcopy survey report --store postgresql://survey@db/survey --out survey.html
  ntcopy survey report --model AuthenticAMD-26-2-1 --json
  ntcopy survey report --drop-ins out/advice      what each model wants, as files

A CPU model is a CPUID signature: vendor, family, model, stepping. Figures are medians over
machines, with 95 % intervals over machines from five on. Machines that behave unlike their model
are named, with what their records say differs, and left out of its figures.

Exit codes: 0 done; 1 failed; 2 usage; 3 not available here, with the reason.";

/// Arguments.
#[derive(clap::Args)]
#[command(
    about = "What a survey came to: by CPU model, and which machines are unlike theirs",
    after_help = EXAMPLES
)]
pub struct Args {
    #[command(flatten)]
    store: StoreArg,
    /// Only records of this fleet
    #[arg(long, value_name = "NAME")]
    fleet: Option<String>,
    /// Show only the CPU models with these signatures; machines are still judged among all
    #[arg(long = "model", value_name = "SIGNATURE", num_args = 1..)]
    models: Vec<String>,
    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE.html", group = "form")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, group = "form")]
    json: bool,
    /// Ask for advice for each model, and write it as drop-in files (sysctl.d, environment.d,
    /// systemd) into a folder a model below this one
    #[arg(long, value_name = "DIR")]
    drop_ins: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(Err(why)) = args.drop_ins.as_deref().map(|folder| check(folder, None)) {
        eprintln!("ntcopy: {why}");
        return Ok(ExitCode::from(2));
    }
    let mut store = args.store.open_existing()?;
    let summaries = match &args.fleet {
        Some(fleet) => store.summaries_of(fleet)?,
        None => store.summaries()?,
    };
    let mut analysis = analyse(&summaries);
    drop(summaries);
    if let Err(why) = select(&mut analysis, &args.models) {
        eprintln!("ntcopy: not available here: {why}");
        return Ok(ExitCode::from(NOT_AVAILABLE));
    }
    let views: Vec<&ModelView> = analysis.models.iter().collect();
    let advice = match &args.drop_ins {
        Some(_) => of_models(&analysis, &views, |id| store.record(id))?,
        None => Vec::new(),
    };
    let written = match &args.drop_ins {
        Some(folder) => write(folder, &advice)?,
        None => Vec::new(),
    };
    say(&args, &Report { analysis: &analysis, advice: &advice }, &written)
}

/// Leaves only the models that were asked for.
fn select(analysis: &mut Analysis, wanted: &[String]) -> Result<(), String> {
    if analysis.fleet.machines.is_empty() {
        return Err("the store holds no record that counts; `ntcopy survey list` shows what it \
                    holds"
            .to_owned());
    }
    let there: Vec<&str> = analysis.models.iter().map(|view| view.signature.as_str()).collect();
    if let Some(missing) = wanted.iter().find(|wanted| !there.contains(&wanted.as_str())) {
        return Err(format!(
            "no record of a CPU {missing}: there are those of {}",
            there.join(", ")
        ));
    }
    if !wanted.is_empty() {
        analysis.models.retain(|view| wanted.contains(&view.signature));
        analysis.unlike.retain(|one| wanted.contains(&one.signature));
    }
    Ok(())
}

/// The drop-in files of one model, and what to do with each.
struct Written {
    signature: String,
    files: Vec<(PathBuf, Cow<'static, str>)>,
}

/// The folder of a model, or the one that all of them lie in.
fn check(folder: &Path, signature: Option<&str>) -> Result<Folder, String> {
    match signature {
        Some(signature) => Folder::check_for("--drop-ins", &folder.join(file_name(signature))),
        None => Folder::check_for("--drop-ins", folder),
    }
}

/// A signature as the name of a folder: it comes from a record, and any user may send a record.
fn file_name(signature: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    signature.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

fn write(folder: &Path, all: &[ModelAdvice]) -> anyhow::Result<Vec<Written>> {
    let mut written = Vec::new();
    for one in all {
        let folder = check(folder, Some(&one.signature)).map_err(anyhow::Error::msg)?;
        // What this machine has set is not what the model's machines have.
        let applied = folder.write_beside(&one.advice, "")?;
        applied.say_stale();
        written.push(Written { signature: one.signature.clone(), files: applied.written });
    }
    Ok(written)
}

fn say(args: &Args, shown: &Report<'_>, written: &[Written]) -> anyhow::Result<ExitCode> {
    if let Some(out) = &args.out {
        let command = report::command_line().into_iter().map(without_secret).collect::<Vec<_>>();
        report::replace(out, &html::html(shown, &command), 0o666)?;
    } else if args.json {
        let mut object = json::object(shown);
        if args.drop_ins.is_some() {
            object["drop_ins"] = written.iter().map(of_files).collect::<Vec<Value>>().into();
        }
        report::print(&format!("{object:#}\n"))?;
    } else {
        report::print(&text::terminal(shown))?;
    }
    if !args.json {
        report::print(&listed(written))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn of_files(one: &Written) -> Value {
    let files = one.files.iter();
    let files: Vec<Value> = files
        .map(|(path, then)| json!({"file": path.display().to_string(), "then": then}))
        .collect();
    json!({"signature": one.signature, "files": files})
}

fn listed(written: &[Written]) -> String {
    let mut text = String::new();
    for one in written.iter().filter(|one| !one.files.is_empty()) {
        if text.is_empty() {
            text.push_str("\nWritten, and read by nothing where they are:\n");
        }
        for (path, _) in &one.files {
            text.push_str(&format!("  {}\n", path.display()));
        }
    }
    text
}

/// A word of the command line, without the password of a URL: a page is shown to others.
fn without_secret(word: String) -> String {
    let (option, value) = match word.split_once('=') {
        Some((option, value)) if option.starts_with("--") => (format!("{option}="), value),
        _ => (String::new(), word.as_str()),
    };
    match Place::parse(value) {
        Ok(place @ Place::Postgres(_)) => format!("{option}{place}"),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_does_not_tell_the_stores_password() {
        let told = |word: &str| without_secret(word.to_owned());
        assert_eq!(told("postgresql://me:secret@db/x?password=s"), "postgresql://me@db/x");
        assert_eq!(told("--store=postgres://me:secret@db/x"), "--store=postgres://me@db/x");
        assert_eq!(told("--out=a=b.html"), "--out=a=b.html");
    }

    #[test]
    fn a_signature_is_a_folder_of_its_own() {
        assert_eq!(file_name("AuthenticAMD-26-2-1"), "AuthenticAMD-26-2-1");
        assert_eq!(file_name("../../etc"), "______etc");
    }
}
