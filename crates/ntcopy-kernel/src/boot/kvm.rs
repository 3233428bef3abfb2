//! Whether KVM runs a guest here. `/dev/kvm` may open, and a guest die in it all the same, or stand
//! still: in a guest of a cloud, say. So it is tried once for each boot of the host, and the answer
//! is kept in the cache.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, Pid, sched_setaffinity};

use super::qemu::PROGRAM;
use crate::cache::Cache;
use crate::error::{Context as _, Error, Result};
use crate::process::Group;
use crate::temporary::Folder;

/// How long a guest may take until it is known that it stands still.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// What the host calls its present boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// What the cache's file says where KVM works.
const WORKS: &str = "works";
const FIRMWARE_BYTES: usize = 64 << 10;
/// The guest writes 16 there, and QEMU ends with 2 * 16 + 1.
const EXIT_PORT: u8 = 0xf4;
const EXIT_CODE: i32 = 33;

/// An error with the reason where KVM does not run a guest.
pub(super) fn check() -> Result<()> {
    works()?.map_err(|why| Error::NotHere(format!("{why}: use --kernel um")))
}

/// Whether KVM runs a guest, or why not. It takes [`LIMIT`] at most.
pub(super) fn works() -> Result<Result<(), String>> {
    let verdict = Verdict::of_this_boot()?;
    let known = match verdict.kept() {
        Some(known) => known,
        None => match File::options().read(true).write(true).open("/dev/kvm") {
            // A group may be joined at any time, so this is not kept.
            Err(error) => Err(format!("/dev/kvm: {error}")),
            Ok(_) => {
                let found = try_guest()?;
                verdict.keep(&found);
                found
            }
        },
    };
    Ok(known.map_err(|why| format!("KVM runs no guest on this machine ({why})")))
}

/// Keeps that a whole kernel died or stood still, where the small guest had not.
pub(super) fn did_not_come_up() {
    if let Ok(verdict) = Verdict::of_this_boot() {
        let seconds = LIMIT.as_secs();
        verdict.keep(&Err(format!(
            "a kernel that was booted in it did not come up within {seconds} s"
        )));
    }
}

/// Where it is kept, and for which boot.
struct Verdict {
    file: PathBuf,
    boot: String,
}

impl Verdict {
    fn of_this_boot() -> Result<Verdict> {
        let boot = fs::read_to_string(BOOT_ID).doing("reading", BOOT_ID)?.trim().to_owned();
        Ok(Verdict { file: Cache::locate()?.root().join("kvm"), boot })
    }

    fn kept(&self) -> Option<Result<(), String>> {
        let text = fs::read_to_string(&self.file).ok()?;
        let (boot, said) = text.split_once('\n')?;
        (boot == self.boot).then(|| match said.trim() {
            WORKS => Ok(()),
            why => Err(why.to_owned()),
        })
    }

    /// Where it cannot be kept, it is tried again the next time.
    fn keep(&self, found: &Result<(), String>) {
        let said = found.as_ref().err().map_or(WORKS, String::as_str);
        let _ = self.file.parent().map(fs::create_dir_all);
        let _ = fs::write(&self.file, format!("{}\n{said}\n", self.boot));
    }
}

/// Starts a guest of a few instructions, as kernels are started, and waits for its end.
fn try_guest() -> Result<Result<(), String>> {
    let folder = Folder::new("ntcopy-kvm-")?;
    let firmware = folder.path().join("firmware");
    fs::write(&firmware, firmware_image()).doing("writing", &firmware)?;
    let words = folder.path().join("words");
    let errors = File::create(&words).doing("creating", &words)?;
    let mut command = Command::new(PROGRAM);
    command
        .args(super::qemu::kvm_machine())
        .args(["-m", "16M", "-display", "none", "-nodefaults", "-no-user-config", "-no-reboot"])
        .args(["-device", &format!("isa-debug-exit,iobase={EXIT_PORT},iosize=1"), "-bios"])
        .arg(&firmware)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors);
    let mut guest = Group::start(&mut command).doing("starting", PROGRAM)?;
    let begun = Instant::now();
    let status = guest.wait_while(|| begun.elapsed() <= LIMIT).doing("waiting for", PROGRAM)?;
    Ok(judge(status, &first_line(&words)))
}

fn judge(status: Option<ExitStatus>, said: &str) -> Result<(), String> {
    match status {
        Some(status) if status.code() == Some(EXIT_CODE) => Ok(()),
        Some(status) => {
            let how = match status.signal() {
                Some(signal) => format!("signal {signal}"),
                None => format!("{status}"),
            };
            Err(format!("QEMU ended by {how}: {said}"))
        }
        None => Err(format!("a guest stood still for {} s: {said}", LIMIT.as_secs())),
    }
}

fn first_line(words: &Path) -> String {
    let mut text = Vec::new();
    let _ = File::open(words).and_then(|file| file.take(4096).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
}

/// Firmware whose first instructions end the machine: mov al, 16; out PORT, al; hlt.
fn firmware_image() -> Vec<u8> {
    const RESET: usize = FIRMWARE_BYTES - 16;
    let mut image = vec![0xf4; FIRMWARE_BYTES];
    image[RESET..RESET + 4].copy_from_slice(&[0xb0, 16, 0xe6, EXIT_PORT]);
    image
}

/// Puts each virtual CPU of a QEMU on one of the host's; its threads have names of their own.
pub(super) fn pin(qemu: Pid, cpus: &[usize]) -> Result<()> {
    let folder = format!("/proc/{}/task", qemu.as_raw_nonzero());
    for entry in fs::read_dir(&folder).doing("reading", &folder)?.flatten() {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let (Some(number), Some(thread)) = (virtual_cpu(&name), thread.and_then(Pid::from_raw))
        else {
            continue;
        };
        if let Some(cpu) = cpus.get(number) {
            let mut set = CpuSet::new();
            set.set(*cpu);
            sched_setaffinity(Some(thread), &set).doing("pinning", "a virtual CPU")?;
        }
    }
    Ok(())
}

/// The number in `CPU 0/KVM`.
fn virtual_cpu(name: &str) -> Option<usize> {
    name.trim().strip_prefix("CPU ")?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_kept_for_one_boot() {
        let folder = tempfile::tempdir().unwrap();
        let verdict = |boot: &str| Verdict { file: folder.path().join("a/kvm"), boot: boot.into() };
        assert_eq!(verdict("one").kept(), None);
        for found in [Err("it stood still".to_owned()), Ok(())] {
            verdict("one").keep(&found);
            assert_eq!(verdict("one").kept(), Some(found));
            assert_eq!(verdict("two").kept(), None);
        }
    }

    #[test]
    fn only_the_guest_s_own_end_is_a_success() {
        let exited = |code: i32| Some(ExitStatus::from_raw(code << 8));
        assert_eq!(judge(exited(33), ""), Ok(()));
        assert!(judge(exited(1), "no").unwrap_err().contains("no"));
        assert!(judge(Some(ExitStatus::from_raw(6)), "").unwrap_err().contains("signal 6"));
        assert!(judge(None, "").unwrap_err().contains("stood still for 5 s"));
    }

    #[test]
    fn an_emulated_machine_ends_by_that_firmware() {
        let folder = tempfile::tempdir().unwrap();
        let firmware = folder.path().join("firmware");
        fs::write(&firmware, firmware_image()).unwrap();
        let device = format!("isa-debug-exit,iobase={EXIT_PORT},iosize=1");
        let status = Command::new(PROGRAM)
            .args(["-accel", "tcg", "-m", "16M", "-display", "none", "-nodefaults", "-no-reboot"])
            .args(["-device", &device, "-bios"])
            .arg(&firmware)
            .stdin(Stdio::null())
            .status();
        match status {
            Ok(status) => assert_eq!(status.code(), Some(EXIT_CODE)),
            Err(error) => eprintln!("not tried: {PROGRAM}: {error}"),
        }
    }

    #[test]
    fn threads_are_pinned_by_their_names() {
        use std::sync::mpsc;
        let (go, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name("CPU 0/KVM".into()).spawn(move || {
            tell.send(()).unwrap();
            wait.recv().unwrap();
            rustix::thread::sched_getaffinity(None).unwrap()
        });
        told.recv().unwrap();
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap();
        pin(rustix::process::getpid(), &[cpu]).unwrap();
        go.send(()).unwrap();
        let set = thread.unwrap().join().unwrap();
        assert_eq!((set.count(), set.is_set(cpu)), (1, true));
        assert_eq!(virtual_cpu("CPU 11/KVM\n"), Some(11));
        assert_eq!(virtual_cpu("qemu-system-x86"), None);
    }
}
