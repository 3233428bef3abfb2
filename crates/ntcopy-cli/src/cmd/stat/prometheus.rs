//! Prometheus' text format, and a file of it for node_exporter's textfile collector.

use std::fmt::Write as _;
use std::process::ExitCode;

use ntcopy::socket::Counters;

use super::{Args, Source};
use crate::cmd::report;

/// Prints the text, or writes it to a file.
pub fn run(args: &Args, source: &Source) -> anyhow::Result<ExitCode> {
    let counters = source.read()?;
    // A wrong question is an error, and nothing is written.
    let ended = if counters.is_none() { source.absence()? } else { ExitCode::SUCCESS };
    let text = text(counters.as_ref(), source.setting());
    match &args.out {
        None => print!("{text}"),
        // Another user's exporter reads it, and never half of it.
        Some(path) => report::replace(path, text, report::READABLE)?,
    }
    Ok(ended)
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
            "net.core.ntcopy: 0 hints are ignored, 1 they are obeyed.",
        );
        let _ = writeln!(out, "ntcopy_setting {setting}");
    }
    let Some(counters) = counters else { return out };
    for (name, help, bytes) in [
        ("ntcopy_bytes_total", "Bytes that were sent on sockets that opted in.", counters.bytes),
        ("ntcopy_hinted_bytes_total", "Bytes of hinted sends.", counters.hinted_bytes),
        (
            "ntcopy_bypassed_bytes_total",
            "Bytes of hinted sends of which at least one piece went past the caches.",
            counters.bypassed_bytes,
        ),
    ] {
        family(&mut out, name, "counter", help);
        let _ = writeln!(out, "{name} {bytes}");
    }
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
