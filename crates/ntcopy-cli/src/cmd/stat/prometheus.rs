//! Prometheus' text format, and a file of it for node_exporter's textfile collector.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy::socket::Counters;
use ntcopy_record::foreign;

use super::{Args, INTERVAL, Source, Ticker};

/// Where the text goes.
enum To<'a> {
    Stdout,
    File(&'a PathBuf),
}

impl To<'_> {
    fn put(&self, text: &str) -> anyhow::Result<()> {
        match self {
            To::Stdout => {
                print!("{text}");
                Ok(())
            }
            To::File(path) => {
                replace(path, text).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }
}

/// Prints the text, or writes it to a file, once or at each interval.
pub fn run(args: &Args, source: &Source) -> anyhow::Result<ExitCode> {
    let to = args.out.as_ref().map_or(To::Stdout, To::File);
    let repeats = args.interval.is_some() || args.count.is_some();
    if repeats && matches!(to, To::Stdout) {
        eprintln!("ntcopy: --prometheus prints once; --out FILE writes at each --interval");
        return Ok(ExitCode::from(2));
    }
    if !repeats {
        return write(&to, source).map(|absent| absent.unwrap_or(ExitCode::SUCCESS));
    }
    let mut ticker =
        Ticker::start(args.interval.unwrap_or(INTERVAL)).context("cannot take over Ctrl-C")?;
    let mut written = 0;
    loop {
        if let Some(absent) = write(&to, source)? {
            return Ok(absent);
        }
        written += 1;
        if args.count.is_some_and(|count| written >= count) || !ticker.wait()? {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Writes what is counted now; what to end with where nothing counts.
fn write(to: &To, source: &Source) -> anyhow::Result<Option<ExitCode>> {
    let reading = source.read()?;
    // A wrong question is an error, and nothing is written.
    let absent = if reading.is_none() { Some(source.absence()?) } else { None };
    to.put(&text(reading.as_ref().map(|reading| &reading.counters), source.setting()))?;
    Ok(absent)
}

/// The file has the old text or the new one, whole, for whoever reads it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut aside = tempfile::Builder::new()
        .prefix(".ntcopy-stat-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    // Whatever the umask, another user's exporter reads it.
    aside.as_file().set_permissions(Permissions::from_mode(0o644))?;
    aside.write_all(text.as_bytes())?;
    aside.persist(path)?;
    Ok(())
}

/// What Prometheus reads; without counters, that there are none.
fn text(counters: Option<&Counters>, setting: Option<u8>) -> String {
    let mut out = String::new();
    family(
        &mut out,
        "ntcopy_available",
        "gauge",
        "Whether this kernel counts hinted sends: by MSG_NTCOPY or the module 1, else 0.",
    );
    let _ = writeln!(out, "ntcopy_available {}", u8::from(counters.is_some()));
    if let Some(setting) = setting {
        family(
            &mut out,
            "ntcopy_setting",
            "gauge",
            "net.core.ntcopy: 0 hints are ignored, 1 the rule decides, 2 hints are obeyed.",
        );
        let _ = writeln!(out, "ntcopy_setting {setting}");
    }
    if let Some(counters) = counters {
        const NAME: &str = "ntcopy_hinted_bytes_total";
        family(
            &mut out,
            NAME,
            "counter",
            "Bytes that hinted sends accepted: copied non-temporally, or the reason why not.",
        );
        for (name, bytes) in counters.as_map() {
            let outcome = escaped(name.strip_suffix("_bytes").unwrap_or(name));
            let _ = writeln!(out, "{NAME}{{outcome=\"{outcome}\"}} {bytes}");
        }
    }
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A label's value; a kernel of another day may count under any name.
fn escaped(value: &str) -> String {
    foreign::visible(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::super::reading::testing::counters;
    use super::*;

    #[test]
    fn every_counter_is_an_outcome_of_one_family() {
        let said = text(Some(&counters("nontemporal_bytes 7\nnew\"reason 5\n")), Some(1));
        assert_eq!(
            said.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(),
            [
                "ntcopy_available 1",
                "ntcopy_setting 1",
                "ntcopy_hinted_bytes_total{outcome=\"new\\\"reason\"} 5",
                "ntcopy_hinted_bytes_total{outcome=\"nontemporal\"} 7",
            ]
        );
    }

    #[test]
    fn a_kernel_without_counters_says_so_and_has_no_stale_ones() {
        let said = text(None, None);
        assert!(said.ends_with("\nntcopy_available 0\n"), "{said}");
        assert!(!said.contains("hinted_bytes"), "{said}");
    }

    #[test]
    fn the_file_is_replaced_whole_and_readable_by_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ntcopy.prom");
        for text in ["first and longer\n", "second\n"] {
            replace(&path, text).expect("it is written");
            assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
        }
        let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
        assert!(replace(&folder.path().join("none/ntcopy.prom"), "").is_err());
    }
}
