//! A source tree of the user's own: looked at and copied, never changed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::cache::{SourceId, children};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::series::hex;

/// A tree, and the files in it that are source.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    /// Relative to the root, sorted.
    files: Vec<PathBuf>,
}

impl Tree {
    /// Looks at the tree that `NTCOPY_LINUX` names.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        let root = fs::canonicalize(root).doing("opening NTCOPY_LINUX", root)?;
        super::version(&root)?;
        let files = match git_files(&root) {
            Some(files) => files,
            None => walked_files(&root)?,
        };
        Ok(Self { root, files })
    }

    /// The tree's identity: path, and a hash over names, sizes and times.
    pub(crate) fn id(&self) -> Result<SourceId> {
        let mut hasher = Sha256::new();
        for file in &self.files {
            let path = self.root.join(file);
            let metadata = fs::symlink_metadata(&path).doing("looking at", &path)?;
            hasher.update((file.as_os_str().len() as u64).to_le_bytes());
            hasher.update(file.as_os_str().as_bytes());
            for number in [metadata.len() as i64, metadata.mtime(), metadata.mtime_nsec()] {
                hasher.update(number.to_le_bytes());
            }
        }
        Ok(SourceId::Tree {
            path: self.root.display().to_string(),
            digest: hex(&hasher.finalize()),
        })
    }

    /// Size of the copy in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        let size = |file: &PathBuf| {
            fs::symlink_metadata(self.root.join(file)).map_or(0, |m| m.len().next_multiple_of(4096))
        };
        self.files.iter().map(size).sum()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Copies the files to a directory that does not exist yet.
    pub(crate) fn copy_to(&self, target: &Path, interrupts: &Interrupts) -> Result<()> {
        let mut made = BTreeSet::new();
        for file in &self.files {
            interrupts.check()?;
            let (from, to) = (self.root.join(file), target.join(file));
            if let Some(parent) = to.parent()
                && made.insert(parent.to_path_buf())
            {
                fs::create_dir_all(parent).doing("creating", parent)?;
            }
            if from.is_symlink() {
                let link = fs::read_link(&from).doing("reading", &from)?;
                std::os::unix::fs::symlink(link, &to).doing("creating", &to)?;
            } else {
                // Shares the blocks where the file system can.
                fs::copy(&from, &to).doing("copying to", &to)?;
            }
        }
        Ok(())
    }
}

/// The tracked files and the new ones, when the tree is a git work tree that git lets us read.
fn git_files(root: &Path) -> Option<Vec<PathBuf>> {
    if !root.join(".git").exists() {
        return None;
    }
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    let files = names.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name)));
    // A file that was deleted and not committed is still in the index.
    let files = files.filter(|file| root.join(file).symlink_metadata().is_ok());
    let files: BTreeSet<PathBuf> = files.collect();
    Some(files.into_iter().collect())
}

/// Every file but what a build in the tree leaves behind.
fn walked_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for path in children(&root.join(&folder))? {
            let name = path.file_name().unwrap_or_default();
            let relative = folder.join(name);
            if is_built(&relative) {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(relative);
            } else {
                files.push(relative);
            }
        }
    }
    files.sort();
    if files.is_empty() {
        let reason = "it is empty".to_owned();
        return Err(Error::NotATree { path: root.to_path_buf(), reason });
    }
    Ok(files)
}

/// What a build makes, by its name: enough to get a tree that a configuration can start from.
fn is_built(relative: &Path) -> bool {
    let name = relative.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let extension = relative.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let generated = ["include/config", "include/generated", ".git", ".config", "vmlinux", "linux"];
    generated.iter().any(|path| relative == Path::new(path))
        || relative.ends_with("include/generated")
        || matches!(extension, "o" | "a" | "ko" | "cmd" | "mod" | "order" | "builtin")
        || name.ends_with(".mod.c")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("Makefile", "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n");
        put("arch/um/Makefile", "x");
        put("net/socket.c", "int x;\n");
        put("net/socket.o", "object");
        put(".config", "CONFIG_X=y");
        put("include/generated/autoconf.h", "x");
        std::os::unix::fs::symlink("socket.c", folder.path().join("net/link.c")).unwrap();
        folder
    }

    #[test]
    fn a_copy_has_the_source_and_not_what_a_build_left() {
        let folder = tree();
        let target = tempfile::tempdir().unwrap();
        let target = target.path().join("copy");
        let interrupts = Interrupts::arm().unwrap();
        let tree = Tree::open(folder.path()).unwrap();
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
        let id = || Tree::open(folder.path()).unwrap().id().unwrap();
        let before = id();
        assert_eq!(before, id());
        fs::write(folder.path().join("net/socket.o"), "another object").unwrap();
        assert_eq!(before, id(), "a built file is no source");
        fs::write(folder.path().join("net/socket.c"), "int xy;\n").unwrap();
        assert_ne!(before, id());
    }

    #[test]
    fn a_folder_that_is_no_kernel_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let text = Tree::open(folder.path()).unwrap_err().to_string();
        assert!(text.contains("is not a Linux source tree"), "{text}");
    }
}
