//! The module's sources, which this program carries.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Context, Error, Result};
use crate::series::{MODULE, hex};

/// The first kernel that compat.h takes, and the first that it refuses again.
const RANGE: [(u64, u64); 2] = [(6, 5), (7, 4)];

/// Major and minor number of a release.
fn number(release: &str) -> Option<(u64, u64)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Whether they are for a kernel. What can't be read passes: the sources themselves refuse what
/// they are not for.
pub(super) fn check(release: &str) -> Result<()> {
    let [from, below] = RANGE;
    let why = match number(release) {
        Some(version) if version < from => "older ones lack MSG_SPLICE_PAGES",
        Some(version) if version >= below => "look for a newer version of ntcopy",
        _ => return Ok(()),
    };
    Err(Error::NotHere(format!(
        "the module is for kernels from Linux {}.{} on, before {}.{}, and this is {release}; {why}",
        from.0, from.1, below.0, below.1
    )))
}

/// Hash over names and contents, hexadecimal.
pub(super) fn hash() -> String {
    let mut hasher = Sha256::new();
    for (name, content) in MODULE {
        for part in [name.as_bytes(), content] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hex(&hasher.finalize())
}

pub(super) fn write_to(folder: &Path) -> Result<()> {
    for (name, content) in MODULE {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).doing("creating", parent)?;
        fs::write(&path, content).doing("writing", &path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_what_compat_h_refuses() {
        let compat = MODULE.iter().find(|(name, _)| *name == "compat.h").unwrap().1;
        let compat = std::str::from_utf8(compat).unwrap();
        for (comparison, (major, minor)) in ["<", ">="].into_iter().zip(RANGE) {
            let refusal = format!(
                "#if LINUX_VERSION_CODE {comparison} KERNEL_VERSION({major}, {minor}, 0)\n#error"
            );
            assert!(compat.contains(&refusal), "{refusal}");
        }
        for release in ["6.5.0", "6.12.117+deb12-cloud-amd64", "7.3.4-ntcopy", "7.3", "odd"] {
            check(release).unwrap();
        }
        for release in ["6.4.16-amd64", "5.10.0-8-amd64", "7.4.0-rc1", "7.10.1", "8.0.0"] {
            let text = check(release).unwrap_err().to_string();
            assert!(text.contains("from Linux 6.5 on, before 7.4") && text.contains(release));
        }
    }

    #[test]
    fn the_program_carries_the_module_s_sources_its_recipe_and_the_header() {
        let folder = tempfile::tempdir().unwrap();
        write_to(folder.path()).unwrap();
        for name in ["Kbuild", "Makefile", "dkms.conf", "compat.h", "main.c", "ntcopy.h"] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
        let is_left = |name: &str| name.ends_with(".mod.c") || name.ends_with(".o");
        assert!(!MODULE.iter().any(|(name, _)| is_left(name)));
    }
}
