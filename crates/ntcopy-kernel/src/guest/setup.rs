//! Making the guest a place where programs of the host feel at home.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::{Errno, retry_on_intr};
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::termios::{ControlModes, OptionalActions, tcdrain, tcgetattr, tcsetattr};

use super::Result;
use crate::boot::HOST_CPUS;
use crate::boot::spec::{LineKind, PORT_NAMES, Spec};

/// Goes to the command's directory, and stays in it whatever is mounted over its path.
pub(super) fn enter(directory: &Path) -> Result<()> {
    std::env::set_current_dir(directory)
        .map_err(|error| format!("the directory {}: {error}", directory.display()))
}

/// Lets nobody write to the host's tree but where the host says so.
pub(super) fn keep_host(writable: &[OsString]) -> Result<()> {
    for folder in writable {
        let kept = mount_bind(folder, folder);
        kept.map_err(|error| format!("mounting {}: {error}", folder.display()))?;
    }
    if writable.iter().any(|folder| folder == "/") {
        return Ok(());
    }
    let flags = MountFlags::BIND | MountFlags::RDONLY;
    mount_remount("/", flags, "").map_err(|error| format!("making / read-only: {error}"))
}

/// Mounts what belongs to a kernel and not to a disk.
pub(super) fn mount_all() -> Result<()> {
    let none = MountFlags::empty();
    mount_one("proc", "/proc", none)?;
    mount_one("sysfs", "/sys", none)?;
    mount_one("devtmpfs", "/dev", none)?;
    for folder in ["/dev/pts", "/dev/shm"] {
        made(fs::create_dir_all(folder), folder)?;
    }
    mount_with("devpts", "/dev/pts", none, "mode=0620,ptmxmode=0666")?;
    mount_one("tmpfs", "/dev/shm", MountFlags::NOSUID | MountFlags::NODEV)?;
    mount_one("tmpfs", "/run", MountFlags::NOSUID | MountFlags::NODEV)?;
    let links = [
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ];
    for (target, link) in links {
        made(symlink(target, link), link)?;
    }
    mount_extras()
}

/// Mounts what only some kernels have.
fn mount_extras() -> Result<()> {
    let extras = [
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("bpf", "/sys/fs/bpf"),
        ("mqueue", "/dev/mqueue"),
        ("hugetlbfs", "/dev/hugepages"),
    ];
    for (kind, target) in extras {
        if target.starts_with("/dev/") {
            made(fs::create_dir_all(target), target)?;
        }
        match mount(kind, target, kind, MountFlags::empty(), None) {
            // The kernel does not know the file system, or not the place that it makes for it.
            Ok(()) | Err(Errno::NODEV | Errno::NOENT) => {}
            Err(errno) => return Err(format!("mounting {kind} on {target}: {errno}")),
        }
    }
    Ok(())
}

/// Lets the kernel, and modprobe(8), find the modules that came with it.
pub(super) fn bind_modules(spec: &Spec) -> Result<()> {
    let Some(modules) = &spec.modules else { return Ok(()) };
    let target = "/lib/modules";
    if Path::new(target).is_dir() {
        return mount_bind(Path::new(&modules.folder), target)
            .map_err(|error| format!("mounting the kernel's modules on {target}: {error}"));
    }
    // The host's tree is not ours to change. Programs find the same place in their environment.
    match fs::write("/proc/sys/kernel/modprobe", modules.modprobe.as_bytes()) {
        // A kernel that takes no modules comes with a list of what is built in, and with no more.
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("telling the kernel where its modules are: {error}"))
        }
        _ => Ok(()),
    }
}

/// The options that modprobe(8) needs where there is no /lib/modules.
pub(super) fn modprobe_options(spec: &Spec) -> Option<OsString> {
    let folder = Path::new(&spec.modules.as_ref()?.folder);
    let base = folder.ancestors().nth(2).filter(|_| !Path::new("/lib/modules").is_dir())?;
    Some([OsStr::new("-d "), base.as_os_str()].into_iter().collect())
}

fn mount_one(kind: &str, target: &str, flags: MountFlags) -> Result<()> {
    mount_with(kind, target, flags, "")
}

fn mount_with(kind: &str, target: &str, flags: MountFlags, data: &str) -> Result<()> {
    let data = std::ffi::CString::new(data).map_err(|error| error.to_string())?;
    mount(kind, target, kind, flags, Some(data.as_c_str()))
        .map_err(|error| format!("mounting {kind} on {target}: {error}"))
}

fn made(result: io::Result<()>, what: &str) -> Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(format!("making {what}: {error}"))
        }
        _ => Ok(()),
    }
}

/// Opens a line to the host for both directions, and lets every byte through as it is.
pub(super) fn raw_line(kind: LineKind, line: usize) -> Result<File> {
    let path = match kind {
        LineKind::Serial => format!("/dev/ttyS{line}"),
        LineKind::VirtioPorts => port(PORT_NAMES[line])?,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC);
    let file = options.open(&path).map_err(|error| format!("opening {path}: {error}"))?;
    if kind == LineKind::Serial {
        let raw = tcgetattr(&file).and_then(|mut settings| {
            settings.make_raw();
            settings.control_modes |= ControlModes::CLOCAL;
            tcsetattr(&file, OptionalActions::Now, &settings)
        });
        raw.map_err(|error| format!("setting up serial line {line}: {error}"))?;
    }
    Ok(file)
}

/// How long a port of the virtual machine may take to be found.
const PORT_LIMIT: Duration = Duration::from_secs(60);

/// Finds the device of a port. The host names its ports one after the other, while init is
/// already at work.
fn port(name: &str) -> Result<String> {
    let begun = Instant::now();
    loop {
        let ports = fs::read_dir("/sys/class/virtio-ports").into_iter().flatten().flatten();
        let is_named = |port: &fs::DirEntry| {
            fs::read_to_string(port.path().join("name")).is_ok_and(|text| text.trim() == name)
        };
        if let Some(found) = ports.into_iter().find(is_named) {
            let device = Path::new("/dev").join(found.file_name());
            if device.exists() {
                return Ok(device.display().to_string());
            }
        }
        if begun.elapsed() > PORT_LIMIT {
            return Err(format!("this kernel finds no virtio port called {name}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the host has all that was written to a line. A virtio port has no such call: there
/// the host counts.
pub(super) fn drain(line: &File) -> io::Result<()> {
    match retry_on_intr(|| tcdrain(line)) {
        Ok(()) | Err(Errno::NOTTY) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Carries out the orders that come before the command.
pub(super) fn obey(spec: &Spec) -> Result<()> {
    // An option that a kernel does not know is handed to its first process.
    if std::env::var_os(HOST_CPUS).is_some() {
        return Err(format!(
            "this kernel cannot keep its CPUs on the host's: it has no {HOST_CPUS}=, of \
             kernel/series/7.3/um"
        ));
    }
    loopback_up().map_err(|error| format!("bringing up the interface lo: {error}"))?;
    let (current, maximum) = spec.open_files;
    setrlimit(Resource::Nofile, Rlimit { current, maximum })
        .map_err(|error| format!("setting the limit of open files: {error}"))?;
    for (key, value) in &spec.sysctls {
        sysctl(Path::new("/proc/sys"), key, value)?;
    }
    Ok(())
}

/// Writes a sysctl; the key has dots or slashes.
fn sysctl(root: &Path, key: &str, value: &str) -> Result<()> {
    // An interface's name may hold a dot.
    let relative = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
    let is_inside = !relative.is_empty()
        && !relative.starts_with('/')
        && relative.split('/').all(|part| !part.is_empty() && part != "..");
    if !is_inside {
        return Err(format!("sysctl '{key}': not a name of a setting"));
    }
    fs::write(root.join(relative), value).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("sysctl '{key}': this kernel has no such setting"),
        io::ErrorKind::PermissionDenied => format!("sysctl '{key}': cannot be set"),
        _ => format!("sysctl '{key}': the value '{value}' is refused: {error}"),
    })
}

/// Brings up lo, by a socket of the family that every kernel here has.
fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: ifreq is a plain C struct, for which all zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an ifreq; `request` is one, and lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder;

    fn root() -> tempfile::TempDir {
        folder(&[("net/core/ntcopy", "2"), ("net/eth0.1/mtu", "1")])
    }

    #[test]
    fn a_sysctl_is_written_in_both_spellings() {
        let root = root();
        sysctl(root.path(), "net.core.ntcopy", "0").unwrap();
        assert_eq!(fs::read_to_string(root.path().join("net/core/ntcopy")).unwrap(), "0");
        sysctl(root.path(), "net/core/ntcopy", "3").unwrap();
        assert_eq!(fs::read_to_string(root.path().join("net/core/ntcopy")).unwrap(), "3");
        sysctl(root.path(), "net/eth0.1/mtu", "9").unwrap();
        assert_eq!(fs::read_to_string(root.path().join("net/eth0.1/mtu")).unwrap(), "9");
    }

    #[test]
    fn a_bad_key_is_named_and_never_leaves_the_folder() {
        let root = root();
        for key in ["", "/etc/passwd", "..", "net/../../x", "net//core"] {
            let text = sysctl(root.path(), key, "1").unwrap_err();
            assert!(text.contains(&format!("'{key}'")), "{text}");
        }
    }
}
