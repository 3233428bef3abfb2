//! Where the programs are.

use std::env;
use std::path::{Path, PathBuf};

use crate::experiments::http::Stack;

/// Folders in which daemons lie that PATH may leave out.
const MORE_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownProgram {
    Storaged,
    Proxyd,
    Nginx,
    Haproxy,
    Memcached,
    /// `examples/backend.c`, which the system's compiler makes.
    Example,
}

impl KnownProgram {
    pub fn of_stack(stack: Stack) -> [KnownProgram; 2] {
        match stack {
            Stack::StoragedProxyd => [KnownProgram::Proxyd, KnownProgram::Storaged],
            Stack::HaproxyNginx => [KnownProgram::Haproxy, KnownProgram::Nginx],
            Stack::NginxNginx => [KnownProgram::Nginx, KnownProgram::Nginx],
            Stack::HaproxyStoraged => [KnownProgram::Haproxy, KnownProgram::Storaged],
            Stack::HaproxyExample => [KnownProgram::Haproxy, KnownProgram::Example],
            Stack::NginxStoraged => [KnownProgram::Nginx, KnownProgram::Storaged],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            KnownProgram::Storaged => "storaged",
            KnownProgram::Proxyd => "proxyd",
            KnownProgram::Nginx => "nginx",
            KnownProgram::Haproxy => "haproxy",
            KnownProgram::Memcached => "memcached",
            KnownProgram::Example => "backend.c",
        }
    }

    /// Its path: one of ours lies beside this program, or in PATH; others in PATH. Of the example
    /// it is the compiler's.
    pub fn find(self) -> Result<PathBuf, String> {
        let folder = match self {
            KnownProgram::Storaged | KnownProgram::Proxyd => beside_this_program(),
            _ => None,
        };
        let name = if self == KnownProgram::Example { "cc" } else { self.name() };
        find(name, folder).ok_or_else(|| self.missing())
    }

    fn missing(self) -> String {
        let name = self.name();
        let package = match self {
            KnownProgram::Storaged | KnownProgram::Proxyd => {
                return format!(
                    "{name} is neither beside this program nor in PATH: `cargo build --release -p \
                     storaged -p proxyd` makes both daemons"
                );
            }
            KnownProgram::Example => {
                return "backend.c is compiled here, and there is no C compiler, cc: the package \
                        gcc has it (apt-get install gcc libc6-dev)"
                    .to_owned();
            }
            KnownProgram::Nginx => "nginx-light",
            KnownProgram::Haproxy | KnownProgram::Memcached => name,
        };
        format!(
            "{name} is not installed: the package {package} has it (apt-get install \
             --no-install-recommends {package})"
        )
    }
}

/// A program by its name: in these folders, in PATH, or where daemons lie.
fn find(name: &str, before: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = before.into_iter().chain(env::split_paths(&path));
    let mut folders = folders.chain(MORE_FOLDERS.iter().map(PathBuf::from));
    folders.find_map(|folder| Some(folder.join(name)).filter(|file| is_program(file)))
}

/// The folder of this program, also where its file was replaced since it started.
fn beside_this_program() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.to_owned())
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_names_its_programs_and_what_is_missing_says_who_has_it() {
        for stack in Stack::ALL {
            let [proxy, backend] = KnownProgram::of_stack(*stack);
            for program in [proxy, backend] {
                assert!(stack.as_str().contains(program.name()));
                assert!(program.missing().starts_with(program.name()), "{}", program.missing());
            }
        }
    }

    #[test]
    fn a_folder_of_that_name_is_no_program() {
        assert!(is_program(Path::new("/bin/sh")));
        assert!(!is_program(Path::new("/bin")));
        assert!(!is_program(Path::new("/etc/passwd")));
    }
}
