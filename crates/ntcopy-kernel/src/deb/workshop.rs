//! Where a kernel's packages are made: a folder of the cache that outlives an interrupted build, and
//! what is known of it, `state.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, Inputs, SourceId, children};
use crate::error::{Context, Result};

/// How inputs become packages; another number leaves older builds alone.
const RECIPE: u32 = 1;
/// What is known, in the folder.
const STATE: &str = "state.json";

/// What is known of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) recipe: u32,
    /// Where the source came from.
    pub(super) source: SourceId,
    /// Version of the source, `7.3.4`.
    pub(super) version: String,
    /// The line of versions and the configuration of ours that the series is taken from.
    pub(super) kind: String,
    /// Hash of the series.
    pub(super) series: String,
    /// Hash of the configuration, as it was asked for.
    pub(super) config: String,
    /// Whether it is compiled with information for debuggers.
    pub(super) has_debug_info: bool,
    /// Settings that make has taken, which then need not be asked again.
    pub(super) is_configured: bool,
    /// Seconds that compiling took so far, all runs together.
    pub(super) seconds: u64,
    /// Compilers that were at work in the last run; 0 where that was not noted.
    #[serde(default)]
    pub(super) jobs: usize,
    /// What it took, once it is done.
    pub(super) done: Option<Done>,
}

/// What a build took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    /// What `uname -r` says in it.
    pub(super) release: String,
    /// Objects compiled.
    pub(super) objects: u64,
    /// What the folder took on disk in the end, in bytes.
    pub(super) size_bytes: u64,
    /// When, in seconds since 1970.
    pub(super) built_unix_s: u64,
}

impl State {
    pub(super) fn new(
        source: SourceId,
        version: String,
        inputs: &Inputs,
        has_debug_info: bool,
    ) -> Self {
        Self {
            recipe: RECIPE,
            source,
            version,
            kind: inputs.kind.name().into(),
            series: inputs.series.clone(),
            config: inputs.config.clone(),
            has_debug_info,
            is_configured: false,
            seconds: 0,
            jobs: 0,
            done: None,
        }
    }

    /// Whether it is made of these inputs. Without a source: from any package.
    fn fits(&self, inputs: &Inputs, source: Option<&SourceId>) -> bool {
        self.recipe == RECIPE
            && self.kind == inputs.kind.name()
            && self.series == inputs.series
            && self.config == inputs.config
            && match source {
                Some(source) => self.source == *source,
                None => matches!(self.source, SourceId::Package { .. }),
            }
    }
}

/// A build's folder.
#[derive(Clone, Debug)]
pub(super) struct Workshop {
    pub(super) folder: PathBuf,
    pub(super) state: State,
}

impl Workshop {
    /// The patched source, in which it is built.
    pub(super) fn source(&self) -> PathBuf {
        self.folder.join("source")
    }

    /// What make said, of all runs.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("build.log")
    }

    /// What make has said so far.
    pub(super) fn logged(&self) -> String {
        let bytes = fs::read(self.log()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Writes down what is known: whole, or not at all.
    pub(super) fn save(&self) -> Result<()> {
        let (path, new) = (self.folder.join(STATE), self.folder.join("state.new"));
        let text = serde_json::to_string_pretty(&self.state).map_err(std::io::Error::from);
        fs::write(&new, text.doing("writing", &new)? + "\n").doing("writing", &new)?;
        fs::rename(&new, &path).doing("writing", &path)
    }
}

/// All builds of the cache, the last finished first.
pub(super) fn all(cache: &Cache) -> Result<Vec<Workshop>> {
    let mut all = Vec::new();
    for folder in children(&cache.builds())? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let state = fs::read(folder.join(STATE)).ok().filter(|_| !name.starts_with('.'));
        let state = state.and_then(|text| serde_json::from_slice::<State>(&text).ok());
        all.extend(state.map(|state| Workshop { folder: folder.clone(), state }));
    }
    all.sort_by_key(|shop| shop.state.done.as_ref().map(|done| done.built_unix_s));
    all.reverse();
    Ok(all)
}

/// The build of these inputs that can be gone on with, of the newest source.
pub(super) fn find(
    cache: &Cache,
    inputs: &Inputs,
    source: Option<&SourceId>,
) -> Result<Option<Workshop>> {
    let fitting = all(cache)?.into_iter().filter(|shop| shop.state.fits(inputs, source));
    Ok(fitting.max_by_key(|shop| crate::cache::version_key(&shop.state.source.to_string())))
}

/// Where the build of these inputs is.
pub(super) fn folder(cache: &Cache, inputs: &Inputs, source: &SourceId, version: &str) -> PathBuf {
    let key = inputs.key(source, version);
    let hash = key.rsplit('-').next().unwrap_or(&key);
    cache.builds().join(format!("{version}-{hash}"))
}

/// Whether a folder holds a build whose state can be read.
pub(super) fn is_whole(folder: &Path) -> bool {
    folder.join(STATE).is_file()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::kind::{Flavour, Kind, Release};
    use crate::series::Series;

    fn inputs(config: &str) -> Inputs {
        Inputs::new(Kind::X86(Release::Newest, Flavour::Plain), &Series::default(), config)
    }

    fn package(version: &str) -> SourceId {
        SourceId::Package { name: "linux-source-7.3".into(), version: version.into() }
    }

    /// A build that is nowhere.
    pub fn shop(has_debug_info: bool) -> Workshop {
        let state = State::new(package("7.3.4"), "7.3.4".into(), &inputs("a"), has_debug_info);
        Workshop { folder: "/nowhere".into(), state }
    }

    #[test]
    fn a_build_is_found_again_by_what_it_is_made_of_and_the_newest_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        assert!(find(&cache, &inputs("a"), None).unwrap().is_none());
        for version in ["7.3.9-1", "7.3.10-1"] {
            let (source, inputs) = (package(version), inputs("a"));
            let folder = folder(&cache, &inputs, &source, version);
            fs::create_dir_all(&folder).unwrap();
            let state = State::new(source, version.into(), &inputs, false);
            Workshop { folder, state }.save().unwrap();
        }
        let found = find(&cache, &inputs("a"), None).unwrap().unwrap();
        assert_eq!(found.state.version, "7.3.10-1");
        assert!(is_whole(&found.folder) && found.folder.starts_with(cache.builds()));
        assert!(find(&cache, &inputs("b"), None).unwrap().is_none());
        let tree = SourceId::Tree { path: "/src".into(), digest: "d".into() };
        assert!(find(&cache, &inputs("a"), Some(&tree)).unwrap().is_none());
    }

    #[test]
    fn a_folder_without_a_state_is_no_build() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        let folder = cache.builds().join("7.3.4-0123456789ab");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(STATE), "{ half").unwrap();
        assert!(all(&cache).unwrap().is_empty());
    }
}
