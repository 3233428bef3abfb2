//! Getting a source and putting the series on it.

use std::path::{Path, PathBuf};

use super::{Work, patch};
use crate::cache::SourceId;
use crate::error::{Error, Result};
use crate::kind::Release;
use crate::series::Series;
use crate::source::package::{self, Apt};
use crate::source::tree::Tree;
use crate::source::unpack;
use crate::source::version;
use crate::source::wanted::{self, Package};
use crate::{collision, room};

/// A patched source, ready to be configured.
pub(crate) struct Prepared {
    pub(crate) source: PathBuf,
    pub(crate) version: String,
    pub(crate) id: SourceId,
}

impl Work<'_> {
    /// Copies the user's tree and patches the copy.
    pub(super) fn take_tree(&mut self, tree: &Tree, partial: &Path) -> Result<Prepared> {
        let reserve = 400 << 20;
        room::check_disk(partial, "a copy of the source", tree.size_bytes() + reserve)?;
        self.progress.note(&format!("source: {} (NTCOPY_LINUX)", tree.root().display()));
        let source = partial.join("source");
        self.progress.begin("copying the source");
        tree.copy_to(&source, self.interrupts)?;
        self.progress.end();
        self.prepare(source, tree.id())
    }

    /// Takes the newest package to which the series applies: of the cache, else of the mirror.
    pub(super) fn take_package(&mut self, partial: &Path) -> Result<Prepared> {
        room::check_disk(partial, "the unpacked source and its build", unpack::NEEDED_BYTES)?;
        let wanted = wanted::Wanted::source(self.options.kind.release());
        let cached = package::cached(&self.options.cache, wanted)?;
        let mut refusals = Vec::new();
        for package in &cached {
            match self.try_package(package, partial) {
                Err(error) if is_refusal(&error) => refusals.push(error),
                result => return result,
            }
        }
        let apt = Apt::update(&self.options.etc_apt, wanted, self.interrupts, self.progress);
        let apt = match apt {
            // The series did not apply to what the cache has: that is the news then.
            Err(Error::NoSource { .. }) if !refusals.is_empty() => {
                return Err(refusals.swap_remove(0));
            }
            apt => apt?,
        };
        let mut offered = apt.packages(self.interrupts)?;
        offered.retain(|package| !cached.contains(package));
        for package in offered {
            apt.download(&package, &self.options.cache, self.interrupts, self.progress)?;
            match self.try_package(&package, partial) {
                Err(error) if is_refusal(&error) => refusals.push(error),
                result => return result,
            }
        }
        // The first is the newest, and what is wrong with it is what there is to mend.
        Err(refusals.swap_remove(0))
    }

    /// Unpacks a package and patches it.
    fn try_package(&mut self, package: &Package, partial: &Path) -> Result<Prepared> {
        self.progress.begin(&format!("unpacking {}", package.name));
        let target = partial.join("package");
        let file = package.file(&self.options.cache);
        let source = unpack::source(&file, &target, self.interrupts);
        self.progress.end();
        let prepared = source.and_then(|source| self.prepare(source, package.id()));
        match &prepared {
            Ok(_) => {
                let Package { name, version, .. } = package;
                self.progress.note(&format!("source: package {name} {version}"));
            }
            Err(error) => {
                let _ = std::fs::remove_dir_all(&target);
                if is_refusal(error) {
                    let first = error.to_string();
                    let first = first.lines().next().unwrap_or("").to_owned();
                    self.progress.note(&format!("not {}: {first}", package.name));
                }
            }
        }
        prepared
    }

    /// Checks our numbers against the source and applies the series to it.
    fn prepare(&mut self, source: PathBuf, id: SourceId) -> Result<Prepared> {
        let version = version(&source)?;
        let patched = collision::check(&source, &version)
            .and_then(|()| patch::apply(&self.options.series, &source, &version, self.interrupts));
        patched.map_err(|error| self.of_version(error, &version))?;
        Ok(Prepared { source, version, id })
    }

    /// A refusal says for which version the series is, where the source is another one.
    fn of_version(&self, error: Error, version: &str) -> Error {
        let kind = self.options.kind;
        let made_for = kind.release().made_for();
        let is_ours = self.options.series == Series::embedded(kind.release()).for_kernel(kind);
        if !is_ours || made_for == version || !is_refusal(&error) {
            return error;
        }
        let other = Release::of_version(version).filter(|release| *release != kind.release());
        let instead = other.and_then(|release| Some((kind.of_release(release)?, release)));
        let instead = instead.map_or(String::new(), |(kind, release)| {
            format!(" (--kernel {kind} is for {})", release.made_for())
        });
        let version = version.to_owned();
        Error::OtherVersion { made_for, version, instead, cause: Box::new(error) }
    }
}

/// Whether an older source may do where this one did not.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Patch { .. } | Error::Collision { .. } | Error::OtherVersion { .. })
}
