//! Kernel sources as packages of the distribution.
//!
//! The system's apt answers for transport, proxies and signatures. Its lists and its sources stay
//! as they are: ours have a folder of their own, and hooks of the system are not run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::apt_sources::{self, Archive};
use crate::cache::{Cache, SourceId, children, size_bytes, version_key};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::process::{self, Event};
use crate::progress::Progress;

/// The suite that carries new kernels for Debian 12 and 13.
const SUITE: &str = "trixie-backports";
/// What the names of the packages begin with; the number after it is the kernel's.
const NAME_PREFIX: &str = "linux-source-7.";

/// A source package, downloaded or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Size of the file in bytes.
    pub(crate) size_bytes: u64,
}

impl Package {
    pub(crate) fn id(&self) -> SourceId {
        SourceId::Package { name: self.name.clone(), version: self.version.clone() }
    }

    /// The file's name as apt writes it: a colon of the version becomes `%3a`.
    fn file_name(&self) -> String {
        format!("{}_{}_all.deb", self.name, self.version.replace(':', "%3a"))
    }

    pub(crate) fn file(&self, cache: &Cache) -> PathBuf {
        cache.packages().join(self.file_name())
    }

    /// Reads a file's name back.
    fn from_file(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix("_all.deb")?;
        let (name, version) = name.split_once('_')?;
        name.strip_prefix(NAME_PREFIX)?;
        let size_bytes = fs::metadata(path).ok()?.len();
        Some(Self { name: name.into(), version: version.replace("%3a", ":"), size_bytes })
    }
}

/// The packages that the cache holds, newest first.
pub(crate) fn cached(cache: &Cache) -> Result<Vec<Package>> {
    let paths = children(&cache.packages())?;
    Ok(sorted(paths.iter().filter_map(|path| Package::from_file(path)).collect()))
}

fn sorted(mut packages: Vec<Package>) -> Vec<Package> {
    packages.sort_by_key(|p| (version_key(&p.name), version_key(&p.version)));
    packages.reverse();
    packages
}

/// apt, pointed at a folder of its own.
pub(crate) struct Apt {
    /// Removed when dropped.
    folder: tempfile::TempDir,
    archive: Archive,
}

/// What the user can do when no source is to be had.
const FIX: &str = "Check the network, or set NTCOPY_LINUX to a Linux 7.3 source tree";

impl Apt {
    /// Asks the mirrors of `/etc/apt` in turn for the suite's list of packages.
    pub(crate) fn update(
        etc_apt: &Path,
        interrupts: &Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let archives = apt_sources::system(etc_apt);
        if archives.is_empty() {
            return Err(Error::NoSource {
                looked_for: format!(
                    "looked for a Debian archive in {0}/sources.list and {0}/sources.list.d, \
                     and found none",
                    etc_apt.display()
                ),
                fix: "Set NTCOPY_LINUX to a Linux 7.3 source tree".into(),
            });
        }
        let mut failures = Vec::new();
        for archive in archives {
            let uri = archive.uri.clone();
            progress.begin("asking the mirror", None, None);
            let apt = Self::new(archive, interrupts)?;
            let updated = apt.run("apt-get", &["update", "-q"], interrupts, &mut |_| Ok(()));
            progress.end();
            match updated {
                Ok(()) => return Ok(apt),
                Err(Error::Interrupted(signal)) => return Err(Error::Interrupted(signal)),
                Err(error) => failures.push(format!("{uri} {SUITE}: {error}")),
            }
        }
        Err(Error::NoSource {
            looked_for: format!("apt-get update failed for {}", failures.join("; ")),
            fix: FIX.into(),
        })
    }

    fn new(archive: Archive, interrupts: &Interrupts) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("ntcopy-apt-").tempdir();
        let folder = folder.doing("creating", std::env::temp_dir())?;
        let path = folder.path();
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(path.join(part)).doing("creating", path)?;
        }
        let sources = path.join("ntcopy.sources");
        fs::write(&sources, sources_text(&archive)).doing("writing", &sources)?;
        // How to reach the mirror (proxies, certificates) is the system's business; its hooks
        // and its lists are not ours.
        let dump = process::output(Command::new("apt-config").arg("dump"), interrupts)?;
        let conf = path.join("apt.conf");
        fs::write(&conf, conf_text(path, &dump)).doing("writing", &conf)?;
        Ok(Self { folder, archive })
    }

    /// Runs a tool of apt with our configuration.
    fn run(
        &self,
        program: &str,
        args: &[&str],
        interrupts: &Interrupts,
        on_event: &mut dyn FnMut(Event<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path());
        command.env("APT_CONFIG", self.folder.path().join("apt.conf")).env("LC_ALL", "C");
        let mut said = Vec::new();
        let status = process::run(&mut command, interrupts, &mut |event| {
            if let Event::Line(line) = &event
                && (line.starts_with("E:") || line.starts_with("Err:"))
            {
                said.push((*line).to_owned());
            }
            on_event(event)
        })?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Io {
            doing: "running",
            path: format!("{program} {}", args.join(" ")).into(),
            source: std::io::Error::other(format!("{status}; {}", said.join("; "))),
        })
    }

    /// The packages that the mirror has, newest first.
    pub(crate) fn packages(&self, interrupts: &Interrupts) -> Result<Vec<Package>> {
        let mut names = Vec::new();
        self.run("apt-cache", &["pkgnames", NAME_PREFIX], interrupts, &mut |event| {
            if let Event::Line(line) = event {
                names.push(line.to_owned());
            }
            Ok(())
        })?;
        let mut text = String::new();
        for name in &names {
            self.run("apt-cache", &["show", name], interrupts, &mut |event| {
                if let Event::Line(line) = event {
                    text.push_str(line);
                    text.push('\n');
                }
                Ok(())
            })?;
        }
        let packages = sorted(parse_show(&text));
        if packages.is_empty() {
            return Err(Error::NoSource {
                looked_for: format!(
                    "{} {SUITE} has no package whose name begins with {NAME_PREFIX}",
                    self.archive.uri
                ),
                fix: "Set NTCOPY_LINUX to a Linux 7.3 source tree".into(),
            });
        }
        Ok(packages)
    }

    /// Puts a package into the cache.
    pub(crate) fn download(
        &self,
        package: &Package,
        cache: &Cache,
        interrupts: &Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let partial = cache.partial(&cache.packages())?;
        crate::room::check_disk(partial.path(), "the source package", package.size_bytes)?;
        let step = format!("downloading {}", package.name);
        progress.begin(&step, Some(package.size_bytes), None);
        let wanted = format!("{}={}", package.name, package.version);
        // apt-get download writes into the directory that it is started in.
        let directory = format!("Dir::Cache::archives={}", partial.path().display());
        let mut command = Command::new("apt-get");
        command.args(["download", "-q", "-o", &directory, &wanted]).current_dir(partial.path());
        command.env("APT_CONFIG", self.folder.path().join("apt.conf")).env("LC_ALL", "C");
        let mut said = Vec::new();
        let status = process::run(&mut command, interrupts, &mut |event| {
            match event {
                Event::Tick => progress.advance(size_bytes(partial.path())),
                Event::Line(line) => said.push(line.to_owned()),
            }
            Ok(())
        })?;
        progress.end();
        let file = partial.path().join(package.file_name());
        if !status.success() || !file.is_file() {
            return Err(Error::NoSource {
                looked_for: format!("apt-get download {wanted} failed: {}", said.join("; ")),
                fix: FIX.into(),
            });
        }
        let target = package.file(cache);
        fs::rename(&file, &target).doing("moving the package to", &target)
    }
}

/// Our sources list: the same mirror, another suite.
fn sources_text(archive: &Archive) -> String {
    let mut text =
        format!("Types: deb\nURIs: {}\nSuites: {SUITE}\nComponents: main\n", archive.uri);
    if let Some(keys) = &archive.signed_by {
        let gap = if keys.starts_with('\n') { "" } else { " " };
        text.push_str(&format!("Signed-By:{gap}{keys}\n"));
    }
    text
}

/// Our configuration: the system's way to reach a mirror, and our own folders.
fn conf_text(folder: &Path, dump: &str) -> String {
    let mut text: String = dump
        .lines()
        .filter(|line| line.starts_with("Acquire::"))
        .map(|line| format!("{line}\n"))
        .collect();
    let folder = folder.display();
    text.push_str(&format!(
        "Dir::Etc::main \"/dev/null\";\n\
         Dir::Etc::parts \"/dev/null\";\n\
         Dir::Etc::sourcelist \"{folder}/ntcopy.sources\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::State::lists \"{folder}/lists\";\n\
         Dir::Cache \"{folder}/cache\";\n\
         Acquire::Languages \"none\";\n"
    ));
    if rustix::process::geteuid().is_root() {
        // As root apt downloads as the user _apt, who may not write into our folders.
        text.push_str("APT::Sandbox::User \"root\";\n");
    }
    text
}

/// Reads what `apt-cache show` prints.
fn parse_show(text: &str) -> Vec<Package> {
    let mut packages = Vec::new();
    for stanza in text.split("\n\n") {
        let field = |name: &str| {
            stanza.lines().find_map(|line| line.strip_prefix(name)).map(|v| v.trim().to_owned())
        };
        let (Some(name), Some(version)) = (field("Package:"), field("Version:")) else { continue };
        let is_kernel = name
            .strip_prefix(NAME_PREFIX)
            .is_some_and(|minor| minor.chars().all(|c| c.is_ascii_digit()));
        let size_bytes = field("Size:").and_then(|size| size.parse().ok());
        if let (true, Some(size_bytes)) = (is_kernel, size_bytes) {
            packages.push(Package { name, version, size_bytes });
        }
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_sorted_newest_first_and_flavours_left_out() {
        let text = "Package: linux-source-7.3\nVersion: 7.3.4-1~bpo13+1\nSize: 10\n\n\
            Package: linux-source-7.3-rt\nVersion: 7.3.4-1\nSize: 10\n\n\
            Package: linux-source-7.10\nVersion: 7.10.1-1~bpo13+1\nSize: 12\nDepends: xz-utils\n\n\
            Package: linux-source-7.3\nVersion: 7.3.11-1~bpo13+1\nSize: 11\n\n";
        let names: Vec<String> =
            sorted(parse_show(text)).iter().map(|p| format!("{} {}", p.name, p.version)).collect();
        assert_eq!(
            names,
            [
                "linux-source-7.10 7.10.1-1~bpo13+1",
                "linux-source-7.3 7.3.11-1~bpo13+1",
                "linux-source-7.3 7.3.4-1~bpo13+1"
            ]
        );
    }

    #[test]
    fn a_package_is_found_again_by_its_file() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        let package = Package {
            name: "linux-source-7.3".into(),
            version: "1:7.3.4-1~bpo13+1".into(),
            size_bytes: 3,
        };
        fs::create_dir_all(cache.packages()).unwrap();
        fs::write(package.file(&cache), "deb").unwrap();
        fs::write(cache.packages().join("notes.txt"), "x").unwrap();
        assert_eq!(cached(&cache).unwrap(), [package]);
    }

    #[test]
    fn our_configuration_takes_the_transport_and_nothing_else() {
        let dump = "APT::Update::Post-Invoke:: \"rm -rf x\";\nAcquire::http::Proxy \"http://p:1\";\n\
                    Dir::Etc::sourcelist \"sources.list\";\n";
        let text = conf_text(Path::new("/t"), dump);
        assert!(text.contains("Acquire::http::Proxy \"http://p:1\";"));
        assert!(!text.contains("Post-Invoke"));
        assert!(text.contains("Dir::State::lists \"/t/lists\";"));
    }

    #[test]
    fn our_list_keeps_the_key() {
        let key = |keys: &str| {
            sources_text(&Archive { uri: "http://m/debian".into(), signed_by: Some(keys.into()) })
        };
        assert!(key("/k.gpg").contains("Signed-By: /k.gpg\n"));
        assert!(key("\n -----BEGIN").contains("Signed-By:\n -----BEGIN\n"));
    }
}
