//! What host and guest tell each other.
//!
//! The orders lie in a file that the guest reads from the host's tree. The answers come over a
//! line of their own, a line of text each: `ready`, then `exit N OUT ERR` with the bytes that the
//! command's output has, or `error TEXT`.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// The line that carries the command's standard output.
pub(crate) const OUT_LINE: usize = 0;
/// The line that carries its standard error.
pub(crate) const ERR_LINE: usize = 1;
/// The line that carries answers.
pub(crate) const CONTROL_LINE: usize = 2;

/// What the lines are called in QEMU's virtual machine, in this order.
pub(crate) const PORT_NAMES: [&str; 3] = ["ntcopy.out", "ntcopy.err", "ntcopy.control"];

/// What the lines are in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineKind {
    /// User-mode Linux: the serial lines /dev/ttyS0 …
    Serial,
    /// QEMU: the virtio ports of [`PORT_NAMES`].
    VirtioPorts,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) command: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: OsString,
    pub(crate) writable: Vec<OsString>,
    /// Folders in which what is written goes with the guest.
    pub(crate) scratch: Vec<OsString>,
    pub(crate) sysctls: Vec<(String, String)>,
    /// Soft and hard limit of open files.
    pub(crate) open_files: (Option<u64>, Option<u64>),
    pub(crate) lines: LineKind,
    /// The kernel's modules, where it has some.
    pub(crate) modules: Option<Modules>,
}

/// Where the modules of a kernel are that is not installed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Modules {
    /// What would be /lib/modules.
    pub(crate) folder: OsString,
    /// A program that finds them there, for a guest that has no /lib/modules to mount them on.
    pub(crate) modprobe: OsString,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// init is at work, and the command is about to start.
    Ready,
    Exit {
        code: u8,
        /// What its standard output and its standard error have, in bytes.
        sent_bytes: [u64; 2],
    },
    /// The orders could not be carried out.
    Error(String),
}

impl Answer {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" => Some(Self::Ready),
            "exit" => {
                let mut numbers = rest.split(' ');
                let code = numbers.next()?.parse().ok()?;
                let mut bytes = || numbers.next()?.parse::<u64>().ok();
                Some(Self::Exit { code, sent_bytes: [bytes()?, bytes()?] })
            }
            "error" => serde_json::from_str(rest).ok().map(Self::Error),
            _ => None,
        }
    }

    pub(crate) fn line(&self) -> String {
        match self {
            Self::Ready => "ready\n".into(),
            Self::Exit { code, sent_bytes: [out, err] } => format!("exit {code} {out} {err}\n"),
            Self::Error(text) => format!("error {}\n", serde_json::Value::from(text.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_the_line() {
        let exit = Answer::Exit { code: 137, sent_bytes: [5_000_000_000, 0] };
        for answer in [Answer::Ready, exit, Answer::Error("a\n\"b\"".into())] {
            let line = answer.line();
            assert_eq!(line.matches('\n').count(), 1);
            assert_eq!(Answer::parse(line.trim_end()), Some(answer));
        }
        assert_eq!(Answer::parse("exit 256 0 0"), None);
        assert_eq!(Answer::parse("exit 1"), None);
    }
}
