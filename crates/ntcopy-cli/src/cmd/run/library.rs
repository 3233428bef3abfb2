//! Where libntcopy-preload.so is.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::elf;

const NAME: &str = "libntcopy-preload.so";
/// Where it lies as seen from this program's folder: built, and installed.
const PLACES: [&str; 3] = ["", "../lib/ntcopy", "../lib"];

/// The library, as a path that `LD_PRELOAD` can hold.
pub fn find(given: Option<&Path>) -> Result<PathBuf, String> {
    let path = match given {
        Some(path) => fs::canonicalize(path)
            .map_err(|error| format!("cannot load {}: {error}", path.display()))?,
        None => beside_this_program()?,
    };
    let is_sayable = path
        .to_str()
        .is_some_and(|text| !text.contains(|c: char| c == ':' || c.is_ascii_whitespace()));
    if !is_sayable {
        return Err(format!(
            "{} cannot be named in LD_PRELOAD, which is divided at colons and spaces",
            path.display()
        ));
    }
    may_be_loaded(&path)?;
    Ok(path)
}

/// The loader says a line, and starts the program without a library that it cannot read.
fn may_be_loaded(path: &Path) -> Result<(), String> {
    let cannot = |why: &dyn std::fmt::Display| format!("cannot load {}: {why}", path.display());
    let file = File::open(path).map_err(|error| cannot(&error))?;
    match elf::is_library(&file) {
        Ok(true) => Ok(()),
        Ok(false) => Err(cannot(&"it is no library for 64-bit x86, or cut short")),
        Err(error) => Err(cannot(&error)),
    }
}

fn beside_this_program() -> Result<PathBuf, String> {
    let program =
        env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let found = PLACES.iter().find_map(|place| folder.join(place).join(NAME).canonicalize().ok());
    found.ok_or_else(|| {
        format!(
            "{NAME} is neither beside {} nor in ../lib/ntcopy from there: `make build` makes it",
            program.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_would_divide_or_could_not_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // It has a library's head.
        let shell = fs::read("/bin/sh").unwrap();
        fs::write(at("good.so"), &shell).unwrap();
        assert_eq!(find(Some(&at("good.so"))), Ok(at("good.so").canonicalize().unwrap()));
        for name in ["a b.so", "a:b.so"] {
            fs::write(at(name), &shell).unwrap();
            assert!(find(Some(&at(name))).unwrap_err().contains("LD_PRELOAD"));
        }
        fs::write(at("short.so"), &shell[..1000]).unwrap();
        fs::write(at("empty.so"), "").unwrap();
        fs::create_dir(at("folder.so")).unwrap();
        for name in ["short.so", "empty.so", "folder.so", "absent.so"] {
            let refused = find(Some(&at(name))).unwrap_err();
            assert!(refused.contains(name), "{refused}");
        }
    }
}
