//! How a program is started, and what it says of its version.

use std::path::Path;
use std::process::Command;

use super::plan::Plan;

/// What memcached may hold, in percent of what is put into it: it must drop nothing.
const ROOM_PERCENT: u64 = 150;
const ROOM_MIB: u64 = 128;

/// The command line of a server that listens there.
pub fn command(plan: &Plan, at: &Path) -> Command {
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

pub fn version(plan: &Plan) -> String {
    let Ok(said) = Command::new(&plan.program).arg("--version").output() else {
        return String::new();
    };
    String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().trim().to_owned()
}
