//! The patches: embedded in the program, or from a folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Context, Result};
use crate::kind::{Kind, Release, RunsAs};

/// A folder's name, and the names and the bytes of its patches.
type Part = (&'static str, &'static [(&'static str, &'static [u8])]);

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Environment variable that names a folder with another series, laid out as `make series` writes
/// one: a folder for each of `PARTS`. Patches beside these folders come first.
pub const SERIES_VARIABLE: &str = "NTCOPY_SERIES";

/// The folders of a series, in the order in which their patches apply: what is posted, each for
/// its own maintainers; what only tests need; and the bench's own, which only um kernels get.
pub const PARTS: [&str; 5] = ["unix", "net", "mm", "test", "um"];

/// Before the names of the bench's own patches.
const UM: &str = "um/";

/// In the name of a patch that only adds tests to the source tree. No kernel is made of it, so that
/// none has to be made anew when a test changes.
const SELFTESTS: &str = "-selftests-";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// File name, with the folder before it: `net/0001-….patch`.
    pub name: String,
    pub content: Vec<u8>,
}

/// Where patches may reach that are beside the way of a send.
const NEUTRAL: [&str; 3] = ["arch/um/", "arch/x86/", "tools/"];

/// Where the copy's own patch has lines as well, which the bench's patches need to link it.
const COPY: [&str; 2] = ["lib/Kconfig", "include/linux/uaccess.h"];

impl Patch {
    /// Whether it only touches what a send does not meet.
    fn is_neutral(&self) -> bool {
        let text = String::from_utf8_lossy(&self.content);
        let mut touched = text.lines().filter_map(|line| line.strip_prefix("+++ b/")).peekable();
        let is_copy = text.contains("+++ b/arch/x86/lib/copy_nontemporal.c");
        let is_beside = |path: &str| {
            NEUTRAL.iter().any(|at| path.starts_with(at)) || (is_copy && COPY.contains(&path))
        };
        touched.peek().is_some() && touched.all(is_beside)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    pub patches: Vec<Patch>,
}

impl Series {
    /// What a kernel gets: of the series that this program was built with, or of the one that
    /// [`SERIES_VARIABLE`] names. A stock kernel gets nothing, and one for the module none of the
    /// series.
    pub fn current(kind: Kind) -> Result<Self> {
        match std::env::var_os(SERIES_VARIABLE).filter(|name| !name.is_empty()) {
            Some(folder) => Ok(Self::from_folder(Path::new(&folder))?.for_kernel(kind)),
            None => Ok(Self::embedded(kind.release()).for_kernel(kind)),
        }
    }

    #[must_use]
    pub fn for_kernel(mut self, kind: Kind) -> Self {
        let is_bare = kind.is_for_module() && kind.runs_as() == RunsAs::Qemu;
        if kind.is_stock() || is_bare {
            return Self::default();
        }
        if kind.runs_as() == RunsAs::Qemu {
            self.patches.retain(|patch| !patch.name.starts_with(UM));
        }
        if kind.is_for_module() { self.neutral() } else { self }
    }

    /// Those of these patches that a send does not meet: the bench's own, and what they need to
    /// link. A um kernel with them alone knows nothing of the flag, and runs as the others do.
    #[must_use]
    pub fn neutral(mut self) -> Self {
        self.patches.retain(Patch::is_neutral);
        self
    }

    /// The series that this program was built with, the bench's own patches included.
    pub fn embedded(release: Release) -> Self {
        let parts = match release {
            Release::Newest => SERIES_7_3,
            Release::V6_12 => SERIES_6_12,
        };
        let mut patches = Vec::new();
        for (part, embedded) in parts {
            patches.extend(embedded.iter().map(|&(name, content)| Patch {
                name: format!("{part}/{name}"),
                content: content.to_vec(),
            }));
        }
        Self { patches }
    }

    /// A series in a folder: `*.patch` sorted by name, then those of each of `PARTS`, sorted by
    /// name. Those with `-selftests-` in their names are left out: they change no kernel.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let mut patches = read_folder(folder, "")?;
        for part in PARTS {
            let inner = folder.join(part);
            if inner.is_dir() {
                patches.extend(read_folder(&inner, &format!("{part}/"))?);
            }
        }
        Ok(Self { patches })
    }

    pub fn hash(&self) -> String {
        digest(self.patches.iter().flat_map(|it| [it.name.as_bytes(), &it.content]))
    }
}

fn read_folder(folder: &Path, prefix: &str) -> Result<Vec<Patch>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).doing("reading the series in", folder)? {
        let path = entry.doing("reading the series in", folder)?.path();
        let is_patch = path.extension() == Some(OsStr::new("patch")) && path.is_file();
        if is_patch && !name_of(&path).contains(SELFTESTS) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &PathBuf| -> Result<Patch> {
        let name = name_of(path);
        let content = fs::read(path).doing("reading", path)?;
        Ok(Patch { name: format!("{prefix}{name}"), content })
    };
    paths.iter().map(read).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A hash over parts, each with its length, hexadecimal.
pub(crate) fn digest(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.as_ref().len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Flavour;
    use crate::testing::folder;

    #[test]
    fn patches_come_in_the_order_of_the_parts_and_then_of_their_names() {
        let folder = folder(&[
            ("um/0001-um.patch", "u"),
            ("mm/0001-pages.patch", "p"),
            ("net/0010-late.patch", "l"),
            ("net/0002-early.patch", "e"),
            ("net/0011-selftests-net.patch", "no kernel is made of it"),
            ("net/0000-cover-letter.patch.txt", "not a patch"),
            ("test/0001-test.patch", "t"),
            ("unix/0001-copy.patch", "c"),
            ("other/0001-other.patch", "no part of a series"),
            ("0001-beside.patch", "b"),
        ]);
        let series = Series::from_folder(folder.path()).unwrap();
        let names: Vec<&str> = series.patches.iter().map(|patch| patch.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "0001-beside.patch",
                "unix/0001-copy.patch",
                "net/0002-early.patch",
                "net/0010-late.patch",
                "mm/0001-pages.patch",
                "test/0001-test.patch",
                "um/0001-um.patch"
            ]
        );
    }

    #[test]
    fn the_embedded_series_is_the_repository_s() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = tempfile::tempdir().unwrap();
        let mut export = std::process::Command::new("sh");
        export.arg(root.join("scripts/series.sh")).arg(folder.path());
        assert!(export.status().unwrap().success());
        for (release, name) in [(Release::Newest, "7.3"), (Release::V6_12, "6.12")] {
            let expected = Series::from_folder(&folder.path().join(name)).unwrap();
            for part in PARTS.iter().filter(|part| name == "7.3" || **part != "mm") {
                let prefix = format!("{part}/");
                let has = expected.patches.iter().any(|patch| patch.name.starts_with(&prefix));
                assert!(has, "{name} has no {part}");
            }
            assert_eq!(Series::embedded(release).hash(), expected.hash(), "{name}");
        }
    }

    #[test]
    fn an_x86_kernel_gets_none_of_the_bench_s_patches_and_a_stock_kernel_none_at_all() {
        let names = |kind| -> Vec<String> {
            Series::current(kind).unwrap().patches.into_iter().map(|patch| patch.name).collect()
        };
        let um = names(Kind::Um);
        let x86 = names(Kind::X86(Release::Newest, Flavour::Kasan));
        assert!(x86.len() < um.len() && um.starts_with(&x86), "{um:?} {x86:?}");
        assert!(x86.iter().any(|name| name.starts_with("test/")), "{x86:?}");
        assert!(names(Kind::Stock(Release::Newest)).is_empty());
        assert!(names(Kind::X86(Release::V6_12, Flavour::Module)).is_empty());
        const COPY_PATCH: &str = "net/0001-x86-lib-";
        let for_module = names(Kind::UmModule);
        for part in [UM, COPY_PATCH] {
            assert!(for_module.iter().any(|name| name.starts_with(part)), "{for_module:?}");
        }
        // None that changes the network.
        let is_beside = |name: &String| [UM, COPY_PATCH].iter().any(|part| name.starts_with(part));
        assert!(for_module.iter().all(is_beside), "{for_module:?}");
    }

    #[test]
    fn only_patches_beside_the_way_of_a_send_are_neutral() {
        let is_neutral = |paths: &[&str]| {
            let headers = paths.iter().map(|path| format!("--- a/{path}\n+++ b/{path}\n@@\n"));
            let content = headers.collect::<String>().into_bytes();
            let series = Series { patches: vec![Patch { name: "x".into(), content }] };
            !series.neutral().patches.is_empty()
        };
        assert!(is_neutral(&["arch/um/kernel/time.c"]));
        assert!(is_neutral(&["arch/x86/lib/copy_user_64.S", "tools/objtool/check.c"]));
        assert!(!is_neutral(&["arch/x86/lib/copy_user_64.S", "lib/iov_iter.c"]));
        assert!(!is_neutral(&["net/socket.c"]));
        assert!(!is_neutral(&[]));
    }
}
