//! A source tree of the user's own: looked at and copied, never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::cache::SourceId;
use crate::error::{Context, Result};
use crate::interrupt::Interrupts;
use crate::process;
use crate::series::hex;

/// Finds what is in `$1`, but for what git and a build have there: enough to get a tree that a
/// configuration can start from. What is to become of it follows.
const FIND: &str = r#"
    cd "$1" && find . \( -path ./.git -o -path ./.config -o -path ./vmlinux -o -path ./linux \
        -o -path ./include/config -o -path '*/include/generated' -o -name '*.o' -o -name '*.a' \
        -o -name '*.ko' -o -name '*.cmd' -o -name '*.mod' -o -name '*.order' -o -name '*.builtin' \
        -o -name '*.mod.c' \) -prune -o ! -type d -printf "#;

/// A tree, and the files in it that are source.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    /// Name, size and time, a line for each.
    files: String,
}

impl Tree {
    /// Looks at the tree that `NTCOPY_LINUX` names.
    pub(crate) fn open(root: &Path, interrupts: &Interrupts) -> Result<Self> {
        let root = fs::canonicalize(root).doing("opening NTCOPY_LINUX", root)?;
        super::version(&root)?;
        let list = format!(r"{FIND} '%P %s %T@\n' | LC_ALL=C sort");
        let mut shell = Command::new("sh");
        shell.args(["-c", &list, "list"]).arg(&root);
        let files = process::output(&mut shell, interrupts)?;
        Ok(Self { root, files })
    }

    /// The tree's identity: path, and a hash over names, sizes and times.
    pub(crate) fn id(&self) -> SourceId {
        let path = self.root.display().to_string();
        SourceId::Tree { path, digest: hex(&Sha256::digest(&self.files)) }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        let size = |line: &str| line.rsplit(' ').nth(1)?.parse::<u64>().ok();
        self.files.lines().filter_map(size).map(|bytes| bytes.next_multiple_of(4096)).sum()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Copies the files to a directory that does not exist yet.
    pub(crate) fn copy_to(&self, target: &Path, interrupts: &Interrupts) -> Result<()> {
        fs::create_dir_all(target).doing("creating", target)?;
        let copy = format!(
            r#"{FIND} '%P\0' | tar --create --null --files-from=- | tar --extract --directory "$2""#
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &copy, "copy"]).args([self.root.as_path(), target]);
        process::output(&mut shell, interrupts).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder;

    fn tree() -> tempfile::TempDir {
        let folder = folder(&[
            ("Makefile", "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n"),
            ("arch/um/Makefile", "x"),
            ("net/socket.c", "int x;\n"),
            ("net/socket.o", "object"),
            (".config", "CONFIG_X=y"),
            ("include/generated/autoconf.h", "x"),
        ]);
        std::os::unix::fs::symlink("socket.c", folder.path().join("net/link.c")).unwrap();
        folder
    }

    #[test]
    fn a_copy_has_the_source_and_not_what_a_build_left() {
        let folder = tree();
        let target = tempfile::tempdir().unwrap();
        let target = target.path().join("copy");
        let interrupts = Interrupts::arm().unwrap();
        let tree = Tree::open(folder.path(), &interrupts).unwrap();
        tree.copy_to(&target, &interrupts).unwrap();
        assert_eq!(fs::read_to_string(target.join("net/socket.c")).unwrap(), "int x;\n");
        assert_eq!(fs::read_link(target.join("net/link.c")).unwrap(), Path::new("socket.c"));
        for absent in ["net/socket.o", ".config", "include/generated/autoconf.h"] {
            assert!(!target.join(absent).exists(), "{absent}");
        }
    }

    #[test]
    fn the_identity_follows_the_files() {
        let folder = tree();
        let interrupts = Interrupts::arm().unwrap();
        let id = || Tree::open(folder.path(), &interrupts).unwrap().id();
        let before = id();
        assert_eq!(before, id());
        fs::write(folder.path().join("net/socket.o"), "another object").unwrap();
        assert_eq!(before, id(), "a built file is no source");
        fs::write(folder.path().join("net/socket.c"), "int xy;\n").unwrap();
        assert_ne!(before, id());
    }
}
