//! Where libntcopy-preload.so is.

use std::path::{Path, PathBuf};
use std::{env, fs};

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
    Ok(path)
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
    fn a_path_that_the_loader_would_divide_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let good = folder.path().join("good.so");
        fs::write(&good, "").unwrap();
        assert_eq!(find(Some(&good)), Ok(good.canonicalize().unwrap()));
        for name in ["a b.so", "a:b.so"] {
            let bad = folder.path().join(name);
            fs::write(&bad, "").unwrap();
            assert!(find(Some(&bad)).unwrap_err().contains("LD_PRELOAD"));
        }
        assert!(find(Some(Path::new("/nonexistent"))).unwrap_err().contains("/nonexistent"));
    }
}
