//! What a run in a booted kernel said, kept in the cache by all that it depends on ([`inputs`]): a
//! boot of the suite takes minutes. What was kept is judged anew each time, as if it had just been
//! said. Only what was judged good is kept. `NTCOPY_ANEW=1` runs it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ntcopy_kernel::Cache;

use crate::error::{Doing, Error};
use crate::inputs;

/// What was not asked for in this time is of a state that is not gone back to.
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a run said on its outputs.
#[derive(Debug, Default)]
pub struct Said {
    pub stdout: String,
    pub stderr: String,
}

/// Where what a run said is kept.
pub struct Kept(PathBuf);

impl Kept {
    /// By the files and the words that a run of the suite depends on, beside what every one does.
    pub fn of(name: &str, files: &[&Path], words: &[&str]) -> Result<Self, Error> {
        let key = inputs::hash(files, words)?;
        Ok(Self(Cache::locate()?.root().join("outputs").join(format!("{name}-{key}"))))
    }

    pub fn read(&self) -> Option<Said> {
        if std::env::var_os("NTCOPY_ANEW").is_some() {
            return None;
        }
        let said = Said {
            stdout: fs::read_to_string(self.0.join("stdout")).ok()?,
            stderr: fs::read_to_string(self.0.join("stderr")).ok()?,
        };
        println!("not booted: all is as it was when this was said, {}", self.0.display());
        // It is of use: its time begins anew.
        let _ = fs::File::open(&self.0).and_then(|file| file.set_modified(SystemTime::now()));
        Some(said)
    }

    /// Keeps what was judged good.
    pub fn write(&self, said: &Said) -> Result<(), Error> {
        let folder = self.0.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).doing("making a folder of the cache")?;
        let half = tempfile::tempdir_in(folder).doing("making a folder of the cache")?;
        fs::write(half.path().join("stdout"), &said.stdout).doing("writing to the cache")?;
        fs::write(half.path().join("stderr"), &said.stderr).doing("writing to the cache")?;
        // Whoever was faster has the same.
        let _ = fs::rename(half.path(), &self.0);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let used = entry.metadata().and_then(|of| of.modified());
            if used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > FORGOTTEN)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }
}
