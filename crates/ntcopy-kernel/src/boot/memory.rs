//! Where the guest's memory lies on the host.
//!
//! User-mode Linux maps its memory from a file without a name in a directory that it takes from
//! TMPDIR, and runs code from it (arch/um/os-Linux/mem.c). A kernel on bare metal reaches all
//! memory through huge pages, so this one gets them where the host gives them: its copies would
//! else wait for the TLB more than for memory.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open, statfs};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use super::limit::{self, Left};
use crate::error::{Context, Error, Result};
use crate::room;
use crate::temporary::Folder;

/// Set in the environment of a guest whose memory is in huge pages of the host.
pub const HUGE_PAGES_VARIABLE: &str = "NTCOPY_GUEST_HUGE_PAGES";

/// f_type of tmpfs, from linux/magic.h.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Whether tmpfs may have huge pages at all.
const SHMEM_ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// What a guest's kernel and page tables may take beside its memory, in bytes.
const BESIDE_BYTES: u64 = 64 << 20;

pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// A file system of huge pages that is mounted nowhere; gone with the last that has it open.
    pub(super) huge: Option<OwnedFd>,
    /// Set where `path` is a folder of its own.
    _folder: Option<Folder>,
}

impl Directory {
    /// A folder of the guest's own, which is all of `parent` that the guest may write.
    fn below(parent: &Path) -> Result<Self> {
        let folder = Folder::below(parent, "ntcopy-memory-")?;
        Ok(Self { path: folder.path().to_path_buf(), huge: None, _folder: Some(folder) })
    }

    /// Finds one with room for the guest's memory: a tmpfs of huge pages, which only root can make,
    /// else /dev/shm, else TMPDIR where that is a tmpfs. On a disk the host would write the guest's
    /// memory back, and the timings with it.
    pub(super) fn find(mem_bytes: u64) -> Result<Self> {
        if available_bytes()? >= mem_bytes
            && let Ok(huge) = huge_tmpfs(mem_bytes + BESIDE_BYTES)
        {
            let path = PathBuf::from(format!("/proc/self/fd/{}", huge.as_raw_fd()));
            // The kernel opens its file the same way.
            if open(&path, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RWXU).is_ok() {
                return Ok(Self { path, huge: Some(huge), _folder: None });
            }
        }
        let shm = Path::new("/dev/shm");
        let first = match check(shm, mem_bytes) {
            Ok(()) => return Self::below(shm),
            Err(error) => error,
        };
        if let Some(directory) = std::env::var_os("TMPDIR").map(PathBuf::from)
            && is_tmpfs(&directory)
            && check(&directory, mem_bytes).is_ok()
        {
            return Self::below(&directory);
        }
        Err(first)
    }
}

/// Makes a tmpfs whose files have huge pages, as far as the host has them free.
fn huge_tmpfs(size_bytes: u64) -> rustix::io::Result<OwnedFd> {
    // It goes before what a mount asks for.
    let is_denied = |text: String| text.contains("[deny]");
    if std::fs::read_to_string(SHMEM_ENABLED).is_ok_and(is_denied) {
        return Err(rustix::io::Errno::OPNOTSUPP);
    }
    let tmpfs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in
        [("huge", "always"), ("mode", "0700"), ("size", size_bytes.to_string().as_str())]
    {
        fsconfig_set_string(&tmpfs, key, value)?;
    }
    fsconfig_create(&tmpfs)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&tmpfs, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

fn is_tmpfs(path: &Path) -> bool {
    statfs(path).is_ok_and(|stat| stat.f_type as u64 == TMPFS_MAGIC)
}

/// Whether the guest's memory fits into a directory, and may be run from it.
fn check(directory: &Path, mem_bytes: u64) -> Result<()> {
    if room::is_noexec(directory)? {
        return Err(Error::NotHere(format!(
            "{} is mounted noexec, and a um kernel runs code from its memory there; as root: \
             mount -o remount,exec {0}; in a container, or else: set TMPDIR to another tmpfs \
             (docker run --tmpfs /guest:exec -e TMPDIR=/guest)",
            directory.display()
        )));
    }
    let fix = |what: &str| {
        format!(
            "give the guest less (--mem), {what}, or set TMPDIR to a directory on a larger tmpfs"
        )
    };
    let free_bytes = room::free_bytes(directory)?;
    let short = |free_bytes, fix| no_room(directory, mem_bytes, free_bytes, fix);
    if free_bytes < mem_bytes {
        let mib = mem_bytes.div_ceil(1 << 20);
        let grow =
            format!("enlarge it (as root: mount -o remount,size={mib}M {})", directory.display());
        return Err(short(free_bytes, fix(&grow)));
    }
    // The pages of a tmpfs are the host's memory; a guest that touches more than there is gets
    // killed in the middle of a measurement.
    let available = Available::now()?;
    if available.bytes < mem_bytes {
        return Err(short(available.bytes, fix(&available.more())));
    }
    Ok(())
}

/// Whether the host has the memory of an emulated machine.
pub(super) fn check_host(mem_bytes: u64) -> Result<()> {
    let available = Available::now()?;
    if available.bytes >= mem_bytes {
        return Ok(());
    }
    let fix = format!("give the guest less (--mem), or {}", available.more());
    Err(no_room("this host".as_ref(), mem_bytes, available.bytes, fix))
}

fn no_room(path: &Path, needed_bytes: u64, free_bytes: u64, fix: String) -> Error {
    let purpose = "the guest's memory".into();
    Error::NoRoom { path: path.to_path_buf(), purpose, needed_bytes, free_bytes, fix }
}

/// Memory that is free for this process.
struct Available {
    bytes: u64,
    /// The file with the limit of a control group, where that is less than the machine has.
    limit: Option<PathBuf>,
}

impl Available {
    fn now() -> Result<Self> {
        let bytes = of_machine()?;
        Ok(match limit::lowest(Path::new("/")) {
            Some(Left { bytes: left, file }) if left < bytes => {
                Self { bytes: left, limit: Some(file) }
            }
            _ => Self { bytes, limit: None },
        })
    }

    /// How there would be more.
    fn more(&self) -> String {
        match &self.limit {
            Some(file) => format!(
                "raise the memory limit of the container or service that this runs in ({})",
                file.display()
            ),
            None => "free memory on the host".to_owned(),
        }
    }
}

/// Bytes of memory that there are for this process without pushing anything out: the machine's, and
/// what the limits of its control groups leave.
pub fn available_bytes() -> Result<u64> {
    Ok(Available::now()?.bytes)
}

fn of_machine() -> Result<u64> {
    let path = "/proc/meminfo";
    let text = std::fs::read_to_string(path).doing("reading", path)?;
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    });
    Ok(kib.map_or(u64::MAX, |kib| kib * 1024))
}
