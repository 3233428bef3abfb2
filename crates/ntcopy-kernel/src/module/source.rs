//! The module's sources, which this program carries.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Context, Error, Result};
use crate::series::{MODULE, hex};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    /// Path below the sources' folder, and the file.
    files: Vec<(String, Vec<u8>)>,
}

/// Major and minor number of a release.
fn number(release: &str) -> Option<(u64, u64)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Sources {
    /// Those that this program was built with.
    pub(super) fn embedded() -> Self {
        let own = |&(name, content): &(&str, &[u8])| (name.to_owned(), content.to_vec());
        Self { files: MODULE.iter().map(own).collect() }
    }

    /// Whether they are for a kernel. What can't be read passes: the sources themselves refuse what
    /// they are not for.
    pub(super) fn check(&self, release: &str) -> Result<()> {
        let (Some((from, below)), Some(version)) = (self.range(), number(release)) else {
            return Ok(());
        };
        if from <= version && version < below {
            return Ok(());
        }
        Err(Error::NotHere(format!(
            "the module is for kernels from Linux {}.{} on, before {}.{}, and this is {release}; {}",
            from.0,
            from.1,
            below.0,
            below.1,
            if version >= below {
                "look for a newer version of ntcopy"
            } else {
                "older ones lack MSG_SPLICE_PAGES"
            }
        )))
    }

    /// The first kernel that compat.h takes, and the first that it refuses again.
    fn range(&self) -> Option<((u64, u64), (u64, u64))> {
        let (_, text) = self.files.iter().find(|(file, _)| file == "compat.h")?;
        let text = std::str::from_utf8(text).ok()?;
        let bound = |comparison: &str| {
            let mark = format!("#if LINUX_VERSION_CODE {comparison} KERNEL_VERSION(");
            // The range comes first; later comparisons are of single calls.
            let (_, rest) = text.split_once(&mark)?;
            let (numbers, rest) = rest.split_once(')')?;
            rest.trim_start().starts_with("#error").then(|| number(&numbers.replace(", ", ".")))?
        };
        Some((bound("<")?, bound(">=")?))
    }

    /// Hash over names and contents, hexadecimal.
    pub(super) fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        for (name, content) in &self.files {
            for part in [name.as_bytes(), content] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        hex(&hasher.finalize())
    }

    pub(super) fn write_to(&self, folder: &Path) -> Result<()> {
        for (name, content) in &self.files {
            let path = folder.join(name);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).doing("creating", parent)?;
            fs::write(&path, content).doing("writing", &path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(compat: &str) -> Sources {
        Sources { files: vec![("compat.h".into(), compat.as_bytes().to_vec())] }
    }

    const COMPAT: &str = "#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)\n#error \"old\"\n#endif\n\
        #if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)\n#error \"new\"\n#endif\n\
        #if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)\n#define X\n#endif\n";

    #[test]
    fn the_range_is_what_compat_h_refuses() {
        let own = sources(COMPAT);
        for release in ["6.5.0", "6.12.117+deb12-cloud-amd64", "7.3.4-ntcopy", "7.3", "odd"] {
            own.check(release).unwrap();
        }
        for release in ["6.4.16-amd64", "5.10.0-8-amd64", "7.4.0-rc1", "7.10.1", "8.0.0"] {
            let text = own.check(release).unwrap_err().to_string();
            assert!(text.contains("from Linux 6.5 on, before 7.4") && text.contains(release));
        }
        let unbound = sources(&COMPAT.replace("#error \"old\"", "#define OLD"));
        assert_eq!(unbound.range(), None);
    }

    #[test]
    fn the_program_carries_the_module_s_sources_its_recipe_and_the_header() {
        let folder = tempfile::tempdir().unwrap();
        let embedded = Sources::embedded();
        embedded.write_to(folder.path()).unwrap();
        for name in ["Kbuild", "Makefile", "dkms.conf", "compat.h", "main.c", "ntcopy.h"] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
        let is_left = |name: &String| name.ends_with(".mod.c") || name.ends_with(".o");
        assert!(!embedded.files.iter().any(|(name, _)| is_left(name)));
        assert!(embedded.range().is_some());
        let mut other = embedded.clone();
        other.files[0].1.push(b'\n');
        assert_ne!(embedded.hash(), other.hash());
    }
}
