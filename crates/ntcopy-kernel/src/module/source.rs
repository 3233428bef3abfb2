//! The module's sources, which this program carries.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Context, Result};
use crate::series::{MODULE, hex};

/// The sources of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Path below the sources' folder, and the file.
    files: Vec<(String, Vec<u8>)>,
}

/// The kernels that the sources are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first: major, minor.
    pub from: (u64, u64),
    /// The first that is too new.
    pub below: (u64, u64),
}

impl Range {
    /// Whether a release, "6.12.117+deb12-amd64", lies in it. What can't be read does: the
    /// sources themselves refuse what they are not for.
    pub fn has(&self, release: &str) -> bool {
        number(release).is_none_or(|version| self.from <= version && version < self.below)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ((a, b), (c, d)) = (self.from, self.below);
        write!(f, "from Linux {a}.{b} on, before {c}.{d}")
    }
}

/// Major and minor number of a release.
fn number(release: &str) -> Option<(u64, u64)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Sources {
    /// Those that this program was built with.
    pub fn embedded() -> Self {
        let own = |&(name, content): &(&str, &[u8])| (name.to_owned(), content.to_vec());
        Self { files: MODULE.iter().map(own).collect() }
    }

    /// The names of the files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    /// How many files the compiler is called for.
    pub(super) fn units(&self) -> u64 {
        self.names().filter(|name| name.ends_with(".c") || name.ends_with(".S")).count() as u64
    }

    /// The module's version, `MODULE_VERSION`.
    pub fn version(&self) -> Option<String> {
        let text = self.text("module.h")?;
        let line = text.lines().find(|line| line.starts_with("#define NTCOPY_VERSION\t"))?;
        line.split('"').nth(1).map(str::to_owned)
    }

    /// The kernels that they are for: what compat.h refuses to be compiled for is stated there
    /// and read from there.
    pub fn range(&self) -> Option<Range> {
        let text = self.text("compat.h")?;
        let bound = |comparison: &str| {
            let mark = format!("#if LINUX_VERSION_CODE {comparison} KERNEL_VERSION(");
            // The range comes first; later comparisons are of single calls.
            let (_, rest) = text.split_once(&mark)?;
            let (numbers, rest) = rest.split_once(')')?;
            rest.trim_start().starts_with("#error").then(|| number(&numbers.replace(", ", ".")))?
        };
        Some(Range { from: bound("<")?, below: bound(">=")? })
    }

    fn text(&self, name: &str) -> Option<&str> {
        let (_, content) = self.files.iter().find(|(file, _)| file == name)?;
        std::str::from_utf8(content).ok()
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

    /// Writes them into a folder.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write_to(&self, folder: &Path) -> Result<()> {
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

    fn sources(files: &[(&str, &str)]) -> Sources {
        let own = |&(name, text): &(&str, &str)| (name.to_owned(), text.as_bytes().to_vec());
        Sources { files: files.iter().map(own).collect() }
    }

    const COMPAT: &str = "#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)\n#error \"old\"\n#endif\n\
        #if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 4, 0)\n#error \"new\"\n#endif\n\
        #if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)\n#define X\n#endif\n";

    #[test]
    fn the_range_is_what_compat_h_refuses() {
        let range = sources(&[("compat.h", COMPAT)]).range().unwrap();
        assert_eq!(range, Range { from: (6, 5), below: (7, 4) });
        for release in ["6.5.0", "6.12.117+deb12-cloud-amd64", "7.3.4-ntcopy", "7.3", "odd"] {
            assert!(range.has(release), "{release}");
        }
        for release in ["6.4.16-amd64", "5.10.0-8-amd64", "7.4.0-rc1", "7.10.1", "8.0.0"] {
            assert!(!range.has(release), "{release}");
        }
        assert_eq!(range.to_string(), "from Linux 6.5 on, before 7.4");
    }

    #[test]
    fn a_comparison_that_refuses_nothing_is_no_bound() {
        let text = COMPAT.replace("#error \"old\"", "#define OLD");
        assert_eq!(sources(&[("compat.h", &text)]).range(), None);
        assert_eq!(sources(&[]).range(), None);
    }

    #[test]
    fn the_program_carries_the_module_s_sources_its_recipe_and_the_header() {
        let embedded = Sources::embedded();
        let names: Vec<&str> = embedded.names().collect();
        for name in ["Kbuild", "Makefile", "dkms.conf", "compat.h", "main.c", "ntcopy.h"] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
        assert!(names.iter().all(|name| !name.ends_with(".mod.c") && !name.ends_with(".o")));
        assert!(embedded.range().is_some() && embedded.version().is_some());
        assert!(embedded.units() > 1);
    }

    #[test]
    fn what_is_written_is_what_is_carried_and_the_hash_knows_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let own = sources(&[("a.c", "int a;\n"), ("include/linux/b.h", "int b;\n")]);
        own.write_to(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join("include/linux/b.h")).unwrap();
        assert_eq!(text, "int b;\n");
        let other = sources(&[("a.c", "int a;\n"), ("include/linux/b.h", "int c;\n")]);
        assert_ne!(own.hash(), other.hash());
    }
}
