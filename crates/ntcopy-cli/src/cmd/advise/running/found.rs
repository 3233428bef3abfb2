//! Which processes are meant, and whether they may be looked at.

use std::collections::HashSet;
use std::io;

use ntcopy_inflight::processes;
use ntcopy_inflight::{Diagnostics, Pid, Process, Program};
use ntcopy_record::foreign;

use super::Options;

pub struct Found {
    pub diagnostics: Diagnostics,
    pub programs: Vec<Program>,
    /// What is not seen, and why.
    pub notes: Vec<String>,
}

/// The programs, or why there is nothing to be seen of them.
pub fn find(options: &Options) -> Result<Found, String> {
    let all = processes::all();
    if options.all {
        return every(all);
    }
    let (name, chosen) = match &options.service {
        Some(service) => of_service(service, all)?,
        None => of_pids(&options.pid, &all)?,
    };
    let mut notes = Vec::new();
    let (seen, unseen) = split(chosen);
    if let Some((process, error)) = unseen.first() {
        let why = not_permitted(process, error);
        let is_named = unseen.iter().any(|(process, _)| options.pid.contains(&process.pid));
        if is_named || seen.is_empty() {
            return Err(why);
        }
        notes.push(format!("{} of its processes are not seen: {why}", unseen.len()));
    }
    let Some(first) = seen.first().cloned() else {
        return Err(format!("{name} has no process"));
    };
    let diagnostics = open(&first)?;
    let namespace = namespace(first.pid);
    let (here, elsewhere): (Vec<Process>, Vec<Process>) =
        seen.into_iter().partition(|process| self::namespace(process.pid) == namespace);
    if !elsewhere.is_empty() {
        notes.push(format!(
            "{} of its processes are in another network namespace and not seen: look at them by \
             their own --pid",
            elsewhere.len()
        ));
    }
    if let Some(inside) = processes::pid_in_container(first.pid) {
        notes.push(format!(
            "{} runs in a container, where it is pid {inside}; what is seen is the network \
             namespace that it is in",
            name_and_pid(&first)
        ));
    }
    Ok(Found { diagnostics, programs: vec![Program { name, processes: here }], notes })
}

/// Each process for itself.
fn every(all: Vec<Process>) -> Result<Found, String> {
    let diagnostics = Diagnostics::here().map_err(|error| unavailable(&error))?;
    let own = namespace(std::process::id());
    let total = all.len();
    let (seen, unseen) = split(all);
    let (here, elsewhere): (Vec<Process>, Vec<Process>) = seen
        .into_iter()
        .filter(|process| process.pid != std::process::id())
        .partition(|process| namespace(process.pid) == own);
    let mut notes = Vec::new();
    if !unseen.is_empty() {
        notes.push(format!(
            "{} of {total} processes are other users', and root's to look at",
            unseen.len()
        ));
    }
    if !elsewhere.is_empty() {
        notes.push(format!(
            "{} processes are in network namespaces of their own, as in containers, and not seen: \
             look at them by --pid",
            elsewhere.len()
        ));
    }
    let has_sockets = |process: &Process| {
        processes::descriptors(process.pid).is_ok_and(|found| !found.sockets.is_empty())
    };
    let programs: Vec<Program> = here
        .into_iter()
        .filter(has_sockets)
        .map(|process| Program { name: process.name.clone(), processes: vec![process] })
        .collect();
    if programs.is_empty() {
        return Err(nothing_to_see(&notes));
    }
    Ok(Found { diagnostics, programs, notes })
}

/// Why there is no process to be told of.
fn nothing_to_see(notes: &[String]) -> String {
    let mut why = "no process that this user may look at has a socket".to_owned();
    for note in notes {
        why.push_str("; ");
        why.push_str(note);
    }
    if !rustix::process::geteuid().is_root() {
        why.push_str(": sudo ntcopy advise --all shows those of all users");
    }
    why
}

fn of_pids(pids: &[Pid], all: &[Process]) -> Result<(String, Vec<Process>), String> {
    let mut chosen: Vec<Process> = Vec::new();
    for pid in pids {
        let found = all.iter().find(|process| process.pid == *pid);
        chosen.push(found.ok_or_else(|| format!("there is no process {pid}"))?.clone());
    }
    let name = chosen.first().map(|process| process.name.clone()).unwrap_or_default();
    let mut taken: HashSet<Pid> = chosen.iter().map(|process| process.pid).collect();
    let mut at = 0;
    while let Some(parent) = chosen.get(at).map(|process| process.pid) {
        let is_new = |process: &&Process| process.parent == parent && taken.insert(process.pid);
        chosen.extend(all.iter().filter(is_new).cloned().collect::<Vec<Process>>());
        at += 1;
    }
    Ok((name, chosen))
}

fn of_service(service: &str, all: Vec<Process>) -> Result<(String, Vec<Process>), String> {
    let unit =
        if service.contains('.') { service.to_owned() } else { format!("{service}.service") };
    let chosen: Vec<Process> =
        all.into_iter().filter(|process| processes::is_of_unit(process.pid, &unit)).collect();
    if chosen.is_empty() {
        return Err(format!("no process is in a control group {unit}: does systemd run it here?"));
    }
    Ok((unit, chosen))
}

/// Those whose descriptors may be read, and the others with why not. Who ended meanwhile is in
/// neither.
fn split(all: Vec<Process>) -> (Vec<Process>, Vec<(Process, io::Error)>) {
    let (mut seen, mut unseen) = (Vec::new(), Vec::new());
    for process in all {
        match processes::may_be_read(process.pid) {
            Ok(()) => seen.push(process),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                unseen.push((process, error));
            }
            Err(_) => {}
        }
    }
    (seen, unseen)
}

/// Diagnostics of the namespace that a process is in.
fn open(process: &Process) -> Result<Diagnostics, String> {
    let namespace =
        processes::other_namespace(process.pid).map_err(|error| not_permitted(process, &error))?;
    match namespace {
        None => Diagnostics::here().map_err(|error| unavailable(&error)),
        Some(namespace) => Diagnostics::of(&namespace).map_err(|error| {
            format!(
                "{} is in a network namespace of its own, as in a container, and only root may \
                 look into it ({error}): {}",
                name_and_pid(process),
                as_root(process)
            )
        }),
    }
}

fn namespace(pid: Pid) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|found| found.ino())
}

fn unavailable(error: &io::Error) -> String {
    format!("this kernel has no socket diagnostics (CONFIG_UNIX_DIAG, CONFIG_INET_DIAG): {error}")
}

fn not_permitted(process: &Process, error: &io::Error) -> String {
    format!(
        "{} may not be looked at by this user ({error}): {}",
        name_and_pid(process),
        as_root(process)
    )
}

/// The command that may, or why not even root may.
fn as_root(process: &Process) -> String {
    if rustix::process::geteuid().is_root() {
        "this root lacks a capability, as in a container, or a security module forbids it"
            .to_owned()
    } else {
        format!("sudo ntcopy advise --pid {}", process.pid)
    }
}

fn name_and_pid(process: &Process) -> String {
    format!("{} (pid {})", foreign::visible(&process.name), process.pid)
}
