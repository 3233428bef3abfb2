//! The program that is to be run: where it is, and whether the hint can reach it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::elf;

/// How many scripts may interpret each other, as in the kernel.
const MOST_INTERPRETERS: usize = 5;
/// The kernel looks no further for the end of a script's first line.
const FIRST_LINE_BYTES: u64 = 256;

/// What the shell takes where a file is no program and names none.
const DEFAULT_SHELL: &str = "/bin/sh";

/// A program, and what is in the hint's way.
#[derive(Debug)]
pub struct ProgramFile {
    pub path: PathBuf,
    /// Why the library cannot reach it, or what interprets it if it is a script.
    pub obstacle: Option<Obstacle>,
}

/// Why the library cannot reach a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub why: String,
    /// Whether the program would not even start with it.
    pub is_fatal: bool,
}

/// Why there is nothing to be run.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// No such file.
    #[error("there is no program {0}")]
    NotFound(String),
    /// A file that is not to be executed.
    #[error("{path} cannot be run: {cause}")]
    NotExecutable { path: String, cause: io::Error },
}

impl Missing {
    pub fn exit_code(&self) -> u8 {
        match self {
            Missing::NotFound(_) => 127,
            Missing::NotExecutable { .. } => 126,
        }
    }
}

impl ProgramFile {
    /// By its path, or by its name in `PATH`.
    pub fn find(name: &OsStr) -> Result<Self, Missing> {
        let path = find_file(name, std::env::var_os("PATH"))?;
        let mut runs = path.clone();
        for _ in 0..MOST_INTERPRETERS {
            match interpreter_of(&runs) {
                // An interpreter that is not there is found so by the kernel, in its own words.
                Some(next) if next.exists() => runs = next,
                _ => break,
            }
        }
        let shown = runs.display();
        let reached = elf::obstacle(&runs).map(|elf::Obstacle { why, is_fatal }| Obstacle {
            why: format!("{shown} {why}"),
            is_fatal,
        });
        let obstacle = reached.or_else(|| {
            has_more_rights(&runs).then(|| Obstacle {
                why: format!(
                    "{shown} runs with more rights than its user: the dynamic loader then loads no \
                     library that the user chose"
                ),
                is_fatal: false,
            })
        });
        Ok(ProgramFile { path, obstacle })
    }
}

/// Set-user-ID, set-group-ID, or file capabilities, for a user who gains by them.
fn has_more_rights(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let mode = metadata.mode();
    if mode & 0o4000 != 0 && metadata.uid() != user.as_raw()
        || mode & 0o2000 != 0 && metadata.gid() != group.as_raw()
    {
        return true;
    }
    let nothing: &mut [u8] = &mut [];
    let has_capabilities = rustix::fs::getxattr(path, "security.capability", nothing).is_ok();
    has_capabilities && !user.is_root()
}

fn find_file(name: &OsStr, search: Option<OsString>) -> Result<PathBuf, Missing> {
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name));
    }
    // This is what execvp(3) does where PATH is not set.
    let search = search.unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut worst = Missing::NotFound(format!("`{}` in PATH", name.display()));
    for folder in std::env::split_paths(&search) {
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        match executable(&folder.join(name)) {
            Ok(path) => return Ok(path),
            Err(missing @ Missing::NotExecutable { .. }) => worst = missing,
            Err(Missing::NotFound(_)) => {}
        }
    }
    Err(worst)
}

fn executable(path: &Path) -> Result<PathBuf, Missing> {
    let shown = || path.display().to_string();
    let not_executable = |cause| Missing::NotExecutable { path: shown(), cause };
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Missing::NotFound(shown()),
        _ => not_executable(error),
    })?;
    if metadata.is_dir() {
        return Err(not_executable(io::ErrorKind::IsADirectory.into()));
    }
    access(path, Access::EXEC_OK).map_err(|errno| not_executable(errno.into()))?;
    Ok(path.to_owned())
}

/// What interprets a file; nothing for a program, and for what cannot be looked into.
fn interpreter_of(path: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(FIRST_LINE_BYTES).read_to_end(&mut head).ok()?;
    if head.starts_with(elf::MAGIC) {
        return None;
    }
    match head.strip_prefix(b"#!") {
        Some(line) => interpreter(line),
        // What execvp(3) and every shell do with a file that the kernel refuses.
        None => Some(DEFAULT_SHELL.into()),
    }
}

/// The interpreter of a script's first line; that which `env` will look for, if it is `env`.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let path = PathBuf::from(OsString::from_vec(words.next()?.to_vec()));
    if path.file_name() == Some(OsStr::new("env")) {
        let is_name = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
        let found = words
            .find(is_name)
            .and_then(|name| find_file(OsStr::from_bytes(name), std::env::var_os("PATH")).ok());
        if found.is_some() {
            return found;
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn script(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let there = script(folder.path(), "there", "", 0o755);
        script(folder.path(), "shut", "", 0o644);
        let search = || Some(OsString::from(format!("/nonexistent:{}", folder.path().display())));
        assert_eq!(find_file(OsStr::new("there"), search()).unwrap(), there);
        assert_eq!(find_file(there.as_os_str(), None).unwrap(), there);
        for (name, code) in [("absent", 127), ("shut", 126), ("/nonexistent/x", 127), ("/", 126)] {
            let missing = find_file(OsStr::new(name), search()).unwrap_err();
            assert_eq!(missing.exit_code(), code, "{missing}");
        }
        assert_eq!(find_file(OsStr::new("sh"), None).unwrap(), Path::new("/bin/sh"));
    }

    #[test]
    fn scripts_are_followed_to_what_runs_them() {
        let folder = tempfile::tempdir().unwrap();
        // What no library can be loaded before, by its head: for a 32-bit processor.
        let other = folder.path().join("other");
        fs::write(&other, [elf::MAGIC, &[1, 1, 1], &[0; 64]].concat()).unwrap();
        let other = other.display();
        let inner = script(folder.path(), "inner", &format!("#! {other} -e\n"), 0o755);
        for (name, text, is_followed) in [
            ("plain", format!("#!{other}\n"), true),
            ("nested", format!("#!{}\n", inner.display()), true),
            ("env", "#!/usr/bin/env -S FOO=bar sh -e\n".to_owned(), false),
            ("bare", "echo no first line\n".to_owned(), false),
            ("lost", "#!/nonexistent/interpreter\n".to_owned(), false),
            ("empty", "#!\n".to_owned(), false),
            ("own", format!("#!{}\n", folder.path().join("own").display()), false),
        ] {
            let path = script(folder.path(), name, &text, 0o755);
            let program = ProgramFile::find(path.as_os_str()).unwrap();
            assert_eq!(program.path, path);
            let expected = is_followed
                .then(|| format!("{other} is no program for 64-bit x86, as the library is"));
            assert_eq!(program.obstacle.map(|obstacle| obstacle.why), expected, "{name}");
        }
        for (line, found) in [
            (&b" /bin/sh -e"[..], "/bin/sh"),
            (b"/usr/bin/env -S FOO=bar sh -e", "/bin/sh"),
            (b"/nonexistent/interpreter\nrest", "/nonexistent/interpreter"),
        ] {
            let found = fs::canonicalize(found).unwrap_or(found.into());
            let told = interpreter(line).unwrap();
            assert_eq!(fs::canonicalize(&told).unwrap_or(told), found);
        }
    }
}
