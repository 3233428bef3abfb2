//! How a program is started, and what it says of its version.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::plan::{App, AppMode, Plan};
use crate::experiments::http::run::nginx_settings;
use crate::run::Failure;

/// What memcached may hold, in percent of what is put into it: it must drop nothing.
const ROOM_PERCENT: u64 = 150;
const ROOM_MIB: u64 = 128;
/// The longest value that Redis takes by default.
const REDIS_VALUE_BYTES: u64 = 512 << 20;
/// Seconds that a connection may be silent, and a file not asked for: longer than other modes are
/// measured meanwhile.
const IDLE_S: u64 = 3600;
/// Files that stay open beside the values.
const SPARE_OPEN: u64 = 16;
/// Connections that nginx takes, with room for its own descriptors.
const MOST_CONNECTIONS: u64 = 8192;

/// The command line of a server that listens there, and serves a folder of files, if it does.
pub fn words(
    plan: &Plan,
    mode: AppMode,
    at: &Path,
    served: Option<&Path>,
) -> Result<Vec<OsString>, Failure> {
    let served = served.unwrap_or(at);
    Ok(match plan.app {
        App::Memcached => memcached(plan, at),
        App::Redis => redis(plan, at),
        App::Storaged => storaged(plan, mode, at, served),
        App::Nginx => nginx(plan, at, served)?,
    })
}

fn room_mib(plan: &Plan) -> u64 {
    let data = &plan.data;
    let stored = data.large_values * data.large_bytes + data.small_keys * data.small_bytes;
    (stored >> 20) * ROOM_PERCENT / 100 + ROOM_MIB
}

fn memcached(plan: &Plan, at: &Path) -> Vec<OsString> {
    let (data, room_mib) = (&plan.data, room_mib(plan));
    let largest = (data.large_bytes.max(data.small_bytes) * 2).max(1 << 20);
    let mut words: Vec<OsString> = vec![plan.program.clone().into(), "-s".into(), at.into()];
    words.extend(split(&format!("-t 1 -U 0 -m {room_mib} -I {largest}")));
    if rustix::process::geteuid().is_root() {
        // It would lose root's rights, and with them the way to the folder.
        words.extend(split("-u root"));
    }
    words
}

/// No TCP, nothing written to a disk, and the main thread alone reads and writes.
fn redis(plan: &Plan, at: &Path) -> Vec<OsString> {
    let largest = plan.data.large_bytes.max(plan.data.small_bytes).max(REDIS_VALUE_BYTES);
    let mut words = vec![plan.program.clone().into(), "--unixsocket".into(), at.into()];
    words.extend(["--save", ""].map(OsString::from));
    if let Some(folder) = at.parent() {
        words.extend(["--dir".into(), folder.into()]);
    }
    let options = "--port 0 --appendonly no --io-threads 1 --daemonize no --loglevel warning";
    words.extend(split(options));
    words.extend(["--proto-max-bulk-len".into(), largest.to_string().into()]);
    words
}

/// storaged hints by itself, as its own settings say.
pub fn storaged(plan: &Plan, mode: AppMode, at: &Path, data: &Path) -> Vec<OsString> {
    let sends = if mode.is_hinted() { mode } else { AppMode::Copy };
    let mut words: Vec<OsString> = vec![plan.program.clone().into()];
    words.extend(split(&format!("--log-level warn --workers 1 --mode {sends}")));
    // Each value stays open, so that its bytes are verified once and its pages stay mapped.
    let open = plan.most_values() + SPARE_OPEN;
    words.extend(split(&format!("--idle-timeout {IDLE_S} --open-objects {open}")));
    words.extend(["--listen".into(), format!("unix:{}", at.display()).into()]);
    words.extend(["--data".into(), data.into()]);
    words
}

/// One process, which is the worker, and so ends for certain on a signal. With `sendfile` on,
/// nothing would be copied.
fn nginx(plan: &Plan, at: &Path, root: &Path) -> Result<Vec<OsString>, Failure> {
    let folder = at.with_extension("nginx");
    let failed = || Failure::io(format!("cannot write to {}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed())?;
    let open = plan.most_values() + SPARE_OPEN;
    let http = format!(
        "  sendfile off;\n  open_file_cache max={open} inactive={IDLE_S}s;\n  \
         open_file_cache_valid {IDLE_S}s;\n  server {{ listen unix:{}; root {}; }}\n",
        at.display(),
        root.display()
    );
    let file = folder.join("nginx.conf");
    let settings = nginx_settings(&folder, (1, open + MOST_CONNECTIONS), &http);
    std::fs::write(&file, format!("master_process off;\n{settings}")).map_err(failed())?;
    let mut words: Vec<OsString> = vec![plan.program.clone().into()];
    words.extend(split("-e stderr -p"));
    words.extend([folder.into(), "-c".into(), file.into()]);
    Ok(words)
}

fn split(words: &str) -> impl Iterator<Item = OsString> {
    words.split(' ').map(OsString::from)
}

/// What the program says of its version; nothing if it says nothing.
pub fn version(plan: &Plan) -> String {
    let option = match plan.app {
        App::Nginx => "-v",
        _ => "--version",
    };
    let Ok(said) = Command::new(&plan.program).arg(option).output() else {
        return String::new();
    };
    // nginx says it among errors.
    let text = [said.stdout, said.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}
