//! Which packages are looked for, and how their files are named.

use std::path::{Path, PathBuf};

use crate::cache::{Cache, SourceId};
use crate::kind::{Kind, Release};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(super) release: Release,
    pub(super) part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Source,
    Image,
}

impl Wanted {
    pub(crate) fn source(release: Release) -> Self {
        Self { release, part: Part::Source }
    }

    /// The distribution's kernel: of several packages the one with the kernel itself.
    pub(crate) fn image(kind: Kind) -> Self {
        Self { release: kind.release(), part: Part::Image }
    }

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

    /// The packages with the rest of a kernel: its modules and its configuration, where they are
    /// not all in one, and last the three of [`HEADERS`].
    pub(crate) fn companions(self, image: &Package) -> Vec<Package> {
        let name = image.name.strip_prefix("linux-").unwrap_or_default();
        let release = name.split_once('-').map_or(name, |(_, release)| release);
        let release = release.strip_prefix(UNSIGNED).unwrap_or(release);
        let base = release.strip_suffix(CLOUDS).unwrap_or(release);
        let headers = [
            (format!("linux-headers-{release}"), "amd64"),
            (format!("linux-headers-{base}-common"), "all"),
            (format!("linux-kbuild-{base}"), "amd64"),
        ];
        let parts: &[&str] =
            if self.release == Release::Newest { &["modules", "base"] } else { &[] };
        let parts = parts.iter().map(|part| (format!("linux-{part}-{release}"), "amd64"));
        let version = || image.version.clone();
        parts
            .chain(headers)
            .map(|(name, architecture)| Package { name, version: version(), architecture })
            .collect()
    }

    pub(super) fn architecture(self) -> &'static str {
        if self.part == Part::Source { "all" } else { "amd64" }
    }
}

/// What the user can do when a package is not to be had.
pub(super) const FIX: &str = "Check the network and the sources of apt. NTCOPY_LINUX may name a \
    source tree";

/// How the name of a kernel ends that has the drivers of a virtual machine built in.
const CLOUDS: &str = "-cloud-amd64";

/// How many of a kernel's packages, the last ones, have what modules are built against.
pub(crate) const HEADERS: usize = 3;

/// What the name of a kernel that is not signed yet has.
const UNSIGNED: &str = "unsigned-";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(super) architecture: &'static str,
}

impl Package {
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
            let companions = |wanted: Wanted| -> Vec<String> {
                let (name, version) = (name.to_owned(), "7.3.4-1".to_owned());
                let image = Package { name, version, architecture: "amd64" };
                wanted.companions(&image).iter().map(Package::file_name).collect()
            };
            let headers = [
                "linux-headers-7.3.4+deb13-cloud-amd64_7.3.4-1_amd64.deb",
                "linux-headers-7.3.4+deb13-common_7.3.4-1_all.deb",
                "linux-kbuild-7.3.4+deb13_7.3.4-1_amd64.deb",
            ];
            assert_eq!(companions(newest)[2..], headers);
            assert_eq!(companions(image), headers);
            assert_eq!(
                companions(newest)[..2],
                [
                    "linux-modules-7.3.4+deb13-cloud-amd64_7.3.4-1_amd64.deb",
                    "linux-base-7.3.4+deb13-cloud-amd64_7.3.4-1_amd64.deb"
                ]
            );
        }
        assert!(!newest.has("linux-binary-7.3.4+deb13-rt-amd64"));
        assert!(Wanted::source(Release::V6_12).has("linux-source-6.12"));
        assert!(!Wanted::source(Release::V6_12).has("linux-source-6.1"));
    }
}
