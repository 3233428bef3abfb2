//! The programs that a build needs, and what they are called in Debian.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// A program, and the package of the distribution that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// What `make ARCH=um` calls of what a Debian may lack, found by logging what a build starts.
const BUILD: &[Tool] = &[
    tool("gcc", "gcc"),
    tool("ld", "binutils"),
    tool("make", "make"),
    tool("flex", "flex"),
    tool("bison", "bison"),
    tool("bc", "bc"),
    tool("patch", "patch"),
    tool("find", "findutils"),
    tool("awk", "mawk"),
];

/// What unpacking a source package needs.
const PACKAGE: &[Tool] = &[
    tool("apt-get", "apt"),
    tool("apt-cache", "apt"),
    tool("apt-config", "apt"),
    tool("dpkg-deb", "dpkg"),
    tool("xz", "xz-utils"),
];

/// All that is missing, in one go.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MissingTools {
    missing: Vec<Tool>,
    headers: bool,
}

impl MissingTools {
    fn packages(&self) -> Vec<&'static str> {
        let mut packages: Vec<_> = self.missing.iter().map(|tool| tool.package).collect();
        if self.headers {
            packages.push("libc6-dev");
        }
        packages.sort_unstable();
        packages.dedup();
        packages
    }
}

impl fmt::Display for MissingTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&str> = self.missing.iter().map(|tool| tool.program).collect();
        if self.headers {
            names.push("the C library's headers");
        }
        write!(
            f,
            "building a kernel needs {}, which {} not here; as root: apt-get install {}",
            names.join(", "),
            if names.len() == 1 { "is" } else { "are" },
            self.packages().join(" ")
        )
    }
}

/// Checks that a build can start.
pub(crate) fn check(from_package: bool) -> Result<()> {
    let wanted = BUILD.iter().chain(if from_package { PACKAGE } else { &[] });
    let missing: Vec<Tool> = wanted.filter(|tool| find(tool.program).is_none()).copied().collect();
    let has_compiler = find("gcc").is_some() && find("ld").is_some();
    let headers = if has_compiler { !links() } else { !Path::new("/usr/include/stdio.h").exists() };
    if missing.is_empty() && !headers {
        return Ok(());
    }
    Err(Error::MissingTools(MissingTools { missing, headers }))
}

/// Where a program lies on the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}

/// Whether a C program with the C library's headers compiles and links.
fn links() -> bool {
    let child = Command::new("gcc")
        .args(["-x", "c", "-", "-o", "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        let program = "#include <stdio.h>\n#include <sys/epoll.h>\nint main(void){return 0;}\n";
        // A compiler that dies early closes the pipe; its status says so below.
        let _ = stdin.write_all(program.as_bytes());
    }
    child.wait().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_missing_is_named_at_once_with_one_command() {
        let missing = vec![tool("flex", "flex"), tool("xz", "xz-utils"), tool("ld", "binutils")];
        let text = MissingTools { missing, headers: true }.to_string();
        assert_eq!(
            text,
            "building a kernel needs flex, xz, ld, the C library's headers, which are not here; \
             as root: apt-get install binutils flex libc6-dev xz-utils"
        );
    }

    #[test]
    fn find_looks_for_executables_only() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-of-any-distribution").is_none());
    }
}
