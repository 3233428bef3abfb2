//! How a program is started, and what it says of its version.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::ask::{App, Plan};

/// What memcached may hold, by what is put into it: it must drop nothing.
const ROOM_PERCENT: u64 = 150;
const ROOM_MIB: u64 = 128;
/// The longest value that Redis takes if it is not told otherwise.
const REDIS_VALUE_BYTES: u64 = 512 << 20;

/// The command line of a server that listens there.
pub fn words(plan: &Plan, at: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![plan.program.clone().into()];
    words.extend(match plan.app {
        App::Memcached => memcached(plan, at),
        App::Redis => redis(plan, at),
    });
    words
}

fn memcached(plan: &Plan, at: &Path) -> Vec<OsString> {
    let data = &plan.data;
    let stored = data.large_values * data.large_bytes + data.small_keys * data.small_bytes;
    let room_mib = (stored >> 20) * ROOM_PERCENT / 100 + ROOM_MIB;
    let largest = (data.large_bytes.max(data.small_bytes) * 2).max(1 << 20);
    let mut words: Vec<OsString> = vec!["-s".into(), at.into()];
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
    let mut words: Vec<OsString> = vec!["--unixsocket".into(), at.into()];
    words.extend(["--save", ""].map(OsString::from));
    if let Some(folder) = at.parent() {
        words.extend(["--dir".into(), folder.into()]);
    }
    let options = "--port 0 --appendonly no --io-threads 1 --daemonize no --loglevel warning";
    words.extend(split(options));
    words.extend(["--proto-max-bulk-len".into(), largest.to_string().into()]);
    words
}

fn split(words: &str) -> impl Iterator<Item = OsString> {
    words.split(' ').map(OsString::from)
}

/// What the program says of its version; nothing if it says nothing.
pub fn version(plan: &Plan) -> String {
    let Ok(said) = Command::new(&plan.program).arg("--version").output() else {
        return String::new();
    };
    let text = String::from_utf8_lossy(&said.stdout);
    text.lines().next().unwrap_or_default().trim().to_owned()
}
