//! The report before a build: what is going to be built, and what that takes.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::config::{Change, Config};
use super::error::DebError;
use super::time::{self, Known, Time, Work};
use super::workshop::{self, Workshop};
use super::{PackageOptions, kconfig, objects};
use crate::cache::{Cache, SourceId};
use crate::error::Result;
use crate::interrupt::Interrupts;
use crate::module::{SecureBoot, Sysroot, secure_boot};
use crate::room;
use crate::source::package;
use crate::source::wanted::Wanted;
use crate::tools::{self, Tool};

/// More settings than this in a thousand that the source does not know: the configuration is of
/// another kernel. Debian's of 6.12 for clouds, taken to 7.3.4, has 39 in a thousand (115 settings),
/// one of 6.18 for small virtual machines 16.
const UNKNOWN_PER_MILLE: usize = 100;

/// What an object takes on disk with all that is made of it, in bytes. Linux 7.3.4 as `x86+plain`
/// took 73 kB for each of 1593 objects; three of them were 13 to 19 times as large with `-g`. Both
/// with half as much again in reserve.
const OBJECT_BYTES: Bytes = Bytes { plain: 110_000, with_debug_info: 1_650_000 };
/// A whole source, unpacked and patched: 2.0 GB of 7.3.4 and of 6.12.117.
const SOURCE_BYTES: u64 = 2_050_000_000;

struct Bytes {
    plain: u64,
    with_debug_info: u64,
}

/// What is going to be built.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Version of the source; nothing when no source is here yet.
    pub version: Option<String>,
    /// The source, likewise.
    pub source: Option<String>,
    /// How many patches go on it.
    pub patches: usize,
    /// Where the configuration is from.
    pub config: PathBuf,
    /// Settings that are `y`.
    pub builtin: usize,
    /// Settings that are `m`.
    pub modules: usize,
    /// What had to change in the configuration.
    pub changes: Vec<Change>,
    /// Settings that are on and that the source does not know: they are lost.
    pub unknown: Vec<String>,
    /// Objects to compile, about, as the makefiles tell; nothing when no source is here yet.
    pub objects: Option<u64>,
    /// Those that an earlier run has compiled.
    pub compiled: u64,
    /// What is going to be needed on disk from now on.
    pub room: Room,
    /// How long compiling is going to take.
    pub time: Time,
    /// What has to be downloaded first; nothing where the source is here.
    pub download: Option<Download>,
    /// Programs and headers that it takes and that are not here.
    pub missing: Vec<Tool>,
    /// Where it is built.
    pub folder: PathBuf,
    /// Whether an earlier run is gone on with.
    pub is_resumed: bool,
    /// What else to know.
    pub notes: Vec<String>,
}

/// Room on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Room {
    /// What is needed beside what an earlier run has taken, in bytes.
    pub needed_bytes: u64,
    /// What is free, in bytes.
    pub free_bytes: u64,
    /// What the estimate rests on.
    pub basis: String,
}

/// What a plan is made from.
pub(super) struct Basis<'a> {
    pub(super) options: &'a PackageOptions,
    pub(super) config: &'a Config,
    pub(super) config_path: PathBuf,
    pub(super) changes: Vec<Change>,
}

/// A source that is here.
pub(super) struct Found<'a> {
    /// Makefiles and Kconfig files, at least.
    pub(super) tree: PathBuf,
    pub(super) version: String,
    pub(super) id: SourceId,
    /// Whether the whole of it is on the disk, where it is going to be built.
    pub(super) is_unpacked: bool,
    /// Where it is built, if an earlier run has begun.
    pub(super) begun: Option<&'a Workshop>,
}

impl<'a> Found<'a> {
    /// A source that nothing was begun with.
    pub(super) fn new(tree: &Path, version: String, id: SourceId) -> Self {
        Self { tree: tree.to_path_buf(), version, id, is_unpacked: false, begun: None }
    }

    /// The source of a build that was begun.
    pub(super) fn begun(begun: &'a Workshop) -> Self {
        let (version, id) = (begun.state.version.clone(), begun.state.source.clone());
        Self { tree: begun.source(), version, id, is_unpacked: true, begun: Some(begun) }
    }
}

/// Looks at configuration and source, and says what the build takes.
pub(super) fn make(basis: Basis<'_>, found: Option<&Found<'_>>) -> Result<Plan> {
    let Basis { options, config, config_path, changes } = basis;
    let (builtin, modules) = config.counts();
    let cache = &options.base.cache;
    let mut plan = Plan {
        version: found.map(|found| found.version.clone()),
        source: found.map(|found| found.id.to_string()),
        patches: options.base.series.patches.len(),
        config: config_path,
        builtin,
        modules,
        changes,
        unknown: Vec::new(),
        objects: None,
        compiled: 0,
        room: Room { needed_bytes: 0, free_bytes: free_bytes(cache)?, basis: String::new() },
        time: Time::default(),
        download: None,
        missing: tools::missing_for_packages(
            &|symbol| config.has(symbol),
            options.base.tree.is_none(),
        ),
        folder: cache.builds(),
        is_resumed: false,
        notes: notes(config),
    };
    if let Some(found) = found {
        let mut known = kconfig::symbols(&found.tree)?;
        known.extend(kconfig::symbols_of(&options.base.series));
        plan.unknown = config.unknown(&known);
        plan.objects = Some(objects::count(&found.tree, config));
        if let Some(begun) = found.begun {
            plan.compiled = super::make::objects_in(&begun.logged());
            plan.folder = begun.folder.clone();
            plan.is_resumed = true;
        }
    }
    let earlier = workshop::all(cache)?;
    let source_bytes = if found.is_some_and(|found| found.is_unpacked) { 0 } else { SOURCE_BYTES };
    let has_debug_info = config.has("CONFIG_DEBUG_INFO");
    room(&mut plan, source_bytes, has_debug_info, &earlier);
    let known = Known {
        begun: found.and_then(|found| found.begun),
        earlier: &earlier,
        kernels: &cache.built()?,
        has_ccache: cache.compiled().is_dir(),
    };
    let jobs = options.base.jobs;
    let work = Work { objects: plan.objects, compiled: plan.compiled, has_debug_info, jobs };
    plan.time = time::of(work, &known);
    Ok(plan)
}

/// What the disk has to take from now on.
fn room(plan: &mut Plan, source_bytes: u64, has_debug_info: bool, earlier: &[Workshop]) {
    let like = earlier.iter().filter(|shop| shop.state.has_debug_info == has_debug_info);
    let done = like.filter_map(|shop| shop.state.done.as_ref()).find(|done| done.objects > 0);
    let kind = if has_debug_info { "with debug information" } else { "without debug information" };
    let object_bytes = match done {
        Some(done) => done.size_bytes.saturating_sub(SOURCE_BYTES) / done.objects,
        None if has_debug_info => OBJECT_BYTES.with_debug_info,
        None => OBJECT_BYTES.plain,
    };
    let of =
        if done.is_some() { "of the last build here" } else { "as measured on a small kernel" };
    let left = plan.objects.unwrap_or(0).saturating_sub(plan.compiled);
    plan.room.needed_bytes = source_bytes + left * object_bytes;
    let source = if source_bytes > 0 { ", and the source" } else { "" };
    plan.room.basis = format!("{} kB an object {kind}, {of}{source}", object_bytes.div_ceil(1000));
}

/// What is free where the cache is, or is going to be.
fn free_bytes(cache: &Cache) -> Result<u64> {
    let here = cache.root().ancestors().find(|folder| folder.is_dir());
    room::free_bytes(here.unwrap_or(Path::new("/")))
}

/// What a user should know of this configuration.
fn notes(config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    notes.push(match secure_boot(&Sysroot("/".into())) {
        SecureBoot::On => "Secure Boot is on in this machine, and this kernel is not signed: the \
                           firmware will refuse it until you sign it with a key that is enrolled \
                           (sbsign, mokutil), or switch Secure Boot off"
            .into(),
        _ => "this kernel is not signed: a machine with Secure Boot on refuses it".into(),
    });
    if config.has("CONFIG_MODULE_SIG") {
        let key = config.value("CONFIG_MODULE_SIG_KEY").unwrap_or_default();
        notes.push(format!(
            "its modules are signed with {key} of the build; modules of others{}",
            match config.has("CONFIG_MODULE_SIG_FORCE") {
                true => " are refused (CONFIG_MODULE_SIG_FORCE)",
                false => " taint it, and load all the same",
            }
        ));
    }
    if config.has("CONFIG_DEBUG_INFO") {
        let text = "debug information makes a build several times as large; --no-debug-info leaves \
                    it out, and with it BTF, which bpftrace and systemd's BPF programs want";
        notes.push(text.into());
    }
    notes
}

impl Plan {
    /// Whether the configuration is of another kernel.
    pub(super) fn check_unknown(&self) -> Result<()> {
        let on = self.builtin + self.modules;
        if self.unknown.len() * 1000 <= on * UNKNOWN_PER_MILLE {
            return Ok(());
        }
        let version = self.version.clone().unwrap_or_default();
        Err(DebError::Unknown { version, unknown: self.unknown.clone(), on }.into())
    }

    /// Whether there is room for it.
    pub(super) fn check_room(&self) -> Result<()> {
        let here = self.folder.ancestors().find(|folder| folder.is_dir());
        let here = here.unwrap_or(Path::new("/"));
        room::check_disk(here, "the source and what is built of it", self.room.needed_bytes)
    }
}

/// The source package that a build begins by downloading where no source is here yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Download {
    /// Its name; where apt's lists lack it, what the name is like.
    pub name: String,
    /// Its version, if apt knows it.
    pub version: Option<String>,
    /// Its size in bytes, if apt knows it.
    pub size_bytes: Option<u64>,
    /// What that rests on.
    pub basis: String,
}

/// The newest package that the system's own apt knows. The mirror is asked first when it comes to
/// building, and may have a newer one.
pub(super) fn download(wanted: Wanted, interrupts: &Interrupts) -> Result<Download> {
    Ok(match package::newest_listed(wanted, interrupts)? {
        Some(package) => Download {
            name: package.name,
            version: Some(package.version),
            size_bytes: Some(package.size_bytes),
            basis: "by apt's lists as they are; the mirror may have a newer one".into(),
        },
        None => Download {
            name: format!("{}*", wanted.prefix()),
            version: None,
            size_bytes: None,
            basis: "apt's own lists lack it, and the mirror is asked for it when it comes to \
                    building; those of 7.3.4 and 6.12.117 are 167 and 153 MB"
                .into(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::workshop::{Done, State};
    use super::*;
    use crate::cache::Inputs;
    use crate::kind::{Flavour, Kind, Release};
    use crate::series::Series;

    /// A plan of a thousand objects.
    fn plan(unknown: usize, on: usize) -> Plan {
        Plan {
            version: Some("7.3.4".into()),
            source: None,
            patches: 11,
            config: "/boot/config".into(),
            builtin: on,
            modules: 0,
            changes: Vec::new(),
            unknown: (0..unknown).map(|n| format!("CONFIG_OLD_{n}")).collect(),
            objects: Some(1000),
            compiled: 0,
            room: Room { needed_bytes: 0, free_bytes: 0, basis: String::new() },
            time: Time::default(),
            download: None,
            missing: Vec::new(),
            folder: "/nowhere/builds".into(),
            is_resumed: false,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_few_strangers_pass_and_many_are_another_kernel_s_configuration() {
        plan(100, 1000).check_unknown().unwrap();
        let error = plan(101, 1000).check_unknown().unwrap_err();
        assert_eq!(error.exit_code(), 1);
        let text = error.to_string();
        for part in ["7.3.4", "101 of the 1000", "CONFIG_OLD_0\n", "and 61 more", "--drop-unknown"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn room_is_reckoned_from_what_is_left_and_from_the_last_build_like_it() {
        let mut fresh = plan(0, 1000);
        room(&mut fresh, SOURCE_BYTES, false, &[]);
        assert_eq!(fresh.room.needed_bytes, SOURCE_BYTES + 1000 * OBJECT_BYTES.plain);
        let mut resumed = Plan { compiled: 600, is_resumed: true, ..plan(0, 1000) };
        room(&mut resumed, 0, false, &[]);
        assert_eq!(resumed.room.needed_bytes, 400 * OBJECT_BYTES.plain);
        let inputs = Inputs::new(
            Kind::X86(Release::Newest, Flavour::Plain),
            &Series::default(),
            "CONFIG_NET=y",
        );
        let source = SourceId::Tree { path: "/s".into(), digest: "d".into() };
        let mut state = State::new(source, "7.3.4".into(), &inputs, false);
        state.done = Some(Done {
            release: "7.3.4-x".into(),
            objects: 10,
            size_bytes: SOURCE_BYTES + 10 * 77_000,
            built_unix_s: 1,
        });
        let earlier = [Workshop { folder: "/b".into(), state }];
        room(&mut resumed, 0, false, &earlier);
        assert_eq!(resumed.room.needed_bytes, 400 * 77_000);
        assert!(resumed.room.basis.contains("the last build"), "{}", resumed.room.basis);
        room(&mut resumed, 0, true, &earlier);
        assert_eq!(resumed.room.needed_bytes, 400 * OBJECT_BYTES.with_debug_info);
    }
}
