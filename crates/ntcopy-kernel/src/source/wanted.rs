//! Which packages are looked for, and how their files are named.

use std::path::{Path, PathBuf};

use crate::cache::{Cache, SourceId};
use crate::kind::{Kind, Release};

/// Which packages are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(super) release: Release,
    pub(super) part: Part,
}

/// Which part of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Source,
    Image,
}

impl Wanted {
    /// The source of a release.
    pub(crate) fn source(release: Release) -> Self {
        Self { release, part: Part::Source }
    }

    /// The distribution's kernel: of several packages the one with the kernel itself.
    pub(crate) fn image(kind: Kind) -> Self {
        Self { release: kind.release(), part: Part::Image }
    }

    /// What the names begin with.
    pub(crate) fn prefix(self) -> &'static str {
        match (self.part, self.release) {
            (Part::Source, Release::Newest) => "linux-source-7.",
            (Part::Source, Release::V6_12) => "linux-source-6.12",
            (Part::Image, Release::Newest) => "linux-binary-",
            (Part::Image, Release::V6_12) => "linux-image-6.12.",
        }
    }

    /// Whether a package is one, by its name: no flavour of a source, no debug symbols. A kernel
    /// that is started without a boot loader needs no signature, which comes a day later.
    pub(super) fn has(self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(self.prefix()) else { return false };
        match (self.part, self.release) {
            (Part::Image, Release::Newest) => {
                let rest = rest.strip_prefix(UNSIGNED).unwrap_or(rest);
                rest.starts_with("7.") && rest.ends_with(CLOUDS)
            }
            (Part::Image, _) => rest.ends_with(CLOUDS),
            (Part::Source, _) => rest.chars().all(|c| c.is_ascii_digit()),
        }
    }

    /// The names of the packages with the rest of a kernel, its modules and its configuration,
    /// where they are not all in one.
    pub(crate) fn companions(self, name: &str) -> Vec<String> {
        match (self.part, self.release, name.strip_prefix(self.prefix())) {
            (Part::Image, Release::Newest, Some(rest)) => {
                let rest = rest.strip_prefix(UNSIGNED).unwrap_or(rest);
                ["modules", "base"].map(|part| format!("linux-{part}-{rest}")).into()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn architecture(self) -> &'static str {
        if self.part == Part::Source { "all" } else { "amd64" }
    }
}

/// What the user can do when a package is not to be had.
pub(super) const FIX: &str = "Check the network and the sources of apt. NTCOPY_LINUX may name a \
    source tree; for headers that the mirror no longer has, take its newest kernel: ntcopy kernel \
    clean --all, and build again";

/// How the name of a kernel ends that has the drivers of a virtual machine built in.
const CLOUDS: &str = "-cloud-amd64";

/// What the name of a kernel that is not signed yet has.
const UNSIGNED: &str = "unsigned-";

/// A package, downloaded or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(super) architecture: &'static str,
}

impl Package {
    /// A package of which the name and the version are known.
    pub(crate) fn named(name: String, version: String, architecture: &'static str) -> Self {
        Self { name, version, architecture }
    }

    /// Another package of the same version, by its name.
    pub(crate) fn sibling(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }

    pub(crate) fn id(&self) -> SourceId {
        SourceId::Package { name: self.name.clone(), version: self.version.clone() }
    }

    /// The file's name as apt writes it: a colon of the version becomes `%3a`.
    pub(super) fn file_name(&self) -> String {
        let version = self.version.replace(':', "%3a");
        format!("{}_{version}_{}.deb", self.name, self.architecture)
    }

    pub(crate) fn file(&self, cache: &Cache) -> PathBuf {
        cache.packages().join(self.file_name())
    }

    /// Reads a file's name back.
    pub(super) fn from_file(path: &Path, wanted: Wanted) -> Option<Self> {
        let architecture = wanted.architecture();
        let name = path.file_name()?.to_str()?.strip_suffix(&format!("_{architecture}.deb"))?;
        let (name, version) = name.split_once('_')?;
        let version = version.replace("%3a", ":");
        wanted.has(name).then(|| Self { name: name.into(), version, architecture })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_the_signed_cloud_kernel_and_nothing_beside_it() {
        let image = Wanted::image(Kind::Stock(Release::V6_12));
        assert!(image.has("linux-image-6.12.117+deb12-cloud-amd64"));
        for other in [
            "linux-image-6.12-cloud-amd64",
            "linux-image-6.12.117+deb12-amd64",
            "linux-image-6.12.117+deb12-cloud-amd64-dbg",
            "linux-image-6.12.117+deb12-cloud-amd64-unsigned",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-7.3.4+deb13-cloud-amd64",
        ] {
            assert!(!image.has(other), "{other}");
        }
        let newest = Wanted::image(Kind::Stock(Release::Newest));
        for name in [
            "linux-binary-7.3.4+deb13-cloud-amd64",
            "linux-binary-unsigned-7.3.4+deb13-cloud-amd64",
        ] {
            assert!(newest.has(name), "{name}");
            assert_eq!(
                newest.companions(name),
                ["linux-modules-7.3.4+deb13-cloud-amd64", "linux-base-7.3.4+deb13-cloud-amd64"]
            );
        }
        assert!(!newest.has("linux-binary-7.3.4+deb13-rt-amd64"));
        assert!(image.companions("linux-image-6.12.117+deb12-cloud-amd64").is_empty());
        assert!(Wanted::source(Release::V6_12).has("linux-source-6.12"));
        assert!(!Wanted::source(Release::V6_12).has("linux-source-6.1"));
    }
}
