//! Looking at the cache, and clearing it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cache::{self, Cache, Inputs, Meta, Part, SourceId};
use crate::error::Result;
use crate::interrupt::Interrupts;
use crate::progress::Progress;

/// Whether a kernel is the one that would be booted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "why")]
pub enum State {
    /// Made of today's series and configuration.
    Current,
    /// Made of something else, and of what.
    Stale(&'static str),
}

#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Name of its directory: kind, version and key.
    pub name: String,
    pub path: PathBuf,
    pub size_bytes: u64,
    #[serde(flatten)]
    pub state: State,
    #[serde(flatten)]
    pub meta: Meta,
}

/// What the cache holds, newest first. What current means for a kind, its environment says, as in
/// `BuildOptions::from_env`.
pub fn list(cache: &Cache) -> Result<Vec<Entry>> {
    let is_package = |meta: &Meta| matches!(meta.source, SourceId::Package { .. });
    let mut newest_seen = HashSet::new();
    let mut entries = Vec::new();
    for built in cache.built()? {
        let state = match Inputs::from_env(built.kind)?.differs(&built.meta) {
            Some(why) => State::Stale(why),
            // Only the newest of the kernels from packages is booted; one from a tree may be
            // asked for again as long as its tree lives.
            None if is_package(&built.meta) && !newest_seen.insert(built.kind) => {
                State::Stale("there is one of a newer source")
            }
            None => State::Current,
        };
        let size_bytes = cache::size_bytes(&built.dir);
        entries.push(Entry {
            name: built.key,
            path: built.path,
            size_bytes,
            state,
            meta: built.meta,
        });
    }
    Ok(entries)
}

#[derive(Clone, Debug, Serialize)]
pub struct Cleaned {
    pub path: PathBuf,
    pub size_bytes: u64,
}

/// Removes kernels that would not be booted any more and logs of failed builds, or all that the
/// cache holds, and says what was removed. Waits for a build that is under way.
pub fn clean(cache: &Cache, all: bool, progress: &mut dyn Progress) -> Result<Vec<Cleaned>> {
    if !cache.root().exists() {
        return Ok(Vec::new());
    }
    let interrupts = Interrupts::arm()?;
    // Packages take hours: whoever only clears away what is stale is not to wait for them.
    let parts: &[Part] =
        if all { &[Part::Kernels, Part::Modules, Part::Builds] } else { &[Part::Kernels] };
    let locks = parts.iter().map(|part| cache.lock(*part, &interrupts, progress));
    let _locks = locks.collect::<Result<Vec<_>>>()?;
    let mut doomed;
    if all {
        doomed = cache::children(cache.root())?;
        doomed.retain(|path| !path.ends_with("lock") && path.extension() != Some("lock".as_ref()));
    } else {
        // Not only what `list` knows: a directory without a readable meta.json is of no use either.
        let entries = list(cache)?;
        let current = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            entries.iter().any(|entry| entry.name == name && entry.state == State::Current)
        };
        doomed = cache::children(&cache.kernels())?;
        doomed.retain(|path| !current(path));
        doomed.extend(cache::children(&cache.logs())?);
    }
    let mut cleaned = Vec::new();
    for path in doomed {
        interrupts.check()?;
        let size_bytes = cache::size_bytes(&path);
        cache::remove(&path)?;
        cleaned.push(Cleaned { path, size_bytes });
    }
    Ok(cleaned)
}
