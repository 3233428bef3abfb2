//! Putting the module into the running kernel, and taking it out.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;

use crate::cache::Cache;
use crate::error::{Context, Error, Result};
use crate::tools;

use super::Modinfo;
use super::error::ModuleError;
use super::kept;
use super::refusal::Refusal;
use super::status::{Status, Sysroot};

/// What [`load`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The module that is in the kernel now; nothing where one was before.
    pub path: Option<PathBuf>,
}

/// Loads a module into the running kernel: the one that is named, else the one that was built or
/// installed for it. One that is loaded already is no error.
///
/// # Errors
///
/// [`ModuleError::HasSeries`], [`ModuleError::NotBuilt`], and [`ModuleError::Refused`] with the
/// reason in words.
pub fn load(named: Option<&Path>, cache: &Cache) -> Result<Loaded> {
    let root = Sysroot("/".into());
    let status = Status::gather(&root, None)?;
    if status.has_series {
        return Err(ModuleError::HasSeries.into());
    }
    if status.loaded.is_some() {
        return Ok(Loaded { path: None });
    }
    let path = match named {
        Some(path) => path.to_path_buf(),
        None => find(cache, &root, &status.release)?,
    };
    let file = File::open(&path).doing("opening", &path)?;
    let unpacked = unpacked(&path, file)?;
    let info = Modinfo::of(&unpacked, &path)?;
    if !info.is_module {
        let text = format!("{} is not a kernel module", path.display());
        return Err(ModuleError::Refused(text).into());
    }
    let mut kmsg = Kmsg::open();
    load_before(&info, &root);
    match rustix::system::finit_module(&unpacked, c"", 0) {
        Ok(()) => Ok(Loaded { path: Some(path) }),
        Err(errno) => {
            let log = kmsg.as_mut().map(Kmsg::new_lines).unwrap_or_default();
            let key = PathBuf::from("/var/lib/dkms/mok.pub");
            let refusal = Refusal {
                errno,
                module: &path,
                info: &info,
                // The kernel may have found out more than its files tell.
                status: &status,
                is_root: rustix::process::geteuid().is_root(),
                dkms_key: Some(key).filter(|key| key.is_file()),
                log: &log,
            };
            Err(ModuleError::Refused(refusal.text()).into())
        }
    }
}

fn find(cache: &Cache, root: &Sysroot, release: &str) -> Result<PathBuf> {
    kept::find(cache, &root.0, release)?.ok_or_else(|| {
        let looked_in = format!("{} and /lib/modules/{release}", cache.modules().display());
        ModuleError::NotBuilt { release: release.into(), looked_in }.into()
    })
}

impl Modinfo {
    fn of(mut file: &File, path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).doing("reading", path)?;
        file.rewind().doing("reading", path)?;
        Ok(Self::parse(&bytes))
    }
}

/// The module's file without its compression: not every kernel undoes that itself.
fn unpacked(path: &Path, file: File) -> Result<File> {
    let program = match path.extension().and_then(|ending| ending.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return Ok(file),
    };
    let unpacked = tempfile::tempfile().doing("creating", std::env::temp_dir())?;
    let out = unpacked.try_clone().doing("unpacking", path)?;
    let mut command = Command::new(program);
    command.arg("-dc").stdin(file).stdout(out).stderr(Stdio::null());
    let status = command.status().doing("running", program)?;
    if !status.success() {
        let text = format!("{program} cannot unpack {}: {status}", path.display());
        return Err(Error::NotHere(text));
    }
    // The kernel takes no file that is open for writing.
    let again = format!("/proc/self/fd/{}", unpacked.as_raw_fd());
    File::open(&again).doing("opening", again)
}

/// Loads what the module depends on. What fails here the module's own refusal will tell of.
fn load_before(info: &Modinfo, root: &Sysroot) {
    for name in &info.depends {
        let is_here = root.path("sys/module").join(name.replace('-', "_")).is_dir();
        if !is_here && tools::find("modprobe").is_some() {
            let _ = Command::new("modprobe").arg("-q").arg(name).stdin(Stdio::null()).status();
        }
    }
}

/// The kernel's log from now on.
struct Kmsg(File);

impl Kmsg {
    fn open() -> Option<Self> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg").ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(Self(file))
    }

    /// What was said of the module meanwhile, or of modules at all.
    fn new_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        // A record a read, until there is none.
        while let Ok(length @ 1..) = self.0.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..length]);
            // "priority,number,microseconds,flags;text", then lines of properties.
            let Some(said) = text.lines().next().and_then(|line| line.split_once(';')) else {
                continue;
            };
            if is_about_modules(said.1) && lines.len() < 5 {
                lines.push(said.1.to_owned());
            }
        }
        lines
    }
}

fn is_about_modules(line: &str) -> bool {
    ["ntcopy", "Lockdown", "module verification", "Loading of"].iter().any(|it| line.contains(it))
}

/// Takes the module out of the running kernel. False if it wasn't loaded. `attached` and
/// `lingering` are what the module counts, as its device tells them.
///
/// # Errors
///
/// [`ModuleError::InUse`] while sockets or processes hold it, with what to do;
/// [`ModuleError::Refused`] for anything else that the kernel says.
pub fn unload(attached: u64, lingering: u64) -> Result<bool> {
    let root = Sysroot("/".into());
    if Status::gather(&root, None)?.loaded.is_none() {
        return Ok(false);
    }
    if attached + lingering > 0 {
        return Err(ModuleError::InUse(in_use(attached, lingering, &holders(&root))).into());
    }
    let refused = |text: String| Err(ModuleError::Refused(text).into());
    // Waiting for the last user is nothing that anybody has asked for.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    match rustix::system::delete_module(c"ntcopy", nonblocking) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(Errno::AGAIN | Errno::BUSY) => {
            Err(ModuleError::InUse(in_use(0, 0, &holders(&root))).into())
        }
        Err(Errno::PERM) if !rustix::process::geteuid().is_root() => {
            refused("unloading a module needs root: sudo ntcopy module unload".into())
        }
        Err(errno) => refused(format!("the kernel keeps the module: {errno}")),
    }
}

/// The processes that have the device open: number and name. Root sees all of them.
pub fn holders(root: &Sysroot) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.path("proc")).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let is_device = |file: fs::DirEntry| {
            fs::read_link(file.path()).is_ok_and(|to| to == Path::new("/dev/ntcopy"))
        };
        if files.into_iter().any(is_device) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push((pid, name.trim().to_owned()));
        }
    }
    found.sort();
    found
}

/// Why the module stays, and what to do.
fn in_use(attached: u64, lingering: u64, holders: &[(u32, String)]) -> String {
    let sockets =
        |count: u64| if count == 1 { "1 socket is".into() } else { format!("{count} sockets are") };
    let mut reasons = Vec::new();
    if attached > 0 {
        reasons.push(format!("{} attached", sockets(attached)));
    }
    if lingering > 0 {
        reasons.push(format!("{} detached, but not closed yet", sockets(lingering)));
    }
    if !holders.is_empty() {
        let names: Vec<String> =
            holders.iter().map(|(pid, name)| format!("{pid} ({name})")).collect();
        reasons.push(format!("/dev/ntcopy is open in process {}", names.join(", ")));
    }
    if reasons.is_empty() {
        reasons.push("it was held just now".into());
    }
    format!(
        "the module is in use: {}. It can go when the programs that use it have closed their \
         sockets or ended; until then sysctl net.core.ntcopy=0 has hints ignored",
        reasons.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_the_module_is_counted_and_named() {
        let text = in_use(2, 1, &[(7, "storaged".into()), (9, "proxyd".into())]);
        for part in [
            "2 sockets are attached",
            "1 socket is detached, but not closed yet",
            "open in process 7 (storaged), 9 (proxyd)",
            "net.core.ntcopy=0",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(in_use(0, 0, &[]).contains("in use: it was held"));
    }

    #[test]
    fn processes_with_the_device_are_found_by_their_open_files() {
        let root = tempfile::tempdir().unwrap();
        for (pid, target) in [("12", "/dev/ntcopy"), ("34", "/dev/null"), ("self", "/dev/ntcopy")] {
            let folder = root.path().join("proc").join(pid);
            fs::create_dir_all(folder.join("fd")).unwrap();
            fs::write(folder.join("comm"), "name\n").unwrap();
            std::os::unix::fs::symlink(target, folder.join("fd/3")).unwrap();
        }
        let sysroot = Sysroot(root.path().to_path_buf());
        assert_eq!(holders(&sysroot), [(12, "name".to_owned())]);
    }

    #[test]
    fn a_compressed_module_is_unpacked_and_a_damaged_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ntcopy.ko");
        fs::write(&path, "\0version=0.1.0\0").unwrap();
        assert!(Command::new("gzip").arg(&path).status().unwrap().success());
        let packed = folder.path().join("ntcopy.ko.gz");
        let file = unpacked(&packed, File::open(&packed).unwrap()).unwrap();
        assert_eq!(Modinfo::of(&file, &path).unwrap().version.as_deref(), Some("0.1.0"));
        fs::write(&packed, "half of it").unwrap();
        let error = unpacked(&packed, File::open(&packed).unwrap()).unwrap_err();
        assert!(error.to_string().contains("gzip cannot unpack"), "{error}");
    }
}
