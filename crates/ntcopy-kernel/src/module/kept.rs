//! The modules that were built here, `modules/RELEASE-SOURCES-KEY/ntcopy.ko` in the cache, and the
//! one that is installed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{Cache, children};
use crate::error::Result;
use crate::series::{MODULE, digest};

pub(super) const FILE: &str = "ntcopy.ko";

/// What the name of a module's folder begins with.
pub(super) fn prefix(release: &str) -> String {
    let sources = MODULE.iter().flat_map(|(name, content)| [name.as_bytes(), *content]);
    format!("{release}-{}-", &digest(sources)[..12])
}

/// The module of this program's sources for a release that was built last.
pub(super) fn built(cache: &Cache, release: &str) -> Result<Option<PathBuf>> {
    let prefix = prefix(release);
    let mut found = children(&cache.modules())?;
    found.retain(|dir| dir.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&prefix)));
    let files = found.into_iter().map(|dir| dir.join(FILE)).filter(|file| file.is_file());
    Ok(files.max_by_key(|file| fs::metadata(file).and_then(|it| it.modified()).ok()))
}

/// The installed module of a release, compressed or not. DKMS of Debian puts it into
/// `updates/dkms`, others into `extra`.
pub(super) fn installed(root: &Path, release: &str) -> Option<PathBuf> {
    let modules = root.join("lib/modules").join(release);
    let folders = ["updates/dkms", "updates", "extra"].map(|folder| modules.join(folder));
    folders.iter().find_map(|folder| {
        let endings = ["", ".xz", ".zst", ".gz"].map(|end| folder.join(format!("{FILE}{end}")));
        endings.into_iter().find(|path| path.is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_module_of_todays_sources_for_this_kernel_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        let own = prefix("6.12.1");
        for name in [&format!("{own}aaaa"), "6.12.1-others-bbbb", "6.12.10-x-cccc"] {
            fs::create_dir_all(cache.modules().join(name)).unwrap();
            fs::write(cache.modules().join(name).join(FILE), name).unwrap();
        }
        fs::create_dir_all(cache.modules().join(format!("{own}dddd"))).unwrap();
        let found = built(&cache, "6.12.1").unwrap().unwrap();
        assert_eq!(fs::read_to_string(found).unwrap(), format!("{own}aaaa"));
        assert_eq!(built(&cache, "6.12.2").unwrap(), None);
    }
}
