//! `ntcopy kernel package`: packages of a kernel, for a machine of one's own.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args as ClapArgs;
use indicatif::HumanDuration;
use ntcopy_kernel::deb::{self, ConfigFrom, Download, PackageOptions, Packaged, Plan, Time};
use ntcopy_kernel::{Error, Release, Tool, progress};
use serde_json::json;

use super::size;

/// Names that are shown of a longer list; --json has them all.
const SHOWN: usize = 8;

pub const HELP: &str = "\
Examples:
  ntcopy kernel package --dry-run             what it would be, and what it would take
  ntcopy kernel package                       of the running kernel's configuration, Linux 7.3
  ntcopy kernel package --release 6.12 --config /boot/config-6.12.48+deb13-amd64 --out debs
  ntcopy kernel package --no-debug-info -j 32

The source is the distribution's linux-source package (or the tree that NTCOPY_LINUX names), the
patches are those of `ntcopy kernel build`, and make bindeb-pkg packs it. It is built as any user,
in the cache; nothing is installed, and what to type next is printed at the end.

A configuration with BTF wants pahole (package dwarves); --no-debug-info does without both. What is
missing here stands in the plan of --dry-run.

Ctrl-C ends it and loses nothing: the same command goes on. `ntcopy kernel clean` removes the
build.

Environment: NTCOPY_LINUX, NTCOPY_CACHE and NTCOPY_SERIES, as for `ntcopy kernel build`";

/// Arguments of `package`.
#[derive(ClapArgs)]
pub struct PackageArgs {
    /// A whole configuration (.config, maybe .gz), or the running kernel's
    #[arg(long, value_name = "FILE|running", default_value = "running")]
    pub config: ConfigFrom,
    /// Which line of Linux
    #[arg(long, value_name = "7.3|6.12", default_value = "7.3", value_parser = parse_release)]
    pub release: Release,
    /// What the kernel's name ends in: lower-case letters, digits, '.', '+' and '-'
    #[arg(long, value_name = "-NAME", default_value = "-ntcopy", allow_hyphen_values = true)]
    pub localversion: String,
    /// Where the packages go
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Compile without information for debuggers, and so without BTF: a fraction of the disk
    #[arg(long)]
    pub no_debug_info: bool,
    /// Go on although the source does not know many of the settings: they are left out
    #[arg(long)]
    pub drop_unknown: bool,
    /// Ask the mirror for a newer source package, and begin anew with it
    #[arg(long)]
    pub refresh: bool,
    /// Compilers at work at once [default: the CPUs of this process]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Say what would be built and what it would take, and build nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn parse_release(text: &str) -> Result<Release, String> {
    match text {
        "7.3" => Ok(Release::Newest),
        "6.12" => Ok(Release::V6_12),
        _ => Err("there are 7.3 and 6.12".into()),
    }
}

/// Runs it.
pub fn run(args: PackageArgs) -> Result<ExitCode, Error> {
    let mut options = PackageOptions::from_env(args.release, args.config)?;
    options.local_version = args.localversion;
    options.debug_info = !args.no_debug_info;
    options.drop_unknown = args.drop_unknown;
    options.out = args.out;
    options.base.refresh = args.refresh;
    if let Some(jobs) = args.jobs {
        options.base.jobs = jobs.into();
    }
    let mut progress = progress::for_stderr();
    if args.dry_run {
        let plan = deb::plan(&options, progress.as_mut())?;
        match args.json {
            true => println!("{:#}", json!({ "plan": plan })),
            false => print!("{}", plan_text(&plan, &options)),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut told = None;
    let packaged = deb::package(&options, progress.as_mut(), &mut |plan| {
        // Standard output is for what came of it.
        eprint!("{}", plan_text(plan, &options));
        told = Some(plan.clone());
    })?;
    match args.json {
        true => println!("{:#}", json!({ "plan": told, "packaged": packaged })),
        false => print!("{}", packaged_text(&packaged)),
    }
    Ok(ExitCode::SUCCESS)
}

/// A line of a plan.
fn row(name: &str, text: &str) -> String {
    format!("{name:<15} {text}\n")
}

/// The first of many names.
fn some(names: &[String]) -> String {
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more (--json has them)", names.len() - SHOWN));
    }
    text
}

/// A plan, for people.
fn plan_text(plan: &Plan, options: &PackageOptions) -> String {
    let mut text = match (&plan.version, &plan.source) {
        (Some(version), Some(source)) => row(
            "kernel",
            &format!(
                "Linux {version}{}, {} patches on {source}",
                options.local_version, plan.patches
            ),
        ),
        _ => row(
            "kernel",
            "not known yet: the source is not in the cache, and gets downloaded first",
        ),
    };
    text += &row(
        "configuration",
        &format!(
            "{}: {} settings built in, {} modules",
            plan.config.display(),
            plan.builtin,
            plan.modules
        ),
    );
    if !plan.missing.is_empty() {
        text += &row("missing", &missing_text(&plan.missing));
    }
    if let Some(download) = &plan.download {
        text += &row("download", &download_text(download));
    }
    for change in &plan.changes {
        text += &row(
            "changed",
            &format!("{}: {} is {} now ({})", change.symbol, change.was, change.now, change.why),
        );
    }
    if !plan.unknown.is_empty() {
        text += &row("not known to it", &some(&plan.unknown));
    }
    text += &match (plan.objects, plan.compiled) {
        (Some(objects), 0) => row("to compile", &format!("about {objects} objects")),
        (Some(objects), compiled) => {
            row("to compile", &format!("about {objects} objects, {compiled} of them done before"))
        }
        (None, _) => row("to compile", "not known before the source is here"),
    };
    let room = &plan.room;
    text += &row(
        "disk",
        &format!(
            "{} needed below {}, {} free ({})",
            size(room.needed_bytes),
            plan.folder.display(),
            size(room.free_bytes),
            room.basis
        ),
    );
    text += &row("time", &time_text(&plan.time));
    for note in &plan.notes {
        text += &row("note", note);
    }
    text
}

/// What has to be installed first.
fn missing_text(missing: &[Tool]) -> String {
    let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let mut packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    packages.sort_unstable();
    packages.dedup();
    format!("{}; as root: apt-get install {}", programs.join(", "), packages.join(" "))
}

/// What compiling takes, as far as it is known before it has begun.
fn time_text(time: &Time) -> String {
    let Time { seconds, object_ms, basis } = time;
    match seconds {
        Some(seconds) => {
            let about = HumanDuration(Duration::from_secs(*seconds));
            format!("about {about} of compiling, {object_ms} ms an object ({basis})")
        }
        None => {
            format!("not known before the source is here; about {object_ms} ms an object ({basis})")
        }
    }
}

/// What has to come first.
fn download_text(download: &Download) -> String {
    let Download { name, version, size_bytes, basis } = download;
    let version = version.as_ref().map_or(String::new(), |version| format!(" {version}"));
    let bytes = size_bytes.map_or(String::new(), |bytes| format!(", {}", size(bytes)));
    format!("{name}{version}{bytes} ({basis})")
}

/// What came of it, for people.
fn packaged_text(packaged: &Packaged) -> String {
    let mut text = String::new();
    for deb in &packaged.debs {
        text += &format!("{} ({})\n", deb.path.display(), size(deb.size_bytes));
    }
    if !packaged.lost.is_empty() {
        text += &format!(
            "\n{} settings could not stay, as what they depend on is not there: {}\n",
            packaged.lost.len(),
            some(&packaged.lost)
        );
    }
    let next = &packaged.next;
    for (title, commands) in [
        ("Install, on the machine that it is for:", &next.install),
        ("Boot it once; the kernel of today stays the default:", &next.boot_once),
        ("Go back, and take it all away:", &next.back),
    ] {
        text += &format!("\n{title}\n");
        for command in commands {
            text += &format!("  {command}\n");
        }
    }
    text += "\nIn it, `ntcopy probe` says that the kernel has MSG_NTCOPY.\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_names_is_cut_and_says_so() {
        let names: Vec<String> = (0..10).map(|n| format!("A{n}")).collect();
        assert_eq!(some(&names[..2]), "A0, A1");
        assert!(some(&names).ends_with("A7 and 2 more (--json has them)"));
    }

    #[test]
    fn a_time_and_a_download_say_what_they_rest_on() {
        let basis = "by a guess".to_owned();
        let time = Time { seconds: Some(840), object_ms: 150, basis: basis.clone() };
        assert_eq!(
            time_text(&time),
            "about 14 minutes of compiling, 150 ms an object (by a guess)"
        );
        let unknown = time_text(&Time { seconds: None, ..time });
        assert!(unknown.starts_with("not known before the source is here; about 150 ms an object"));
        let download = Download {
            name: "linux-source-6.12".into(),
            version: Some("6.12.117-1".into()),
            size_bytes: Some(153_476_148),
            basis,
        };
        let told = download_text(&download);
        assert!(told.starts_with("linux-source-6.12 6.12.117-1, 1"), "{told}");
        let unknown = Download { version: None, size_bytes: None, ..download };
        assert_eq!(download_text(&unknown), "linux-source-6.12 (by a guess)");
    }

    #[test]
    fn there_are_two_lines_of_linux() {
        assert_eq!(parse_release("6.12"), Ok(Release::V6_12));
        assert!(parse_release("5.4").is_err());
    }
}
