//! How a program is started, and what it says of its version.

use std::path::Path;
use std::process::Command;

use super::plan::{App, AppMode, Plan};
use crate::experiments::http::run::{nginx_settings, storaged};
use crate::experiments::turns::program::Endpoint;
use crate::run::Failure;

/// What memcached may hold, in percent of what is put into it: it must drop nothing.
const ROOM_PERCENT: u64 = 150;
const ROOM_MIB: u64 = 128;
/// The longest value that Redis takes by default.
const REDIS_VALUE_BYTES: u64 = 512 << 20;
/// Seconds that a file may not be asked for: longer than other modes are measured meanwhile.
const IDLE_S: u64 = 3600;
/// Files that stay open beside the values.
const SPARE_OPEN: u64 = 16;
/// Connections that nginx takes, with room for its own descriptors.
const MOST_CONNECTIONS: u64 = 8192;

/// The command line of a server that listens there, and serves a folder of files, if it does.
pub fn command(
    plan: &Plan,
    mode: AppMode,
    at: &Path,
    served: Option<&Path>,
) -> Result<Command, Failure> {
    let served = served.unwrap_or(at);
    Ok(match plan.app {
        App::Memcached => memcached(plan, at),
        App::Redis => redis(plan, at),
        // It hints by itself, as its own settings say.
        App::Storaged => {
            let sends = if mode.is_hinted() { mode } else { AppMode::Copy };
            let at = Endpoint::Unix(at.to_owned());
            storaged(sends.as_str(), (1, plan.most_values()), served, &at)?
        }
        App::Nginx => nginx(plan, at, served)?,
    })
}

fn memcached(plan: &Plan, at: &Path) -> Command {
    let data = &plan.data;
    let stored = data.large_values * data.large_bytes + data.small_keys * data.small_bytes;
    let room_mib = (stored >> 20) * ROOM_PERCENT / 100 + ROOM_MIB;
    let largest = (data.large_bytes.max(data.small_bytes) * 2).max(1 << 20);
    let mut command = Command::new(&plan.program);
    command.arg("-s").arg(at);
    command.args(format!("-t 1 -U 0 -m {room_mib} -I {largest}").split(' '));
    if rustix::process::geteuid().is_root() {
        // It would lose root's rights, and with them the way to the folder.
        command.args(["-u", "root"]);
    }
    command
}

/// No TCP, nothing written to a disk, and the main thread alone reads and writes.
fn redis(plan: &Plan, at: &Path) -> Command {
    let largest = plan.data.large_bytes.max(plan.data.small_bytes).max(REDIS_VALUE_BYTES);
    let mut command = Command::new(&plan.program);
    command.arg("--unixsocket").arg(at).args(["--save", ""]);
    if let Some(folder) = at.parent() {
        command.arg("--dir").arg(folder);
    }
    let options = "--port 0 --appendonly no --io-threads 1 --daemonize no --loglevel warning";
    command.args(options.split(' ')).arg("--proto-max-bulk-len").arg(largest.to_string());
    command
}

/// One process, which is the worker, and so ends for certain on a signal. With `sendfile` on,
/// nothing would be copied.
fn nginx(plan: &Plan, at: &Path, root: &Path) -> Result<Command, Failure> {
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
    let mut command = Command::new(&plan.program);
    command.args(["-e", "stderr", "-p"]).arg(folder).arg("-c").arg(file);
    Ok(command)
}

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
