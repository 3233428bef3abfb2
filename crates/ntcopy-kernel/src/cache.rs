//! Where built kernels are kept: `$NTCOPY_CACHE`, `$XDG_CACHE_HOME/ntcopy` or `~/.cache/ntcopy`.
//!
//! ```text
//! kernels/um-7.3.4-0123456789ab/{linux,config,meta.json,build.log}
//! kernels/um-module-7.3.4-0123456789ab/{linux,config,meta.json,build.log,headers}
//! kernels/stock-6.12.117-0123456789ab/{linux,config,meta.json,lib/modules,headers,usr}
//! packages/linux-source-7.3_….deb     as downloaded: another series needs no network
//! logs/                               of builds that failed
//! modules/6.12.117-0123456789ab/      ntcopy.ko for a kernel, its log, what it was made of
//! ccache/                             objects, where there is ccache
//! builds/                             packages for real machines, under way
//! lock                                held by whoever changes anything here but modules and builds
//! builds.lock                         held by whoever is at work in builds/
//! modules.lock                        held by whoever changes modules/: no module is to wait for a kernel
//! ```
//!
//! Whatever is under way has a name that begins with `.partial-`. It gets its real name by a
//! rename when it is whole, and whoever next takes the lock removes what a dead process left.

mod lock;
mod meta;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ntcopy_record::folder::of_this_user;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

pub(crate) use lock::Part;
pub use meta::{Meta, SourceId};

use crate::error::{Context, Error, Result};
use crate::kind::Kind;
use crate::series::{digest, hex};

/// Environment variable that names another cache directory.
pub const CACHE_VARIABLE: &str = "NTCOPY_CACHE";

/// How a build turns its inputs into a kernel. A change of that makes older kernels stale.
const RECIPE: u32 = 1;

/// Below a kernel that takes modules: what they are built against.
pub(crate) const HEADERS: &str = "headers";

/// Where a kernel's modules lie below its directory in the cache, as they would below `/`.
pub(crate) const MODULES: &str = "lib/modules";

/// What begins the name of everything unfinished.
const PARTIAL: &str = ".partial-";

#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

#[derive(Clone, Debug)]
pub struct Built {
    /// The kernel: an executable for um, else what a boot loader loads.
    pub path: PathBuf,
    /// Its directory in the cache.
    pub dir: PathBuf,
    /// The directory's name: kind, version and the first 12 digits of the key.
    pub key: String,
    pub kind: Kind,
    pub meta: Meta,
}

impl Built {
    /// Its modules, as a directory to be mounted on /lib/modules; a kernel that was built here
    /// has none.
    pub(crate) fn modules(&self) -> Option<PathBuf> {
        Some(self.dir.join(MODULES)).filter(|folder| folder.is_dir())
    }

    /// What modules for it are built against, where it takes some.
    pub fn headers(&self) -> PathBuf {
        self.dir.join(HEADERS)
    }
}

impl Cache {
    pub fn locate() -> Result<Self> {
        let named = std::env::var_os(CACHE_VARIABLE).filter(|path| !path.is_empty());
        let of_user = || Some(of_this_user("XDG_CACHE_HOME", ".cache")?.join("ntcopy"));
        let root = named.map(PathBuf::from).or_else(of_user).ok_or_else(|| {
            let text = "no place for the cache: set NTCOPY_CACHE to a directory";
            Error::NotHere(text.into())
        })?;
        let root = std::path::absolute(&root).doing("finding", &root)?;
        Ok(Self { root })
    }

    /// A cache in a directory of the caller's choice.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn kernels(&self) -> PathBuf {
        self.root.join("kernels")
    }

    pub(crate) fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    pub(crate) fn modules(&self) -> PathBuf {
        self.root.join("modules")
    }

    pub(crate) fn builds(&self) -> PathBuf {
        self.root.join("builds")
    }

    /// What ccache keeps for us, where there is ccache.
    pub(crate) fn compiled(&self) -> PathBuf {
        self.root.join("ccache")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The kernels that are whole, newest version first, then the one built last.
    pub fn built(&self) -> Result<Vec<Built>> {
        let mut built = Vec::new();
        for dir in children(&self.kernels())? {
            let key = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let meta = fs::read(dir.join("meta.json")).ok();
            let meta = meta.and_then(|text| serde_json::from_slice::<Meta>(&text).ok());
            let path = dir.join("linux");
            let is_whole = path.is_file() && !key.starts_with(PARTIAL);
            if let Some(meta) = meta.filter(|_| is_whole)
                && let Ok(kind) = Kind::parse(&meta.kind)
                && (!kind.is_stock() || dir.join(HEADERS).is_dir())
            {
                built.push(Built { path, dir, key, kind, meta });
            }
        }
        built.sort_by_key(|b| (version_key(&b.meta.version), b.meta.built_unix_s));
        built.reverse();
        Ok(built)
    }

    /// The kernel that was made of these inputs. Without a source: from any package.
    pub(crate) fn find(&self, inputs: &Inputs, source: Option<&SourceId>) -> Result<Option<Built>> {
        let fits = |built: &Built| {
            inputs.made(&built.meta)
                && match source {
                    Some(source) => built.meta.source == *source,
                    None => matches!(built.meta.source, SourceId::Package { .. }),
                }
        };
        Ok(self.built()?.into_iter().find(fits))
    }

    /// A new directory for something unfinished, removed when dropped.
    pub(crate) fn partial(&self, parent: &Path) -> Result<TempDir> {
        let made = fs::create_dir_all(parent)
            .and_then(|()| tempfile::Builder::new().prefix(PARTIAL).tempdir_in(parent));
        made.doing("creating a directory in", parent)
    }

    /// Removes what dead processes left unfinished. The caller holds the lock, so no process that
    /// lives is at work.
    fn sweep(&self, folders: &[PathBuf]) -> Result<()> {
        for folder in folders {
            for path in children(folder)? {
                if path.file_name().unwrap_or_default().to_string_lossy().starts_with(PARTIAL) {
                    remove(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// What a kernel is made of, besides its source.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    kind: Kind,
    pub(crate) series: String,
    pub(crate) config: String,
}

impl Inputs {
    pub(crate) fn new(kind: Kind, series: &crate::series::Series, fragment: &str) -> Self {
        let config = hex(&Sha256::digest(fragment));
        Self { kind: kind.built_as(), series: series.hash(), config }
    }

    /// What a kernel of this kind would be made of now.
    pub(crate) fn from_env(kind: Kind) -> Result<Self> {
        let series = crate::series::Series::current(kind)?;
        Ok(Self::new(kind, &series, &crate::config::fragment(kind)))
    }

    pub(crate) fn made(&self, meta: &Meta) -> bool {
        self.differs(meta).is_none()
    }

    /// What a kernel was made of that is not so now.
    pub(crate) fn differs(&self, meta: &Meta) -> Option<&'static str> {
        [
            (meta.kind == self.kind.name(), "it is of another kind"),
            (meta.recipe == RECIPE, "this ntcopy builds kernels in another way"),
            (meta.series == self.series, "the patches have changed"),
            (meta.config == self.config, "the configuration has changed"),
        ]
        .into_iter()
        .find_map(|(is_same, why)| (!is_same).then_some(why))
    }

    /// What is kept of a kernel that was made of these now, without patches.
    pub(crate) fn meta(&self, version: &str, release: &str, source: SourceId) -> Meta {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Meta {
            recipe: RECIPE,
            kind: self.kind.name().into(),
            version: version.into(),
            release: release.into(),
            source,
            series: self.series.clone(),
            patches: Vec::new(),
            config: self.config.clone(),
            built_unix_s: now.as_secs(),
        }
    }

    /// Name of the kernel's directory, for a source of this version.
    pub(crate) fn key(&self, source: &SourceId, version: &str) -> String {
        let (source, recipe) = (source.to_string(), RECIPE.to_string());
        let digest = digest([&source, version, &self.series, &self.config, &recipe]);
        format!("{}-{version}-{}", self.kind.file_name(), &digest[..12])
    }
}

/// The numbers of a version, for comparing: "7.3.10" is newer than "7.3.4".
pub(crate) fn version_key(version: &str) -> Vec<u64> {
    let numbers = version.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    numbers.map(|part| part.parse().unwrap_or(0)).collect()
}

/// What a directory holds; nothing when it is not there.
pub(crate) fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).doing("reading", folder),
    };
    let paths: std::io::Result<Vec<PathBuf>> = entries.map(|e| e.map(|e| e.path())).collect();
    let mut paths = paths.doing("reading", folder)?;
    paths.sort();
    Ok(paths)
}

/// Removes a file or a directory with all that it holds.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let result = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    result.doing("removing", path)
}

/// What a file or a directory takes on disk, in bytes.
pub(crate) fn size_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let own = metadata.blocks() * 512;
    if !metadata.is_dir() {
        return own;
    }
    own + children(path).unwrap_or_default().iter().map(|child| size_bytes(child)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::{Patch, Series};

    fn package() -> SourceId {
        SourceId::Package { name: "linux-source-7.3".into(), version: "7.3.4-1".into() }
    }

    #[test]
    fn the_key_changes_with_every_input() {
        let inputs = Inputs::new(Kind::Um, &Series::default(), "CONFIG_NET=y");
        let base = inputs.key(&package(), "7.3.4");
        assert!(base.starts_with("um-7.3.4-"), "{base}");
        assert_eq!(base.len(), "um-7.3.4-".len() + 12);
        assert_eq!(base, inputs.key(&package(), "7.3.4"));
        let tree = SourceId::Tree { path: "/src".into(), digest: "d".into() };
        assert_ne!(base, inputs.key(&tree, "7.3.4"));
        let patch = Patch { name: "1.patch".into(), content: b"x".to_vec() };
        let series = Series { patches: vec![patch] };
        assert_ne!(base, Inputs::new(Kind::Um, &series, "CONFIG_NET=y").key(&package(), "7.3.4"));
        let config = Inputs::new(Kind::Um, &Series::default(), "CONFIG_NET=n");
        assert_ne!(base, config.key(&package(), "7.3.4"));
        let kvm = Inputs::new(Kind::Kvm, &Series::default(), "").key(&package(), "7.3.4");
        assert!(kvm.starts_with("x86-plain-7.3.4-"), "one configuration is one kernel: {kvm}");
    }
}
