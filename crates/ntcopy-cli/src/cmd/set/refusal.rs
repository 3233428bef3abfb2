//! Why the descriptors of a process may not be copied, and who may.

use std::os::unix::fs::MetadataExt as _;
use std::{fs, io};

use ntcopy_inflight::{Pid, Process};
use ntcopy_record::foreign;

/// A process as it is named to people.
pub fn named(process: &Process) -> String {
    format!("{} (pid {})", foreign::visible(&process.name), process.pid)
}

pub fn of(process: &Process, error: &io::Error) -> String {
    format!("{}: {}", named(process), why(process.pid, error))
}

fn why(pid: Pid, error: &io::Error) -> String {
    let is_denied = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
    if !is_denied {
        return error.to_string();
    }
    let is_root = rustix::process::geteuid().is_root();
    let yama = yama();
    let owner = fs::metadata(format!("/proc/{pid}")).map(|folder| folder.uid());
    let is_others = owner.is_ok_and(|owner| owner != rustix::process::geteuid().as_raw());
    match yama {
        3 => "kernel.yama.ptrace_scope is 3: nobody may".to_owned(),
        _ if is_other_namespace(pid) && !is_root => {
            "it is in a user namespace of its own, as in a container: root may".to_owned()
        }
        _ if is_others && !is_root => "it is another user's: root may".to_owned(),
        1 | 2 if !is_root => format!("kernel.yama.ptrace_scope is {yama}: root may"),
        _ if !is_root => "it has more rights than its user: root may".to_owned(),
        _ => "this root lacks CAP_SYS_PTRACE, as in a container, or a security module forbids it"
            .to_owned(),
    }
}

/// Who may look into other processes, where that security module is there.
fn yama() -> u8 {
    let text = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

fn is_other_namespace(pid: Pid) -> bool {
    let of = |who: &str| fs::read_link(format!("/proc/{who}/ns/user"));
    matches!((of("self"), of(&pid.to_string())), (Ok(ours), Ok(theirs)) if ours != theirs)
}
