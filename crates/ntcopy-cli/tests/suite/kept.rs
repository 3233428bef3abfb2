//! What a run in a booted kernel said, kept in the cache by all that it depends on
//! (`scripts/inputs.sh`): a boot of the suite takes minutes. What was kept is judged anew each
//! time, as if it had just been said. Only what was judged good is kept. `NTCOPY_ANEW=1` runs it
//! again.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// What was not asked for in this time is of a state that is not gone back to.
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a run said on its outputs.
pub struct Said {
    pub stdout: String,
    pub stderr: String,
}

/// Where what a run said is kept.
pub struct Kept(PathBuf);

impl Kept {
    /// By the files and the words that a run of the suite depends on, beside what every one does.
    pub fn of(name: &str, files: &[&Path], words: &[&str]) -> Self {
        let output = Command::new(super::project().join("scripts/inputs.sh"))
            .arg("--suite")
            .args(words.iter().map(|word| format!("={word}")))
            .args(files.iter().map(|file| file.as_os_str()).collect::<Vec<&OsStr>>())
            .output()
            .expect("scripts/inputs.sh can be run");
        assert!(output.status.success(), "{}", super::text(&output.stderr));
        Self(folder().join(format!("{name}-{}", super::text(&output.stdout).trim())))
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
        let used = fs::File::open(&self.0).and_then(|file| file.set_modified(SystemTime::now()));
        used.expect("the cache can be written to");
        Some(said)
    }

    /// Keeps what was judged good.
    pub fn write(&self, said: &Said) {
        let parent = folder();
        fs::create_dir_all(&parent).expect("the cache can be written to");
        let half = tempfile::tempdir_in(&parent).expect("the cache can be written to");
        fs::write(half.path().join("stdout"), &said.stdout).expect("the cache has room");
        fs::write(half.path().join("stderr"), &said.stderr).expect("the cache has room");
        // Whoever was faster has the same.
        let _ = fs::rename(half.path(), &self.0);
        forget(&parent);
    }
}

fn folder() -> PathBuf {
    let cache = ntcopy_kernel::Cache::locate().expect("there is a home");
    cache.root().join("outputs")
}

fn forget(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let used = entry.metadata().and_then(|of| of.modified());
        if used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > FORGOTTEN)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
