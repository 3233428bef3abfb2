//! How long a program's sends are, by the kernel's tracepoint `sock:sock_send_length`.
//!
//! The events go to a buffer of their own (an instance of tracefs) that keeps the latest, and are
//! read once. Nothing else that traces sees them, and nothing is left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::processes::{Pid, threads};

/// Where tracefs is, by itself or within debugfs.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const EVENT: &str = "events/sock/sock_send_length";
/// Events that are read at most: some seconds of a busy program.
const MOST_SENDS: usize = 200_000;

/// Sends on unix and internet sockets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lengths {
    /// In the order in which they came. Of one that was cut short, what was sent.
    pub bytes: Vec<u64>,
}

impl Lengths {
    pub fn total_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// The bytes of sends that have so many and more.
    pub fn bytes_from(&self, least: u64) -> u64 {
        self.bytes.iter().filter(|bytes| **bytes >= least).sum()
    }

    fn add(&mut self, line: &str) {
        let value = |name: &str| {
            let (_, rest) = line.split_once(name)?;
            rest.trim_start_matches([' ', '=']).split([' ', ',']).next()
        };
        // Families that the kernel's own text has no name for are numbers.
        let is_socket = matches!(
            value("family"),
            Some("AF_INET" | "AF_INET6" | "AF_UNIX" | "0x1" | "0x2" | "0xa")
        );
        let length = value(" length").and_then(|text| text.parse::<u64>().ok());
        self.bytes.extend(length.filter(|bytes| is_socket && *bytes > 0));
    }
}

/// The tracepoint, switched on for some processes until it is dropped.
pub struct Tracing {
    instance: PathBuf,
}

impl Tracing {
    /// Switches it on, or says why it cannot be.
    pub fn start(pids: &[Pid]) -> Result<Tracing, String> {
        let root = TRACEFS.map(Path::new).into_iter().find(|root| root.join("instances").exists());
        let instances = match root {
            Some(root) => root.join("instances"),
            None => return Err(without_tracefs()),
        };
        let instance = instances.join(format!("ntcopy-{}", std::process::id()));
        let failed = |error: io::Error| {
            format!("the kernel's tracing cannot be used ({}: {error})", instances.display())
        };
        fs::create_dir(&instance).map_err(failed)?;
        // From here on it is removed whatever happens.
        let tracing = Tracing { instance };
        if !tracing.instance.join(EVENT).exists() {
            return Err(
                "this kernel has no tracepoint sock:sock_send_length (since Linux 6.3)".to_owned()
            );
        }
        tracing.switch_on(pids).map_err(failed)?;
        Ok(tracing)
    }

    fn switch_on(&self, pids: &[Pid]) -> io::Result<()> {
        let threads = pids.iter().flat_map(|pid| threads(*pid));
        let threads: Vec<String> = threads.map(|thread| thread.to_string()).collect();
        self.write("options/event-fork", "1")?;
        self.write("set_event_pid", &threads.join(" "))?;
        self.write(&format!("{EVENT}/enable"), "1")
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        // It is there already, and tracefs makes none.
        OpenOptions::new().write(true).open(self.instance.join(name))?.write_all(text.as_bytes())
    }

    /// Switches it off and gives what came.
    pub fn finish(self) -> io::Result<Lengths> {
        self.write(&format!("{EVENT}/enable"), "0")?;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        lengths(&mut options.open(self.instance.join("trace_pipe"))?)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // What cannot be removed is said by nobody: it costs a buffer until the next boot.
        let _ = self.write(&format!("{EVENT}/enable"), "0");
        let _ = fs::remove_dir(&self.instance);
    }
}

fn without_tracefs() -> String {
    // Only root may look into the folder.
    let is_hidden = TRACEFS
        .iter()
        .any(|root| fs::read_dir(root).is_err_and(|e| e.kind() == ErrorKind::PermissionDenied));
    match is_hidden {
        true => "only root may read the kernel's tracepoints".to_owned(),
        false => "this kernel has no tracepoints, or tracefs is not mounted".to_owned(),
    }
}

/// Reads lines until there are none.
fn lengths(pipe: &mut File) -> io::Result<Lengths> {
    let (mut lengths, mut rest, mut chunk) = (Lengths::default(), Vec::new(), [0; 16 << 10]);
    while lengths.bytes.len() < MOST_SENDS {
        match pipe.read(&mut chunk) {
            Ok(0) => break,
            Ok(got) => rest.extend_from_slice(&chunk[..got]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(&rest[..end]).into_owned();
            text.lines().for_each(|line| lengths.add(line));
            rest.drain(..=end);
        }
    }
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_sockets_that_are_hinted_count() {
        let mut lengths = Lengths::default();
        for line in [
            " server-77 [000] ..... 1.5: sock_send_length: sk address = 0000000012345678, family = \
             0x1 protocol = 0, length = 1048576, error = 0, flags = 0x0",
            " server-77 [001] ..... 1.6: sock_send_length: sk address = 0000000012345678, family = \
             AF_INET6 protocol = IPPROTO_TCP, length = 100, error = 0, flags = 0x40",
            " server-77 [001] ..... 1.7: sock_send_length: sk address = 0000000012345678, family = \
             AF_INET protocol = IPPROTO_TCP, length = 0, error = -11, flags = 0x40",
            " server-77 [001] ..... 1.8: sock_send_length: sk address = 0000000012345678, family = \
             0x10 protocol = 4, length = 72, error = 0, flags = 0x0",
            "CPU:1 [LOST 12 EVENTS]",
        ] {
            lengths.add(line);
        }
        assert_eq!(lengths.bytes, [1 << 20, 100]);
        assert_eq!((lengths.total_bytes(), lengths.bytes_from(4096)), ((1 << 20) + 100, 1 << 20));
    }

    #[test]
    fn what_cannot_be_traced_says_why() {
        // Elsewhere it works, and is switched off again.
        if let Err(why) = Tracing::start(&[std::process::id()]) {
            assert!(why.contains("trac"), "{why}");
        }
        let left = format!("/sys/kernel/tracing/instances/ntcopy-{}", std::process::id());
        assert!(!Path::new(&left).exists());
    }
}
