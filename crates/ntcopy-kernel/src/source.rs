//! Where a kernel's source comes from.

pub(crate) mod package;
pub(crate) mod tree;
pub(crate) mod unpack;
pub(crate) mod wanted;

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// Environment variable that names a source tree of the user's own.
pub const SOURCE_VARIABLE: &str = "NTCOPY_LINUX";

/// The version that a tree's Makefile states, `7.3.4`.
pub(crate) fn version(tree: &Path) -> Result<String> {
    let bad = |reason: &str| Error::NotATree { path: tree.to_path_buf(), reason: reason.into() };
    let text = fs::read_to_string(tree.join("Makefile"))
        .map_err(|error| bad(&format!("its Makefile cannot be read ({error})")))?;
    let field = |name: &str| {
        text.lines().take(40).find_map(|line| {
            let (field, value) = line.split_once('=')?;
            (field.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let (Some(major), Some(minor)) = (field("VERSION"), field("PATCHLEVEL")) else {
        return Err(bad("its Makefile states no VERSION and PATCHLEVEL"));
    };
    if !tree.join("arch/um/Makefile").is_file() {
        return Err(bad("it has no arch/um"));
    }
    let patch = field("SUBLEVEL").filter(|n| !n.is_empty()).unwrap_or_else(|| "0".into());
    Ok(format!("{major}.{minor}.{patch}{}", field("EXTRAVERSION").unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder;

    #[test]
    fn the_version_is_put_together_from_the_makefile() {
        let makefile = "# x\nVERSION = 7\nPATCHLEVEL = 4\nSUBLEVEL = 0\nEXTRAVERSION = -rc2\n";
        let tree = folder(&[("arch/um/Makefile", ""), ("Makefile", makefile)]);
        assert_eq!(version(tree.path()).unwrap(), "7.4.0-rc2");
    }

    #[test]
    fn a_makefile_of_something_else_is_refused() {
        let tree = folder(&[("Makefile", "all:\n\techo\n")]);
        assert!(version(tree.path()).unwrap_err().to_string().contains("VERSION"));
    }
}
