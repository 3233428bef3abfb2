//! The modules that were built here: `modules/RELEASE-KEY/ntcopy.ko` in the cache.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, children};
use crate::error::Result;

use super::source::Sources;

/// What a built module was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptMeta {
    pub(super) release: String,
    pub(super) version: String,
    /// Hash of the sources.
    pub(super) sources: String,
    pub(super) compiler: String,
    /// When it was built, in seconds since 1970.
    pub(super) built_unix_s: u64,
}

/// A module in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// `ntcopy.ko`.
    pub path: PathBuf,
    /// The kernel that it is for.
    pub release: String,
    /// Its version.
    pub version: String,
    /// Whether it was made of the sources that this program carries.
    pub is_current: bool,
    /// When it was built, in seconds since 1970.
    pub built_unix_s: u64,
}

/// Name of a built module's description.
pub(super) const META: &str = "meta.json";

/// The modules that the cache holds, those of this program's sources first, then newest first.
///
/// # Errors
///
/// When the cache cannot be read. What is not whole is left out.
pub fn cached(cache: &Cache) -> Result<Vec<Kept>> {
    let sources = Sources::embedded().hash();
    let mut kept = Vec::new();
    for dir in children(&cache.modules())? {
        let path = dir.join("ntcopy.ko");
        if let Some(meta) = read(&dir).filter(|_| path.is_file()) {
            let is_current = meta.sources == sources;
            let KeptMeta { release, version, built_unix_s, .. } = meta;
            kept.push(Kept { path, release, version, is_current, built_unix_s });
        }
    }
    kept.sort_by_key(|kept| (kept.is_current, kept.built_unix_s));
    kept.reverse();
    Ok(kept)
}

fn read(dir: &Path) -> Option<KeptMeta> {
    serde_json::from_slice(&fs::read(dir.join(META)).ok()?).ok()
}

/// The module for a release: of the cache, else the one that DKMS or a user installed below
/// `/lib/modules`.
///
/// # Errors
///
/// When the cache cannot be read.
pub fn find(cache: &Cache, root: &Path, release: &str) -> Result<Option<PathBuf>> {
    if let Some(kept) = cached(cache)?.into_iter().find(|kept| kept.release == release) {
        return Ok(Some(kept.path));
    }
    Ok(installed(root, release))
}

/// The installed module of a release, compressed or not. DKMS of Debian puts it into
/// `updates/dkms`, others into `extra`.
pub(super) fn installed(root: &Path, release: &str) -> Option<PathBuf> {
    let modules = root.join("lib/modules").join(release);
    for folder in ["updates/dkms", "updates", "extra"] {
        for ending in ["", ".xz", ".zst", ".gz"] {
            let path = modules.join(folder).join(format!("ntcopy.ko{ending}"));
            if path.is_file() {
                return Some(path);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(cache: &Cache, name: &str, sources: &str, built_unix_s: u64) {
        let dir = cache.modules().join(name);
        fs::create_dir_all(&dir).unwrap();
        let meta = KeptMeta {
            release: "6.12.1".into(),
            version: "0.1.0".into(),
            sources: sources.into(),
            compiler: "gcc".into(),
            built_unix_s,
        };
        fs::write(dir.join(META), serde_json::to_string(&meta).unwrap()).unwrap();
        fs::write(dir.join("ntcopy.ko"), name).unwrap();
    }

    #[test]
    fn a_module_of_todays_sources_goes_before_a_newer_one_of_others() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        put(&cache, "6.12.1-aaaa", &Sources::embedded().hash(), 5);
        put(&cache, "6.12.1-bbbb", "others", 9);
        fs::create_dir_all(cache.modules().join("6.12.1-cccc")).unwrap();
        let kept = cached(&cache).unwrap();
        let names: Vec<(bool, u64)> =
            kept.iter().map(|kept| (kept.is_current, kept.built_unix_s)).collect();
        assert_eq!(names, [(true, 5), (false, 9)]);
        let found = find(&cache, home.path(), "6.12.1").unwrap().unwrap();
        assert_eq!(fs::read_to_string(found).unwrap(), "6.12.1-aaaa");
        assert_eq!(find(&cache, home.path(), "6.12.2").unwrap(), None);
    }

    #[test]
    fn the_module_of_dkms_is_found_compressed_or_not() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path().join("cache"));
        for place in ["updates/dkms/ntcopy.ko.xz", "extra/ntcopy.ko"] {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join("lib/modules/6.12.1").join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            assert_eq!(find(&cache, root.path(), "6.12.1").unwrap(), Some(path));
        }
    }
}
