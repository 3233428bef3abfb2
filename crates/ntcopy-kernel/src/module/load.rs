//! Putting the module into the running kernel, and taking it out. Why it is refused, the kernel's
//! log says.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::system::{delete_module, finit_module, init_module};

use super::kept;
use super::status::{Status, Sysroot};
use crate::cache::Cache;
use crate::error::{Context, Error, Result};
use crate::tools;

/// Loads a module into the running kernel: the one that is named, else the one that was built or
/// installed for it. One that is loaded already is no error, and gives nothing.
pub fn load(named: Option<&Path>, cache: &Cache) -> Result<Option<PathBuf>> {
    let root = Sysroot("/".into());
    let status = Status::gather(&root, Some(cache))?;
    status.check_series()?;
    if status.loaded.is_some() {
        return Ok(None);
    }
    let path = named.map(Path::to_path_buf).or(status.file).ok_or_else(|| {
        let (release, modules) = (&status.release, cache.modules());
        Error::NotHere(format!(
            "there is no {} for Linux {release} (looked in {} and /lib/modules/{release}); this \
             makes one: ntcopy module build",
            kept::FILE,
            modules.display()
        ))
    })?;
    let mut kmsg = Kmsg::open();
    let Err(errno) = insert(&path)? else { return Ok(Some(path)) };
    let mut text = format!("the kernel refuses {}: {}", path.display(), reason(errno));
    for line in kmsg.as_mut().map(Kmsg::new_lines).unwrap_or_default() {
        text.push_str(&format!("\n  the kernel's log: {line}"));
    }
    Err(Error::Refused(text))
}

/// `MODULE_INIT_COMPRESSED_FILE` of linux/module.h.
const COMPRESSED_FILE: i32 = 4;

/// Gives the file to the kernel. What the kernel says is inside.
fn insert(path: &Path) -> Result<std::result::Result<(), Errno>> {
    let file = File::open(path).doing("opening", path)?;
    let Some(program) = unpacker(path) else { return Ok(finit_module(&file, c"", 0)) };
    match finit_module(&file, c"", COMPRESSED_FILE) {
        // It undoes one kind of compression, or none.
        Err(Errno::OPNOTSUPP | Errno::INVAL) => Ok(init_module(&unpack(program, file, path)?, c"")),
        said => Ok(said),
    }
}

/// The program that undoes the compression of a module that depmod and DKMS know by this name.
fn unpacker(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()? {
        "xz" => Some("xz"),
        "zst" => Some("zstd"),
        "gz" => Some("gzip"),
        _ => None,
    }
}

fn unpack(program: &str, file: File, path: &Path) -> Result<Vec<u8>> {
    if tools::find(program).is_none() {
        let path = path.display();
        return Err(Error::NotHere(format!(
            "{path} takes {program}, which is not here, to unpack"
        )));
    }
    let output = Command::new(program).arg("-dc").stdin(file).output().doing("running", program)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Refused(format!("{program} cannot unpack {}: {}", path.display(), said.trim())))
}

/// What the kernel's number means for a module.
fn reason(errno: Errno) -> String {
    let meaning = match errno {
        Errno::NOEXEC => "it is no module, or one of another kernel",
        Errno::PERM => "this takes root, in no container, and a kernel that still takes modules",
        Errno::NOENT => "it needs a symbol that this kernel does not have",
        Errno::KEYREJECTED | Errno::NOKEY => "this kernel takes signed modules alone",
        _ => return errno.to_string(),
    };
    format!("{meaning} ({errno})")
}

/// The kernel's log from now on.
struct Kmsg(File);

impl Kmsg {
    fn open() -> Option<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg").ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(Self(file))
    }

    fn new_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        // A record a read, until there is none: "priority,number,microseconds,flags;text", then
        // lines of properties.
        while let Ok(length @ 1..) = self.0.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..length]);
            let said = text.lines().next().and_then(|line| line.split_once(';'));
            lines.extend(said.map(|(_, said)| said.to_owned()));
        }
        lines
    }
}

/// Takes the module out of the running kernel. False if it wasn't loaded.
pub fn unload() -> Result<bool> {
    if Status::gather(&Sysroot("/".into()), None)?.loaded.is_none() {
        return Ok(false);
    }
    // Waiting for the last user is nothing that anybody has asked for.
    match delete_module(c"ntcopy", OFlags::NONBLOCK.bits().cast_signed()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(Error::Refused(format!(
            "the kernel keeps the module: {errno}; ntcopy module status says who uses it"
        ))),
    }
}
