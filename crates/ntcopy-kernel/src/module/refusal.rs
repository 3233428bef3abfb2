//! Why a kernel refused a module, in words, and what to do about it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Modinfo;
use super::status::{Lockdown, SecureBoot, Status};

/// What is known when a module was refused.
pub(super) struct Refusal<'a> {
    pub(super) errno: Errno,
    pub(super) module: &'a Path,
    pub(super) info: &'a Modinfo,
    pub(super) status: &'a Status,
    pub(super) is_root: bool,
    /// A public key that DKMS signs with, where there is one.
    pub(super) dkms_key: Option<PathBuf>,
    /// What the kernel's log said meanwhile.
    pub(super) log: &'a [String],
}

impl Refusal<'_> {
    /// Everything there is to say, several lines.
    pub(super) fn text(&self) -> String {
        let mut text = format!("the kernel refused {} ({})", self.module.display(), self.errno);
        let _ = write!(text, ": {}", self.reason());
        for line in self.log {
            let _ = write!(text, "\n  the kernel's log: {line}");
        }
        text
    }

    fn reason(&self) -> String {
        let status = self.status;
        match self.errno {
            Errno::PERM if !self.is_root => {
                format!("loading a module needs root: sudo ntcopy module load {}", self.path())
            }
            Errno::PERM if status.modules_disabled => {
                "kernel.modules_disabled is 1: this kernel takes no more modules until it is \
                 started again"
                    .into()
            }
            Errno::PERM if self.is_locked() || !status.takes_unsigned() => self.signing(),
            Errno::PERM => {
                "root may not load modules here, as in a container: load it on the host".into()
            }
            Errno::NOKEY | Errno::KEYREJECTED | Errno::KEYEXPIRED | Errno::KEYREVOKED => {
                self.signing()
            }
            Errno::BADMSG => "its signature is damaged: sign it again".into(),
            Errno::NOEXEC => self.wrong_kernel(),
            Errno::NOENT => format!(
                "it uses symbols that this kernel doesn't have: it was built for another one, or \
                 for another configuration of it. ntcopy module build --kernel-release {}",
                status.release
            ),
            Errno::EXIST if status.has_series => {
                "this kernel knows MSG_NTCOPY itself, and needs no module".into()
            }
            Errno::EXIST => "it is loaded already".into(),
            Errno::NOMEM => "there is no memory for it".into(),
            Errno::NOSYS => "this kernel takes no modules (CONFIG_MODULES is off)".into(),
            _ => "see the kernel's log (dmesg)".into(),
        }
    }

    /// Whether the kernel's log blames its lockdown, whose file not everybody can read.
    fn is_locked(&self) -> bool {
        self.log.iter().any(|line| line.starts_with("Lockdown: "))
    }

    fn wrong_kernel(&self) -> String {
        let release = &self.status.release;
        let build = format!("ntcopy module build --kernel-release {release}");
        if self.log.iter().any(|line| line.contains("disagrees about version of symbol")) {
            return format!(
                "it was built against the headers of another kernel, though the release is the \
                 same: install the headers of exactly this one, then {build} --force"
            );
        }
        match self.info.vermagic.as_deref() {
            Some(magic) if self.info.release() != Some(release.as_str()) => {
                format!("it was built for {}, and this is {release}: {build}", magic.trim())
            }
            _ => format!(
                "it was built for another configuration of this kernel, or is damaged: {build} \
                 --force"
            ),
        }
    }

    /// Why a signature is wanted, and how to make one.
    fn signing(&self) -> String {
        let status = self.status;
        let whose = if self.info.is_signed {
            "it is signed with a key that this kernel doesn't know"
        } else {
            "it is not signed"
        };
        let why = match (status.secure_boot, status.lockdown) {
            (SecureBoot::On, _) => "Secure Boot is on, and this kernel takes signed modules only",
            (_, lockdown) if self.is_locked() || lockdown > Some(Lockdown::None) => {
                "this kernel is locked down (lockdown= on its command line), and takes signed \
                 modules only"
            }
            _ => "this kernel takes signed modules only (module.sig_enforce)",
        };
        let module = self.path();
        let sign_file = format!("/lib/modules/{}/build/scripts/sign-file", status.release);
        let mut text = format!("{whose}. {why}.");
        if let Some(key) = &self.dkms_key {
            let _ = write!(
                text,
                " DKMS signs with a key of this machine, which the firmware has to enroll \
                 once:\n    sudo mokutil --import {}\nand, after a restart, at its blue screen: \
                 Enroll MOK. Then the module that DKMS built is taken: apt-get install ntcopy-dkms",
                key.display()
            );
            return text;
        }
        let _ = write!(
            text,
            " With a key of your own, once:\n    \
             openssl req -new -x509 -newkey rsa:2048 -nodes -days 3650 -subj \"/CN=modules of \
             this machine/\" -keyout MOK.priv -outform DER -out MOK.der\n    \
             sudo mokutil --import MOK.der\n\
             and, after a restart, at the firmware's blue screen: Enroll MOK. Then, for each \
             module:\n    \
             sudo {sign_file} sha256 MOK.priv MOK.der {module}\n\
             (Ubuntu: kmodsign sha512 MOK.priv MOK.der {module})"
        );
        text
    }

    fn path(&self) -> String {
        self.module.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        Status {
            release: "6.12.117+deb12-amd64".into(),
            has_series: false,
            range: None,
            is_in_range: true,
            takes_modules: true,
            modules_disabled: false,
            loaded: None,
            built: Vec::new(),
            installed: None,
            headers: None,
            taint: None,
            secure_boot: SecureBoot::Off,
            lockdown: None,
            signatures_enforced: Some(false),
        }
    }

    fn info() -> Modinfo {
        let vermagic = "6.12.117+deb12-amd64 SMP preempt mod_unload modversions ";
        Modinfo { vermagic: Some(vermagic.into()), is_module: true, ..Modinfo::default() }
    }

    fn refusal<'a>(errno: Errno, status: &'a Status, info: &'a Modinfo) -> Refusal<'a> {
        let module = Path::new("/m/ntcopy.ko");
        Refusal { errno, module, info, status, is_root: true, dkms_key: None, log: &[] }
    }

    fn explained(errno: Errno, status: &Status) -> String {
        refusal(errno, status, &info()).text()
    }

    #[test]
    fn somebody_who_is_not_root_gets_the_command() {
        let (status, info) = (status(), info());
        let text = Refusal { is_root: false, ..refusal(Errno::PERM, &status, &info) }.text();
        assert!(text.contains("sudo ntcopy module load /m/ntcopy.ko"), "{text}");
    }

    #[test]
    fn a_kernel_that_wants_signatures_says_why_and_how_to_sign() {
        let secure =
            Status { secure_boot: SecureBoot::On, lockdown: Some(Lockdown::Integrity), ..status() };
        let enforced = Status { signatures_enforced: Some(true), ..status() };
        let locked = Status { lockdown: Some(Lockdown::Confidentiality), ..status() };
        for (errno, status, why) in [
            (Errno::PERM, &secure, "Secure Boot is on"),
            (Errno::KEYREJECTED, &enforced, "module.sig_enforce"),
            (Errno::NOKEY, &secure, "Secure Boot is on"),
            (Errno::PERM, &locked, "locked down"),
        ] {
            let text = explained(errno, status);
            let steps = ["mokutil --import MOK.der", "Enroll MOK", "scripts/sign-file sha256"];
            for part in steps.into_iter().chain([why, "it is not signed", "kmodsign"]) {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
        let log = ["Lockdown: ntcopy: unsigned module loading is restricted".to_owned()];
        let (unsigned, plain) = (info(), status());
        let text = Refusal { log: &log, ..refusal(Errno::PERM, &plain, &unsigned) }.text();
        assert!(text.contains("locked down") && text.contains("MOK.der"), "{text}");
        let refused = refusal(Errno::KEYREJECTED, &secure, &unsigned);
        let text = Refusal { dkms_key: Some("/var/lib/dkms/mok.pub".into()), ..refused }.text();
        assert!(text.contains("mokutil --import /var/lib/dkms/mok.pub"), "{text}");
        let signed = Modinfo { is_signed: true, ..info() };
        let text = refusal(Errno::KEYREJECTED, &secure, &signed).text();
        assert!(text.contains("a key that this kernel doesn't know"), "{text}");
    }

    #[test]
    fn a_module_of_another_kernel_names_both_and_the_cure() {
        let other = Status { release: "6.12.118+deb12-amd64".into(), ..status() };
        let text = explained(Errno::NOEXEC, &other);
        for part in ["built for 6.12.117+deb12-amd64", "this is 6.12.118+deb12-amd64"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains("--kernel-release 6.12.118+deb12-amd64"), "{text}");
        let log = ["ntcopy: disagrees about version of symbol module_layout".to_owned()];
        let (status, info) = (status(), info());
        let text = Refusal { log: &log, ..refusal(Errno::NOEXEC, &status, &info) }.text();
        assert!(text.contains("headers of exactly this one") && text.contains(&log[0]), "{text}");
        assert!(explained(Errno::NOEXEC, &status).contains("another configuration"));
    }

    #[test]
    fn every_other_refusal_has_its_own_words() {
        let series = Status { has_series: true, ..status() };
        let disabled = Status { modules_disabled: true, ..status() };
        for (errno, status, part) in [
            (Errno::EXIST, &series, "knows MSG_NTCOPY itself"),
            (Errno::EXIST, &status(), "loaded already"),
            (Errno::PERM, &disabled, "modules_disabled is 1"),
            (Errno::PERM, &status(), "in a container"),
            (Errno::NOENT, &status(), "symbols that this kernel doesn't have"),
            (Errno::BADMSG, &status(), "sign it again"),
            (Errno::NOSYS, &status(), "CONFIG_MODULES"),
            (Errno::INVAL, &status(), "dmesg"),
        ] {
            let text = explained(errno, status);
            assert!(text.contains(part) && text.contains("/m/ntcopy.ko"), "{part} in {text}");
        }
    }
}
