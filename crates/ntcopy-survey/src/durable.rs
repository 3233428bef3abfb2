//! Folders that are still there after a loss of power.

use std::path::Path;
use std::{fs, io};

/// Makes a folder, and those above it that are missing, each synced into the one above it: who
/// syncs a file in a folder that was just made has not synced the folder's own name.
pub fn create_dir_all(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    create_dir_all(above)?;
    match fs::create_dir(folder) {
        // Another process was faster, and may not have synced it yet.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        result => result?,
    }
    sync_dir(above)
}

/// Makes the names in a folder durable: what was made, renamed or removed there.
fn sync_dir(folder: &Path) -> io::Result<()> {
    match fs::File::open(folder)?.sync_all() {
        // Not every file system can.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_where_they_are_missing() {
        let own = tempfile::tempdir().unwrap();
        let deep = own.path().join("a/b/c");
        for _ in 0..2 {
            create_dir_all(&deep).unwrap();
            assert!(deep.is_dir());
        }
        fs::write(own.path().join("file"), "").unwrap();
        assert!(create_dir_all(&own.path().join("file/d")).is_err());
        assert!(create_dir_all(&own.path().join("file")).is_err());
        create_dir_all(Path::new("")).unwrap();
    }
}
