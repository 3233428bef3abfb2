//! Which kernel: `um`, `um:6.12`, `x86+kcsan`, `stock:7.3` …

use std::fmt;

use crate::error::{Error, Result};

/// A line of Linux versions that there is a series for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// 7.3, or what the distribution has after it.
    Newest,
    /// With long-term support: the kernel of Debian 13, and in the security suite of 12.
    V6_12,
}

impl Release {
    const ALL: [Release; 2] = [Newest, V6_12];

    /// The version of Linux that the series is made for.
    pub(crate) fn made_for(self) -> &'static str {
        match self {
            Newest => "7.3.4",
            V6_12 => "6.12.117",
        }
    }

    /// The one for a source of this version, if its number begins as that one's does.
    pub(crate) fn of_version(version: &str) -> Option<Self> {
        let line = |version: &str| {
            let mut numbers = version.split('.').map(str::to_owned);
            [numbers.next(), numbers.next()]
        };
        Self::ALL.into_iter().find(|release| line(release.made_for()) == line(version))
    }
}

/// What is switched on in an x86 kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// Nothing that looks for faults.
    Plain,
    /// KASAN, lockdep, kmemleak, UBSAN, DEBUG_ATOMIC_SLEEP, fault injection.
    Kasan,
    /// The detector of data races.
    Kcsan,
    /// What KASAN's has, and modules, but not the series: what `ntcopy.ko` is tried in.
    Module,
}

/// A kernel that this version can build, or fetch, and boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Linux 7.3 as a process of the host (user-mode Linux).
    Um,
    /// Linux 6.12 as a process of the host. It has no seccomp mode: slower, and one CPU only.
    Um612,
    /// Linux 7.3 as a process of the host that takes modules, without the series.
    UmModule,
    /// An x86-64 kernel in QEMU, emulated.
    X86(Release, Flavour),
    /// The distribution's own kernel for clouds in QEMU, as it comes: without the series.
    Stock(Release),
    /// That of `x86+plain` in QEMU, on the CPU itself by KVM.
    Kvm,
}

/// How a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunsAs {
    /// It runs as a process of the host.
    Um,
    /// In QEMU, with every instruction emulated, or by KVM.
    Qemu,
}

use Flavour::{Kasan, Kcsan, Module, Plain};
use Release::{Newest, V6_12};

/// Every kernel, and its name: those that people use first.
const NAMES: &[(Kind, &str)] = &[
    (Kind::Um, "um"),
    (Kind::Um612, "um:6.12"),
    (Kind::UmModule, "um+module"),
    (Kind::Kvm, "kvm"),
    (Kind::Stock(V6_12), "stock"),
    (Kind::Stock(Newest), "stock:7.3"),
    (Kind::X86(Newest, Kasan), "x86"),
    (Kind::X86(V6_12, Kasan), "x86:6.12"),
    (Kind::X86(Newest, Kcsan), "x86+kcsan"),
    (Kind::X86(Newest, Plain), "x86+plain"),
    (Kind::X86(Newest, Module), "x86+module"),
    (Kind::X86(V6_12, Kcsan), "x86:6.12+kcsan"),
    (Kind::X86(V6_12, Plain), "x86:6.12+plain"),
    (Kind::X86(V6_12, Module), "x86:6.12+module"),
];
/// How many of them are listed; tests of the series and the module take the others, too.
const LISTED: usize = 9;

impl Kind {
    /// Whether it is a user-mode kernel with seccomp mode, and so with several CPUs.
    pub(crate) fn is_um_with_smp(self) -> bool {
        matches!(self, Self::Um | Self::UmModule)
    }

    /// The names that people use first.
    pub fn listed() -> impl Iterator<Item = &'static str> {
        NAMES.iter().take(LISTED).map(|(_, name)| *name)
    }

    /// Reads a name as `--kernel` takes it.
    pub fn parse(name: &str) -> Result<Self> {
        let found = NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind);
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::listed().collect();
            Error::UnknownKind { name: name.into(), known: known.join(", ") }
        })
    }

    /// The same kernel as it is for the module, if there is one.
    pub fn for_module(self) -> Option<Self> {
        match self {
            Self::X86(release, _) => Some(Self::X86(release, Module)),
            Self::Um | Self::UmModule => Some(Self::UmModule),
            _ => None,
        }
    }

    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(kind, _)| *kind)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The same kernel of another release, if there is one.
    pub(crate) fn of_release(self, release: Release) -> Option<Self> {
        match (self, release) {
            _ if self.release() == release => Some(self),
            (Self::Um, V6_12) => Some(Self::Um612),
            (Self::Um612, Newest) => Some(Self::Um),
            (Self::X86(_, flavour), release) => Some(Self::X86(release, flavour)),
            _ => None,
        }
    }

    /// The kernel that is built for it.
    pub(crate) fn built_as(self) -> Self {
        if self == Self::Kvm { Self::X86(Newest, Plain) } else { self }
    }

    /// The name as a part of a file's name.
    pub(crate) fn file_name(self) -> String {
        self.name().replace([':', '+'], "-")
    }

    pub fn release(self) -> Release {
        match self {
            Self::Um | Self::UmModule | Self::Kvm => Newest,
            Self::Um612 => V6_12,
            Self::X86(release, _) | Self::Stock(release) => release,
        }
    }

    pub fn runs_as(self) -> RunsAs {
        match self {
            Self::Um | Self::Um612 | Self::UmModule => RunsAs::Um,
            Self::X86(..) | Self::Stock(_) | Self::Kvm => RunsAs::Qemu,
        }
    }

    /// Whether every instruction is emulated, so that no time in it is one.
    pub fn is_emulated(self) -> bool {
        self.runs_as() == RunsAs::Qemu && self != Self::Kvm
    }

    /// Whether it is fetched ready-made rather than built here.
    pub(crate) fn is_stock(self) -> bool {
        matches!(self, Self::Stock(_))
    }

    /// Whether it knows the flag by itself.
    pub fn has_series(self) -> bool {
        !self.is_stock() && !self.is_for_module()
    }

    /// Whether it is built here for `ntcopy.ko`: with modules, and without the series.
    pub fn is_for_module(self) -> bool {
        matches!(self, Self::UmModule | Self::X86(_, Module))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_names_one_kernel_and_one_file() {
        for (kind, name) in NAMES {
            assert_eq!(Kind::parse(name).unwrap(), *kind, "{name}");
            assert_eq!(kind.name(), *name);
        }
        let mut files: Vec<String> = Kind::all().map(Kind::file_name).collect();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), NAMES.len());
    }

    #[test]
    fn the_versions_that_the_series_are_made_for_are_those_that_the_readme_names() {
        let readme = include_str!("../../../kernel/README.md");
        for release in Release::ALL {
            let made_for = format!("Linux {},", release.made_for());
            assert!(readme.contains(&made_for), "{made_for}");
            assert_eq!(Release::of_version(release.made_for()), Some(release));
        }
        assert_eq!(Release::of_version("6.12.7-rc1"), Some(V6_12));
        assert_eq!(Release::of_version("6.1.2"), None);
    }

    #[test]
    fn anything_else_is_a_usage_error_that_lists_the_kernels() {
        for name in ["vms", "um:5.4", "um+small", "stock+module", "generic", "x86+", "x86:", ""] {
            let error = Kind::parse(name).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{name}");
            let text = error.to_string();
            assert!(text.contains(&format!("'{name}'")) && text.contains("x86:6.12"), "{text}");
        }
    }

    #[test]
    fn a_kernel_for_the_module_has_none_of_the_series() {
        let kcsan = Kind::X86(V6_12, Kcsan);
        assert_eq!(Kind::Um612.for_module(), None);
        for (kind, name) in [(Kind::Um, "um+module"), (kcsan, "x86:6.12+module")] {
            let own = kind.for_module().unwrap();
            assert_eq!((own.name(), own.is_for_module()), (name, true));
            assert!(!own.has_series() && kind.has_series());
        }
    }
}
