//! The initial ramdisk of a kernel whose drivers are modules: those that it takes to see the host's
//! tree, in the order in which they go in, and init, which puts them there.
//!
//! The format is cpio's "newc", as Documentation/driver-api/early-userspace/buffer-format.rst of
//! the kernel describes it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::spec::{EARLY, Early};
use crate::cache::children;
use crate::error::{Context, Error, Result};
use crate::module::unpacked;

/// What lets the guest see the host's tree over 9p, and its lines.
const WANTED: [&str; 4] = ["virtio_pci", "9pnet_virtio", "9p", "virtio_console"];

/// Writes the ramdisk to `file`: the modules of the only kernel below `modules`, and `init` with
/// the libraries that it is linked with. `early` says what to do then; its modules are set here.
pub(super) fn write(modules: &Path, init: &Path, mut early: Early, file: &Path) -> Result<()> {
    let no_modules = || Error::Damaged {
        path: modules.to_path_buf(),
        reason: "there are no modules of a kernel in it".into(),
    };
    let tree = children(modules)?.into_iter().next().ok_or_else(no_modules)?;
    let order = load_order(&tree)?;
    let out = BufWriter::new(File::create(file).doing("creating", file)?);
    let mut archive = Cpio { out, folders: HashSet::new(), inode: 0 };
    for (number, module) in order.iter().enumerate() {
        let path = tree.join(module);
        let packed = File::open(&path).doing("opening", &path)?;
        let mut bytes = Vec::new();
        let mut file = unpacked(&path, packed)?;
        file.read_to_end(&mut bytes).doing("reading", &path)?;
        let name = format!("/modules/{number:02}-{}.ko", stem(module));
        archive.file(Path::new(&name), &bytes).doing("writing", &name)?;
        early.modules.push(name.into());
    }
    archive.folder(Path::new("/root")).doing("writing", file)?;
    for library in libraries(init)? {
        archive.copy(&library, &library)?;
        early.files.push(library);
    }
    archive.copy(init, Path::new("/init"))?;
    let orders = serde_json::to_vec(&early).map_err(io::Error::from).doing("writing", file)?;
    archive.file(Path::new(EARLY), &orders).doing("writing", file)?;
    archive.end().doing("writing", file)
}

/// The modules to load, by their files below the kernel's folder, each after what it needs.
fn load_order(tree: &Path) -> Result<Vec<String>> {
    let read = |name: &str| {
        let path = tree.join(name);
        fs::read_to_string(&path).doing("reading", path)
    };
    let needs = read("modules.dep")?;
    let builtin = read("modules.builtin")?;
    let mut order: Vec<String> = Vec::new();
    for wanted in WANTED {
        let line = needs.lines().find_map(|line| {
            let (module, needs) = line.split_once(':')?;
            (stem(module) == wanted).then_some((module, needs))
        });
        let Some((module, needs)) = line else {
            if builtin.lines().any(|line| stem(line) == wanted) {
                continue;
            }
            return Err(Error::Damaged {
                path: tree.to_path_buf(),
                reason: format!(
                    "this kernel has no {wanted}, without which it cannot be booted here"
                ),
            });
        };
        // depmod names first what has to be loaded last.
        let needs = needs.split_whitespace().rev();
        for file in needs.chain(std::iter::once(module)) {
            if !order.iter().any(|known| known == file) {
                order.push(file.to_owned());
            }
        }
    }
    Ok(order)
}

/// The name of a module, as the kernel has it: of its file, without endings.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name).replace('-', "_")
}

/// The libraries that a program is linked with, its loader among them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let mut ldd = Command::new("ldd");
    let output = ldd.arg(program).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.doing("running", "ldd")?;
    Ok(listed(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads what ldd prints: "libc.so.6 => /lib/…/libc.so.6 (0x…)", "/lib64/ld-linux-x86-64.so.2 (0x…)".
/// A program without libraries has none.
fn listed(text: &str) -> Vec<PathBuf> {
    let paths = text.lines().filter_map(|line| {
        let file = line.split_once("=>").map_or(line, |(_, file)| file).trim();
        let file = file.rsplit_once(" (").map_or(file, |(file, _)| file);
        file.starts_with('/').then(|| PathBuf::from(file))
    });
    paths.collect()
}

/// A cpio archive that is being written.
struct Cpio<W> {
    out: W,
    /// What there is already.
    folders: HashSet<PathBuf>,
    inode: u32,
}

/// Types and rights, as stat(2) has them.
const FOLDER_MODE: u32 = 0o040_755;
const FILE_MODE: u32 = 0o100_755;

impl<W: Write> Cpio<W> {
    /// A file, and the folders above it.
    fn file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            self.folder(parent)?;
        }
        self.entry(path, FILE_MODE, bytes)
    }

    /// A file of the host's.
    fn copy(&mut self, from: &Path, to: &Path) -> Result<()> {
        let bytes = fs::read(from).doing("reading", from)?;
        self.file(to, &bytes).doing("writing", to)
    }

    /// A folder, and those above it.
    fn folder(&mut self, path: &Path) -> io::Result<()> {
        let above: Vec<&Path> = path.ancestors().filter(|path| path.parent().is_some()).collect();
        for folder in above.into_iter().rev() {
            if self.folders.insert(folder.to_path_buf()) {
                self.entry(folder, FOLDER_MODE, &[])?;
            }
        }
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        self.entry(Path::new("TRAILER!!!"), 0, &[])?;
        self.out.flush()
    }

    fn entry(&mut self, path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let too_large = |_| io::Error::other(format!("{} is larger than 4 GiB", path.display()));
        let size = u32::try_from(bytes.len()).map_err(too_large)?;
        let name = path.as_os_str().as_bytes();
        let name = name.strip_prefix(b"/").unwrap_or(name);
        self.inode += 1;
        // ino, mode, uid, gid, nlink, mtime, filesize, four device numbers, namesize, check.
        let name_size = name.len() as u32 + 1;
        let fields = [self.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08x}"));
        }
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(name)?;
        // The name ends in a zero byte; header and name together fill words of four, and so does
        // the file.
        let padding = 1 + (4 - (header.len() + name.len() + 1) % 4) % 4;
        self.out.write_all(&[0; 4][..padding])?;
        self.out.write_all(bytes)?;
        self.out.write_all(&[0; 4][..(4 - bytes.len() % 4) % 4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_go_in_after_what_they_need_and_what_is_built_in_stays_out() {
        let tree = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(tree.path().join(name), text).unwrap();
        let dep = "kernel/net/9p/9pnet.ko.xz:\n\
            kernel/drivers/virtio/virtio_pci.ko.xz: kernel/v/virtio.ko.xz kernel/v/virtio_ring.ko.xz\n\
            kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n\
            kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/v/virtio.ko.xz \
            kernel/v/virtio_ring.ko.xz\n";
        put("modules.dep", dep);
        put("modules.builtin", "kernel/drivers/char/virtio_console.ko\n");
        let order: Vec<String> =
            load_order(tree.path()).unwrap().iter().map(|module| stem(module)).collect();
        assert_eq!(
            order,
            ["virtio_ring", "virtio", "virtio_pci", "9pnet", "9pnet_virtio", "netfs", "9p"]
        );
        put("modules.builtin", "");
        let error = load_order(tree.path()).unwrap_err().to_string();
        assert!(error.contains("virtio_console"), "{error}");
    }

    #[test]
    fn ldd_s_words_become_files() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f1)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f2)\n";
        let expected = ["/lib/x/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(listed(text), expected.map(PathBuf::from));
        assert!(listed("\tstatically linked\n").is_empty());
    }

    #[test]
    fn an_archive_has_words_of_four_and_its_folders_first() {
        let mut bytes = Vec::new();
        let mut archive = Cpio { out: &mut bytes, folders: HashSet::new(), inode: 0 };
        archive.file(Path::new("/a/b/c"), b"12345").unwrap();
        archive.file(Path::new("/a/d"), b"1234").unwrap();
        archive.end().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part}"));
        assert!(
            at("a\0") < at("a/b\0") && at("a/b\0") < at("a/b/c\0") && at("a/d\0") < at("TRAILER")
        );
        assert_eq!(text.matches("070701").count(), 5);
        // cpio(1) reads it, where there is one.
        let Some(cpio) = crate::tools::find("cpio") else { return };
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("it"), &bytes).unwrap();
        let input = File::open(folder.path().join("it")).unwrap();
        let mut cpio = Command::new(cpio);
        cpio.args(["-i", "--quiet"]).current_dir(folder.path()).stdin(input);
        assert!(cpio.status().unwrap().success());
        assert_eq!(fs::read(folder.path().join("a/b/c")).unwrap(), b"12345");
    }
}
