//! What a process holds, as the kernel has it, and what it says of itself.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use std::{fmt, fs, io};

/// What the anonymous memory of a daemon at rest may grow by, from one rest to another.
///
/// The first rest comes after a whole storm, so the allocator's arenas and the daemons' slabs and
/// buffers have been as large as the same number of clients makes them. What is left is how
/// fragmented the freed memory is: over ten minutes proxyd stayed between 2.8 and 3.2 MiB. A leak
/// rises with every exchange, and ten minutes have some 350,000; so this bound notices 24 bytes
/// of each of them, and a buffer of 64 KiB that is lost once in 2,700.
pub const GROWTH_BYTES_MAX: u64 = 8 << 20;

/// Descriptors by kind, and memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    pub kinds: BTreeMap<String, usize>,
    /// Anonymous memory that is resident.
    pub anon_bytes: u64,
}

impl Usage {
    /// The usage of a running process.
    ///
    /// # Errors
    ///
    /// The process is not there, or is another user's.
    pub fn of(pid: u32) -> io::Result<Usage> {
        let mut kinds = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            // It may be gone by now.
            let Ok(target) = fs::read_link(entry?.path()) else { continue };
            *kinds.entry(kind(&target.to_string_lossy())).or_default() += 1;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let kib = kib.ok_or_else(|| io::Error::other("/proc/PID/status has no RssAnon"))?;
        Ok(Usage { kinds, anon_bytes: kib << 10 })
    }

    pub fn count(&self, kind: &str) -> usize {
        self.kinds.get(kind).copied().unwrap_or(0)
    }

    /// What of another, later usage is more than it may be. `spare` says how many more there may
    /// be of a kind; of others there must be as many as before.
    pub fn leaks(&self, later: &Usage, spare: &[(&str, usize)]) -> Vec<String> {
        let mut leaks = Vec::new();
        let kinds = self.kinds.keys().chain(later.kinds.keys());
        for kind in kinds.collect::<std::collections::BTreeSet<_>>() {
            let (was, is) = (self.count(kind), later.count(kind));
            let more = spare.iter().find(|(name, _)| name == kind).map_or(0, |(_, more)| *more);
            if is > was + more {
                leaks.push(format!("{is} descriptors of the kind {kind}, and there were {was}"));
            }
        }
        leaks
    }

    /// What memory has grown by, if it is more than it may be.
    pub fn growth(&self, later: &Usage) -> Option<String> {
        let grown = later.anon_bytes.saturating_sub(self.anon_bytes);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        (grown > GROWTH_BYTES_MAX).then(|| {
            let (was, is) = (mib(self.anon_bytes), mib(later.anon_bytes));
            format!("{is:.1} MiB of anonymous memory, and there were {was:.1}")
        })
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in &self.kinds {
            write!(f, "{count} {kind}, ")?;
        }
        write!(f, "{:.1} MiB", self.anon_bytes as f64 / f64::from(1 << 20))
    }
}

/// `socket`, `pipe`, `anon_inode:[eventpoll]`, `file`.
fn kind(target: &str) -> String {
    match target.split_once(':') {
        Some((kind @ ("socket" | "pipe"), _)) => kind.to_owned(),
        Some(("anon_inode", _)) => target.to_owned(),
        _ => "file".to_owned(),
    }
}

/// The samples of Prometheus text, summed over their labels.
pub fn samples(text: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let name = name.split('{').next().unwrap_or_default().to_owned();
        *sums.entry(name).or_insert(0) += value.parse::<f64>().unwrap_or(0.0) as u64;
    }
    sums
}

/// What a daemon's `/metrics` says.
///
/// # Errors
///
/// No daemon answers there.
pub fn metrics(at: SocketAddr) -> io::Result<BTreeMap<String, u64>> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    match text.starts_with("HTTP/1.1 200 ") {
        true => Ok(samples(&text)),
        false => Err(io::Error::other(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_is_left_open_is_noticed() {
        // A process of its own: other tests open descriptors in this one.
        let script = "exec 3<>/dev/null; echo; read x; exec 4<>/dev/null; echo; read x";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        from.read_exact(&mut [0]).unwrap();
        let before = Usage::of(child.id()).unwrap();
        assert!(before.count("pipe") >= 2 && before.anon_bytes > 0, "{before}");
        assert!(before.leaks(&before, &[]).is_empty());
        to.write_all(b"\n").unwrap();
        from.read_exact(&mut [0]).unwrap();
        let after = Usage::of(child.id()).unwrap();
        assert_eq!(before.leaks(&after, &[]).len(), 1, "{before}; {after}");
        assert!(before.leaks(&after, &[("file", 1)]).is_empty());
        drop(to);
        child.wait().unwrap();
    }

    #[test]
    fn memory_may_grow_a_little() {
        let usage = |mib: u64| Usage { anon_bytes: mib << 20, ..Usage::default() };
        assert_eq!(usage(10).growth(&usage(18)), None);
        assert_eq!(usage(18).growth(&usage(10)), None);
        let why = usage(10).growth(&usage(19)).unwrap();
        assert!(why.starts_with("19.0 MiB") && why.ends_with("10.0"), "{why}");
    }

    #[test]
    fn kinds_and_samples_are_told_apart() {
        for (target, expected) in [
            ("socket:[123]", "socket"),
            ("pipe:[9]", "pipe"),
            ("anon_inode:[eventpoll]", "anon_inode:[eventpoll]"),
            ("/dev/shm/a:b", "file"),
        ] {
            assert_eq!(kind(target), expected);
        }
        let sums = samples("# HELP a b\na{worker=\"0\"} 2\na{worker=\"1\"} 3\nb 7\n");
        assert_eq!((sums["a"], sums["b"]), (5, 7));
    }
}
