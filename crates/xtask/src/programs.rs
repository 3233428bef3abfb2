//! The test programs of the workspace, as cargo builds them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{Doing, Error};

/// Set for test programs when all that the workspace's tests need is built.
pub const BUILT: &str = "NTCOPY_TESTS_BUILT";

/// A test program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The package, and the program where it is not the package's own tests.
    pub name: String,
    pub path: PathBuf,
    /// Where cargo would start it.
    pub folder: PathBuf,
}

pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Builds every test program of the workspace.
pub fn build() -> Result<Vec<Program>, Error> {
    Ok(made(&["test", "--no-run"])?.iter().filter_map(program).collect())
}

/// Builds `ntcopy`, and the library of `ntcopy run` beside it, and gives its path.
pub fn ntcopy() -> Result<PathBuf, Error> {
    // All of the workspace: with the features that the tests' build has, so that nothing is
    // compiled twice.
    let messages = made(&["build"])?;
    let mut of_it = messages.iter().filter(|said| said["target"]["name"] == "ntcopy");
    let program = of_it.find_map(|said| said["executable"].as_str().map(PathBuf::from));
    let none = || Error::Failed("cargo made no program".to_owned());
    let program = program.ok_or_else(none)?;
    let folder = program.parent().ok_or_else(none)?;
    let mut link = Command::new(root().join("crates/ntcopy-preload/link.sh"));
    link.arg(folder.join("libntcopy_preload.a")).arg(folder);
    if !link.status().doing("linking the library of ntcopy run")?.success() {
        return Err(Error::Build);
    }
    Ok(program)
}

/// What cargo made of the workspace, a message each. It says on standard error what it does.
fn made(what: &[&str]) -> Result<Vec<Value>, Error> {
    let mut cargo = cargo();
    cargo.args(what).args(["--workspace", "--locked"]);
    cargo.arg("--message-format=json-render-diagnostics").stdin(Stdio::null());
    let output = cargo.stderr(Stdio::inherit()).output().doing("starting cargo")?;
    if !output.status.success() {
        return Err(Error::Build);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The test program that a message of cargo's names.
fn program(message: &Value) -> Option<Program> {
    let path = message["executable"].as_str()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let package = folder.file_name()?.to_str()?;
    let target = &message["target"];
    let name = match target["kind"][0].as_str()? {
        "test" => format!("{package} {}", target["name"].as_str()?),
        "bin" if target["name"] != package => format!("{package} {}", target["name"].as_str()?),
        _ => package.to_owned(),
    };
    Some(Program { name, path: path.into(), folder: folder.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_what_else_cargo_makes() {
        let message = |kind: &str, name: &str, test: bool| {
            serde_json::json!({
                "executable": "/t/debug/deps/it-1",
                "manifest_path": "/w/crates/proxyd/Cargo.toml",
                "profile": { "test": test },
                "target": { "kind": [kind], "name": name },
            })
        };
        let named = |message: Value| program(&message).map(|program| program.name);
        assert_eq!(named(message("test", "it", true)).as_deref(), Some("proxyd it"));
        assert_eq!(named(message("lib", "proxyd", true)).as_deref(), Some("proxyd"));
        assert_eq!(named(message("bin", "proxyd", false)), None);
        let program = program(&message("test", "it", true)).expect("a program");
        assert_eq!(program.folder, Path::new("/w/crates/proxyd"));
    }
}
