//! How things are with the module on this machine: read from /proc, /sys and the cache, so that a
//! test can bring a machine of its own.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::kept::{Kept, cached, installed};
use super::source::Sources;
use crate::cache::Cache;
use crate::error::{Error, Result};

/// `/`, or a folder that holds what was recorded of another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysroot(pub PathBuf);

impl Sysroot {
    /// Whether it is this machine.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file without the white space at its ends.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok().map(|text| text.trim().to_owned())
    }

    /// The running kernel's release.
    ///
    /// # Errors
    ///
    /// Where there is no /proc.
    pub fn release(&self) -> Result<String> {
        let name = "proc/sys/kernel/osrelease";
        let path = self.path(name);
        self.text(name).filter(|text| !text.is_empty()).ok_or_else(|| {
            Error::NotHere(format!("the kernel's release is not to be had: no {}", path.display()))
        })
    }
}

/// How much of itself the kernel keeps from root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lockdown {
    /// Nothing.
    None,
    /// What would let root change the running kernel: unsigned modules among it.
    Integrity,
    /// What would let root read the kernel's secrets, too.
    Confidentiality,
}

/// What the firmware checks before it starts a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SecureBoot {
    /// It starts signed ones only.
    On,
    /// It starts any.
    Off,
    /// The machine was not started by EFI.
    NoEfi,
    /// The firmware's variables are not to be read.
    Unknown,
}

/// The module in the running kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Presence {
    /// Its version, if it says.
    pub version: Option<String>,
    /// How many things hold it: open files of its device, sockets.
    pub references: Option<u64>,
    /// "Live", or on its way in or out.
    pub state: String,
    /// How it taints the kernel.
    pub taints: Vec<Taint>,
}

/// The running kernel's taint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaintFound {
    /// The number that /proc has.
    pub value: u64,
    /// Its bits that have words here.
    pub taints: Vec<Taint>,
    /// Its other bits.
    pub others: u64,
}

/// How things are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The running kernel's release.
    pub release: String,
    /// Whether the kernel knows MSG_NTCOPY itself.
    pub has_series: bool,
    /// The kernels that the module is for.
    pub range: Option<String>,
    /// Whether this is one of them.
    pub is_in_range: bool,
    /// Whether the kernel takes modules at all.
    pub takes_modules: bool,
    /// Whether `kernel.modules_disabled` is 1: it takes no more of them.
    pub modules_disabled: bool,
    /// The module, if it is loaded.
    pub loaded: Option<Presence>,
    /// What was built for this kernel.
    pub built: Vec<Kept>,
    /// What was installed for this kernel, by DKMS or by hand.
    pub installed: Option<PathBuf>,
    /// The headers that it would be built against.
    pub headers: Option<PathBuf>,
    /// The kernel's taint, where it is to be read.
    pub taint: Option<TaintFound>,
    /// Secure Boot.
    pub secure_boot: SecureBoot,
    /// Lockdown; nothing where the kernel has no such thing.
    pub lockdown: Option<Lockdown>,
    /// Whether only signed modules are taken; nothing where the kernel knows no signatures.
    pub signatures_enforced: Option<bool>,
}

/// Firmware variable that says whether Secure Boot is on; the UEFI specification, "Globally
/// Defined Variables". Four bytes of attributes, then the value.
const SECURE_BOOT: &str =
    "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

impl Status {
    /// Looks. Needs no root.
    ///
    /// # Errors
    ///
    /// Where there is no /proc, or the cache cannot be read.
    pub fn gather(sysroot: &Sysroot, cache: Option<&Cache>) -> Result<Self> {
        let release = sysroot.release()?;
        let range = Sources::embedded().range();
        let loaded = presence(sysroot);
        let built = cache.map(cached).transpose()?.unwrap_or_default();
        let headers = sysroot.path(&format!("lib/modules/{release}/build"));
        let knows = sysroot.path("proc/sys/net/core/ntcopy").exists();
        Ok(Self {
            // The module brings the same sysctl.
            has_series: knows && loaded.is_none(),
            is_in_range: range.is_none_or(|range| range.has(&release)),
            range: range.map(|range| range.to_string()),
            takes_modules: sysroot.path("proc/modules").exists(),
            modules_disabled: sysroot.text("proc/sys/kernel/modules_disabled").as_deref()
                == Some("1"),
            loaded,
            built: built.into_iter().filter(|kept| kept.release == release).collect(),
            installed: installed(&sysroot.0, &release),
            headers: headers.join("Makefile").is_file().then_some(headers),
            taint: taint(sysroot),
            secure_boot: secure_boot(sysroot),
            lockdown: lockdown(sysroot),
            signatures_enforced: sysroot
                .text("sys/module/module/parameters/sig_enforce")
                .map(|text| text == "Y"),
            release,
        })
    }

    /// Whether an unsigned module would be taken.
    pub fn takes_unsigned(&self) -> bool {
        let is_locked = self.lockdown.is_some_and(|lockdown| lockdown >= Lockdown::Integrity);
        !is_locked && self.signatures_enforced != Some(true)
    }
}

/// The module's line of /proc/modules: name, size, references, users, state, address, taint.
fn presence(sysroot: &Sysroot) -> Option<Presence> {
    let text = sysroot.text("proc/modules")?;
    let line = text.lines().find(|line| line.split(' ').next() == Some("ntcopy"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(Presence {
        version: sysroot.text("sys/module/ntcopy/version"),
        references: words.get(2).and_then(|count| count.parse().ok()),
        state: words.get(4).copied().unwrap_or("unknown").to_owned(),
        taints: Taint::of_letters(words.get(6).copied().unwrap_or_default()),
    })
}

fn taint(sysroot: &Sysroot) -> Option<TaintFound> {
    let value = sysroot.text("proc/sys/kernel/tainted")?.parse().ok()?;
    Some(TaintFound { value, taints: Taint::decode(value), others: Taint::rest(value) })
}

/// Whether Secure Boot is on, as the firmware says.
fn secure_boot(sysroot: &Sysroot) -> SecureBoot {
    if !sysroot.path("sys/firmware/efi").is_dir() {
        return SecureBoot::NoEfi;
    }
    match fs::read(sysroot.path(SECURE_BOOT)).as_deref() {
        Ok([_, _, _, _, 1]) => SecureBoot::On,
        Ok([_, _, _, _, 0]) => SecureBoot::Off,
        _ => SecureBoot::Unknown,
    }
}

/// The word in brackets: "none [integrity] confidentiality".
fn lockdown(sysroot: &Sysroot) -> Option<Lockdown> {
    let text = sysroot.text("sys/kernel/security/lockdown")?;
    match text.split_once('[')?.1.split_once(']')?.0 {
        "none" => Some(Lockdown::None),
        "integrity" => Some(Lockdown::Integrity),
        "confidentiality" => Some(Lockdown::Confidentiality),
        _ => None,
    }
}

/// A bit of the kernel's taint that a module sets, or that matters to one who reads a report of
/// this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Taint {
    /// The letter that the kernel prints in its reports.
    pub letter: char,
    /// What it means.
    pub meaning: &'static str,
}

/// The bits of `/proc/sys/kernel/tainted` in words, by their number; from
/// Documentation/admin-guide/tainted-kernels.rst.
const BITS: &[(u32, char, &str)] = &[
    (0, 'P', "a proprietary module was loaded"),
    (1, 'F', "a module was loaded by force"),
    (3, 'R', "a module was unloaded by force"),
    (7, 'D', "the kernel has died before: an oops or a BUG"),
    (9, 'W', "the kernel has warned of a fault"),
    (10, 'C', "a driver from staging was loaded"),
    (12, 'O', "a module that is no part of the kernel's source was loaded"),
    (13, 'E', "an unsigned module was loaded, on a kernel that has signatures"),
    (14, 'L', "a CPU was stuck"),
    (15, 'K', "the kernel was patched live"),
];

impl Taint {
    /// The words of a taint's bits.
    pub fn decode(value: u64) -> Vec<Taint> {
        let set = BITS.iter().filter(|(bit, ..)| value >> bit & 1 != 0);
        set.map(|&(_, letter, meaning)| Taint { letter, meaning }).collect()
    }

    /// The words of the letters that a module has in `/proc/modules` or `/sys/module`: "(OE)".
    pub fn of_letters(letters: &str) -> Vec<Taint> {
        let has = |letter: &char| letters.contains(*letter);
        let set = BITS.iter().filter(|(_, letter, _)| has(letter));
        set.map(|&(_, letter, meaning)| Taint { letter, meaning }).collect()
    }

    /// Bits that have no words here.
    pub fn rest(value: u64) -> u64 {
        BITS.iter().fold(value, |rest, (bit, ..)| rest & !(1 << bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of the test's own.
    fn machine(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Sysroot) {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let sysroot = Sysroot(root.path().to_path_buf());
        (root, sysroot)
    }

    const RELEASE: (&str, &[u8]) = ("proc/sys/kernel/osrelease", b"6.12.117+deb12-amd64\n");

    #[test]
    fn a_laptop_with_secure_boot_and_the_module_of_dkms() {
        // This was recorded on one; the module's line is as /proc/modules prints it for root.
        let (_root, sysroot) = machine(&[
            RELEASE,
            (
                "proc/modules",
                b"tls 151552 0 - Live 0xffffffffc0a00000\n\
                  ntcopy 49152 3 - Live 0xffffffffc09f0000 (OE)\n",
            ),
            ("sys/module/ntcopy/version", b"0.1.0\n"),
            ("proc/sys/net/core/ntcopy", b"1\n"),
            ("proc/sys/kernel/tainted", b"12352\n"),
            ("proc/sys/kernel/modules_disabled", b"0\n"),
            (SECURE_BOOT, &[6, 0, 0, 0, 1]),
            ("sys/kernel/security/lockdown", b"none [integrity] confidentiality\n"),
            ("sys/module/module/parameters/sig_enforce", b"N\n"),
            ("lib/modules/6.12.117+deb12-amd64/updates/dkms/ntcopy.ko.xz", b""),
        ]);
        let status = Status::gather(&sysroot, None).unwrap();
        let loaded = status.loaded.as_ref().unwrap();
        assert_eq!((loaded.version.as_deref(), loaded.references), (Some("0.1.0"), Some(3)));
        assert_eq!(loaded.state, "Live");
        assert_eq!(loaded.taints.iter().map(|taint| taint.letter).collect::<String>(), "OE");
        assert!(!status.has_series && status.takes_modules && !status.modules_disabled);
        assert_eq!(status.secure_boot, SecureBoot::On);
        assert_eq!(status.lockdown, Some(Lockdown::Integrity));
        assert!(!status.takes_unsigned() && status.signatures_enforced == Some(false));
        assert!(status.installed.as_ref().unwrap().ends_with("updates/dkms/ntcopy.ko.xz"));
        assert_eq!(status.headers, None);
        let taint = status.taint.unwrap();
        assert_eq!((taint.value, taint.taints.len(), taint.others), (12352, 2, 64));
    }

    #[test]
    fn a_cloud_guest_without_efi_takes_any_module() {
        let (_root, sysroot) = machine(&[
            RELEASE,
            ("proc/modules", b"ntcopy_other 16384 0 - Live 0x0\n"),
            ("proc/sys/kernel/tainted", b"0\n"),
            ("sys/kernel/security/lockdown", b"[none] integrity confidentiality\n"),
            ("lib/modules/6.12.117+deb12-amd64/build/Makefile", b""),
        ]);
        let status = Status::gather(&sysroot, None).unwrap();
        assert_eq!(status.loaded, None);
        assert_eq!(status.secure_boot, SecureBoot::NoEfi);
        assert!(status.takes_unsigned() && status.signatures_enforced.is_none());
        assert!(status.headers.is_some() && status.taint.unwrap().taints.is_empty());
    }

    #[test]
    fn a_kernel_with_the_series_is_told_from_one_with_the_module() {
        let (_root, sysroot) =
            machine(&[RELEASE, ("proc/sys/net/core/ntcopy", b"1\n"), ("proc/modules", b"")]);
        assert!(Status::gather(&sysroot, None).unwrap().has_series);
    }

    #[test]
    fn a_kernel_without_modules_and_a_machine_without_proc_are_no_puzzle() {
        let (_root, sysroot) = machine(&[RELEASE]);
        let status = Status::gather(&sysroot, None).unwrap();
        assert!(!status.takes_modules && status.taint.is_none() && status.lockdown.is_none());
        let (_root, sysroot) = machine(&[]);
        assert_eq!(Status::gather(&sysroot, None).unwrap_err().exit_code(), 3);
    }

    #[test]
    fn firmware_whose_variables_cannot_be_read_is_unknown_not_off() {
        let (root, sysroot) = machine(&[RELEASE]);
        fs::create_dir_all(root.path().join("sys/firmware/efi/efivars")).unwrap();
        assert_eq!(secure_boot(&sysroot), SecureBoot::Unknown);
        fs::write(root.path().join(SECURE_BOOT), [6, 0, 0, 0, 0]).unwrap();
        assert_eq!(secure_boot(&sysroot), SecureBoot::Off);
    }

    fn letters(taints: &[Taint]) -> String {
        taints.iter().map(|taint| taint.letter).collect()
    }

    #[test]
    fn bits_become_the_letters_of_the_kernel_s_reports() {
        assert_eq!(letters(&Taint::decode(0)), "");
        assert_eq!(letters(&Taint::decode(12288)), "OE");
        assert_eq!(letters(&Taint::decode(1 << 9 | 1 << 12)), "WO");
        assert_eq!(letters(&Taint::of_letters("(OE)")), "OE");
        // TAINT_USER has no words here, and is not forgotten.
        assert_eq!(Taint::rest(1 << 6 | 1 << 12), 1 << 6);
    }

    #[test]
    fn every_bit_has_a_letter_of_its_own() {
        let mut all = letters(&Taint::decode(u64::MAX)).into_bytes();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), BITS.len());
    }
}
