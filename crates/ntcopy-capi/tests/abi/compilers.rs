//! The compilers, and programs that they make.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::installed::{crate_dir, prefix, run, scratch};

/// How a program has the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Shared,
    Static,
}

/// A compiler for one language.
pub struct Compiler {
    pub program: &'static str,
    pub extension: &'static str,
    pub standards: &'static [&'static str],
}

pub const GCC: Compiler =
    Compiler { program: "gcc", extension: "c", standards: &["-std=c99", "-std=c11"] };
pub const GXX: Compiler = Compiler { program: "g++", extension: "cc", standards: &["-std=c++17"] };
pub const CLANG: Compiler =
    Compiler { program: "clang", extension: "c", standards: &["-std=c99", "-std=c11"] };
pub const CLANGXX: Compiler =
    Compiler { program: "clang++", extension: "cc", standards: &["-std=c++17"] };

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];

impl Compiler {
    /// Whether it is here; says so where not.
    pub fn is_here(&self) -> bool {
        let is_here = Command::new(self.program).arg("--version").output().is_ok();
        if !is_here {
            println!("not run: no {} here; Debian: apt-get install gcc g++ clang", self.program);
        }
        is_here
    }

    /// The compiler with what every program gets.
    pub fn command(&self, standard: &str) -> Command {
        let mut command = Command::new(self.program);
        command.arg(standard).args(WARNINGS).args(["-O1", "-g", "-pthread"]);
        command.arg("-I").arg(prefix().join("include"));
        command
    }

    /// The program of a file, compiled once for all tests that ask for it.
    pub fn compile(&self, source: &Path, standard: &str, link: Link, more: &[&str]) -> PathBuf {
        static DONE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let stem = source.file_stem().expect("a source file").display();
        let name = format!("{stem}-{}{standard}-{link:?}{}", self.program, more.concat());
        let program = scratch("programs").join(name.replace(',', "-"));
        // Held while compiling: a program that runs can't be written. What one test could not
        // compile is for that test to report.
        let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
        if done.contains(&program) {
            return program;
        }
        let mut command = self.command(standard);
        command.args(more).arg(source).arg("-o").arg(&program);
        let library = prefix().join("lib");
        match link {
            Link::Shared => command.arg("-L").arg(library).arg("-lntcopy"),
            // Without the library's line numbers, of which every program would have a copy.
            Link::Static => {
                command.arg(library.join("libntcopy.a")).args(["-Wl,--strip-debug", "-ldl", "-lm"])
            }
        };
        run(&mut command);
        done.insert(program.clone());
        program
    }
}

/// A command for a program in an environment of its own: no settings, no profile.
pub fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.env_clear().env("LD_LIBRARY_PATH", prefix().join("lib"));
    command
}

/// The files of a folder of this crate with this extension, in order.
pub fn sources(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = crate_dir().join(folder).read_dir().expect("a folder of this crate");
    let mut sources: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    sources.sort();
    sources
}
