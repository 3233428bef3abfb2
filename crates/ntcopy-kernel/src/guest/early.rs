//! The first process while it still stands in the initial ramdisk of a kernel whose drivers are
//! modules: loads them, mounts the host's tree in the ramdisk's place, and starts there again.

use std::convert::Infallible;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_move};

use super::Result;
use crate::boot::spec::{EARLY, Early};

/// Where the host's tree is mounted at first.
const ROOT: &str = "/root";

/// How long the device that the host's tree comes through may take to be found.
const DEVICE_LIMIT: Duration = Duration::from_secs(60);

/// The orders, if this is such a ramdisk.
pub(super) fn orders() -> Option<Vec<u8>> {
    fs::read(EARLY).ok()
}

/// Carries them out. What comes back is an error.
pub(super) fn run(orders: &[u8]) -> Result<Infallible> {
    let early: Early = serde_json::from_slice(orders).map_err(|error| error.to_string())?;
    for module in &early.modules {
        load(Path::new(module))?;
    }
    mount_root(&early)?;
    // The ramdisk's memory is the guest's; a program that runs may be removed.
    let mut rest = early.files.iter().chain(&early.modules).map(Path::new).collect::<Vec<_>>();
    rest.extend([Path::new("/init"), Path::new(EARLY)]);
    for file in rest {
        fs::remove_file(file).map_err(|error| format!("removing {}: {error}", file.display()))?;
    }
    enter().map_err(|errno| format!("entering the host's tree: {errno}"))?;
    let error = Command::new(&early.init).args(std::env::args_os().skip(1)).exec();
    Err(format!("starting {}: {error}", early.init.display()))
}

fn load(module: &Path) -> Result<()> {
    let bytes = fs::read(module).map_err(|error| format!("{}: {error}", module.display()))?;
    match rustix::system::init_module(&bytes, c"") {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(format!("loading {}: {errno}", module.display())),
    }
}

/// Mounts the host's tree, once the kernel has found what it comes through.
fn mount_root(early: &Early) -> Result<()> {
    let begun = Instant::now();
    let options = std::ffi::CString::new(early.options.as_str());
    let options = options.map_err(|error| error.to_string())?;
    loop {
        let flags = MountFlags::empty();
        match mount(&early.tag, ROOT, &early.file_system, flags, Some(options.as_c_str())) {
            Ok(()) => return Ok(()),
            Err(Errno::NOENT | Errno::NODEV) if begun.elapsed() < DEVICE_LIMIT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(errno) => return Err(format!("mounting the host's tree: {errno}")),
        }
    }
}

/// Makes what is mounted the root, as switch_root(8) does.
fn enter() -> rustix::io::Result<()> {
    rustix::process::chdir(ROOT)?;
    mount_move(".", "/")?;
    rustix::process::chroot(".")?;
    rustix::process::chdir("/")
}
