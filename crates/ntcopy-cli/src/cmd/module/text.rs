//! What `ntcopy module status` prints: for people, and as one JSON object.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ntcopy::socket::{Errno, OtherSeries};
use ntcopy_kernel::module::check_release;
use ntcopy_record::units::count;
use serde::Serialize;

use super::Found;

fn row(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "  {name:<18}{value}");
}

pub fn render(found: &Found) -> String {
    let status = &found.status;
    let mut out = format!("{}\n\n", verdict(found));
    let path = |path: &Option<PathBuf>| match path {
        Some(path) => path.display().to_string(),
        None => "not here".to_owned(),
    };
    row(&mut out, "kernel", &status.release);
    row(&mut out, "headers", &path(&status.headers));
    row(&mut out, "ntcopy.ko", &path(&status.file));
    if let Some(loaded) = &status.loaded {
        row(&mut out, "loaded", &format!("version {}", loaded.version.as_deref().unwrap_or("?")));
        device(&mut out, found);
    }
    out
}

/// What the module's device says.
fn device(out: &mut String, found: &Found) {
    let sockets = |number: u64| count(number as usize, "socket");
    match &found.info {
        Ok(Some(info)) => {
            row(out, "interface", &format!("series {}", info.series));
            row(out, "attached", &sockets(info.attached));
            row(out, "detached, open", &sockets(info.lingering));
        }
        Ok(None) => row(out, "attached", "unknown: there is no /dev/ntcopy"),
        Err(Errno::ACCESS) => {
            row(out, "attached", "unknown: /dev/ntcopy is for root, and for members of its group");
        }
        Err(errno) => row(out, "attached", &format!("unknown: /dev/ntcopy: {errno}")),
    }
    for (pid, name) in &found.holders {
        row(out, "open in", &format!("process {pid} ({name})"));
    }
}

/// The first line: how things are, and what to do next.
fn verdict(found: &Found) -> String {
    let status = &found.status;
    if status.has_series {
        return "This kernel knows MSG_NTCOPY itself. It needs no module.".into();
    }
    if status.loaded.is_some() {
        let info = found.info.as_ref().ok().and_then(Option::as_ref);
        return match info.and_then(OtherSeries::of) {
            None => "The module is loaded.".into(),
            Some(other) => format!("No use can be made of the module: {other}."),
        };
    }
    if !status.takes_modules {
        return "This kernel takes no modules.".into();
    }
    if let Err(error) = check_release(&status.release) {
        return format!("The module is not loaded: {error}.");
    }
    let next = match (&status.file, &status.headers) {
        (Some(_), _) => "sudo ntcopy module load",
        (None, Some(_)) => "ntcopy module build",
        (None, None) => "install the kernel's headers, then ntcopy module build",
    };
    format!("The module is not loaded. Next: {next}")
}

/// What `--json` prints.
#[derive(Serialize)]
pub struct Object<'a> {
    kernel: Kernel<'a>,
    module: Option<Module<'a>>,
    headers: Option<&'a Path>,
    file: Option<&'a Path>,
}

#[derive(Serialize)]
struct Kernel<'a> {
    release: &'a str,
    has_msg_ntcopy: bool,
    takes_modules: bool,
}

/// What is loaded; what its device says, where that could be asked.
#[derive(Serialize)]
struct Module<'a> {
    version: Option<&'a str>,
    series: Option<u32>,
    references: Option<u64>,
    attached: Option<u64>,
    lingering: Option<u64>,
    holders: Vec<Holder<'a>>,
}

#[derive(Serialize)]
struct Holder<'a> {
    pid: u32,
    name: &'a str,
}

pub fn object(found: &Found) -> Object<'_> {
    let status = &found.status;
    let info = found.info.as_ref().ok().and_then(Option::as_ref);
    let module = status.loaded.as_ref().map(|loaded| Module {
        version: loaded.version.as_deref(),
        series: info.map(|info| info.series),
        references: loaded.references,
        attached: info.map(|info| info.attached),
        lingering: info.map(|info| info.lingering),
        holders: found.holders.iter().map(|(pid, name)| Holder { pid: *pid, name }).collect(),
    });
    let kernel = Kernel {
        release: &status.release,
        has_msg_ntcopy: status.has_series,
        takes_modules: status.takes_modules,
    };
    Object { kernel, module, headers: status.headers.as_deref(), file: status.file.as_deref() }
}
