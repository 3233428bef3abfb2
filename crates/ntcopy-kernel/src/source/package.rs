//! Kernels and their sources as packages of the distribution.
//!
//! The system's apt answers for transport, proxies and signatures. Its lists and its sources stay
//! as they are: ours have a folder of their own, and hooks of the system are not run.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::apt_sources::{self, Archive, Entry};
use super::wanted::{Package, Part, Wanted};
use crate::cache::{Cache, children, size_bytes, version_key};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::Release;
use crate::process::{self, Event};
use crate::progress::Progress;

/// The suite that carries new kernels for Debian 12 and 13.
const BACKPORTS: &str = "trixie-backports";
/// The suite that they are for.
const BACKPORTED: &str = "trixie";

/// The packages that the cache holds, newest first.
pub(crate) fn cached(cache: &Cache, wanted: Wanted) -> Result<Vec<Package>> {
    let paths = children(&cache.packages())?;
    Ok(sorted(paths.iter().filter_map(|path| Package::from_file(path, wanted)).collect()))
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
    /// What it was asked about, for messages.
    asked: String,
    wanted: Wanted,
}

impl Apt {
    /// Asks the mirrors of `/etc/apt` for their lists of packages: for a new kernel one after the
    /// other, until one has the suite; for an older one the suites that the system itself has, and
    /// the security updates where it has left them out.
    pub(crate) fn update(
        etc_apt: &Path,
        wanted: Wanted,
        interrupts: &Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let mut failures = Vec::new();
        for (asked, sources) in candidates(etc_apt, wanted) {
            progress.begin("asking the mirror", None);
            let apt = Self::new(asked, &sources, wanted, interrupts)?;
            let updated = apt.run("apt-get", &["update", "-q"], interrupts, &mut |_| Ok(()));
            progress.end();
            match updated {
                Ok(()) => return Ok(apt),
                Err(Error::Interrupted(signal)) => return Err(Error::Interrupted(signal)),
                Err(error) => failures.push(format!("{}: {error}", apt.asked)),
            }
        }
        let looked_for = match failures.is_empty() {
            true => format!(
                "looked for a Debian archive in {0}/sources.list and {0}/sources.list.d, and \
                 found none",
                etc_apt.display()
            ),
            false => format!("apt-get update failed for {}", failures.join("; ")),
        };
        Err(Error::NoSource { looked_for, fix: wanted.fix() })
    }

    fn new(asked: String, sources: &str, wanted: Wanted, interrupts: &Interrupts) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("ntcopy-apt-").tempdir();
        let folder = folder.doing("creating", std::env::temp_dir())?;
        let path = folder.path();
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(path.join(part)).doing("creating", path)?;
        }
        let list = path.join("ntcopy.sources");
        fs::write(&list, sources).doing("writing", &list)?;
        // How to reach the mirror (proxies, certificates) is the system's business; its hooks
        // and its lists are not ours.
        let dump = process::output(Command::new("apt-config").arg("dump"), interrupts)?;
        let conf = path.join("apt.conf");
        fs::write(&conf, conf_text(path, &dump)).doing("writing", &conf)?;
        Ok(Self { folder, asked, wanted })
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
        let prefix = self.wanted.prefix();
        self.run("apt-cache", &["pkgnames", prefix], interrupts, &mut |event| {
            if let Event::Line(line) = event
                && self.wanted.has(line)
            {
                names.push(line.to_owned());
            }
            Ok(())
        })?;
        let packages = sorted(self.show(&names, interrupts)?);
        if packages.is_empty() {
            return Err(Error::NoSource {
                looked_for: format!("{} has no package {prefix}*", self.asked),
                fix: self.wanted.fix(),
            });
        }
        Ok(packages)
    }

    /// What to say when the mirror lacks a package.
    pub(crate) fn no_package(&self, package: &Package) -> Error {
        let (name, version) = (&package.name, &package.version);
        Error::NoSource {
            looked_for: format!("{} has no package {name} of version {version}", self.asked),
            fix: self.wanted.fix(),
        }
    }

    /// What the mirror has of these packages.
    pub(crate) fn show(&self, names: &[String], interrupts: &Interrupts) -> Result<Vec<Package>> {
        let mut text = String::new();
        for name in names {
            self.run("apt-cache", &["show", name], interrupts, &mut |event| {
                if let Event::Line(line) = event {
                    text.push_str(line);
                    text.push('\n');
                }
                Ok(())
            })?;
            text.push('\n');
        }
        Ok(parse_show(&text, self.wanted.architecture()))
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
        crate::room::check_disk(partial.path(), "the package", package.size_bytes)?;
        let step = format!("downloading {}", package.name);
        progress.begin(&step, Some(package.size_bytes));
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
                fix: self.wanted.fix(),
            });
        }
        let target = package.file(cache);
        fs::rename(&file, &target).doing("moving the package to", &target)
    }
}

/// Sources as one list, and what they are called in a message.
fn together(entries: &[Entry]) -> (String, String) {
    let (mut asked, mut text) = (Vec::new(), String::new());
    for entry in entries {
        let (uris, suites) = (entry.uris.join(" "), entry.suites.join(" "));
        text.push_str(&stanza(&uris, &suites, entry.signed_by.as_deref()));
        asked.push(format!("{uris} {suites}"));
    }
    (asked.join(", "), text)
}

/// The lists to ask, each with what it is called in a message.
fn candidates(etc_apt: &Path, wanted: Wanted) -> Vec<(String, String)> {
    // Headers come with a compiler, which is older than the backports.
    let newest = match wanted.part {
        Part::Headers => format!("{BACKPORTS} {BACKPORTED}"),
        Part::Source | Part::Image => BACKPORTS.to_owned(),
    };
    match wanted.release {
        Release::Newest => apt_sources::system(etc_apt)
            .iter()
            .map(|Archive { uri, signed_by }| {
                let text = stanza(uri, &newest, signed_by.as_deref());
                (format!("{uri} {newest}"), text)
            })
            .collect(),
        Release::V6_12 => {
            let own = apt_sources::debian(etc_apt);
            let more = apt_sources::missing_security(&own);
            let with_security = more.map(|more| [own.as_slice(), &[more]].concat());
            let lists = with_security.into_iter().chain([own]).filter(|list| !list.is_empty());
            lists.map(|list| together(&list)).collect()
        }
    }
}

/// A source of packages as apt reads it: a mirror of the system's, and suites.
fn stanza(uris: &str, suites: &str, signed_by: Option<&str>) -> String {
    let mut text = format!("Types: deb\nURIs: {uris}\nSuites: {suites}\nComponents: main\n");
    if let Some(keys) = signed_by {
        let gap = if keys.starts_with('\n') { "" } else { " " };
        text.push_str(&format!("Signed-By:{gap}{keys}\n"));
    }
    text.push('\n');
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
        // Run by root, apt downloads as the user _apt, who may not write into our folders.
        text.push_str("APT::Sandbox::User \"root\";\n");
    }
    text
}

/// Reads what `apt-cache show` prints.
fn parse_show(text: &str, architecture: &'static str) -> Vec<Package> {
    let mut packages = Vec::new();
    for stanza in text.split("\n\n") {
        let field = |name: &str| {
            stanza.lines().find_map(|line| line.strip_prefix(name)).map(|v| v.trim().to_owned())
        };
        let (Some(name), Some(version)) = (field("Package:"), field("Version:")) else { continue };
        let size_bytes = field("Size:").and_then(|size| size.parse().ok());
        let architecture = match field("Architecture:").as_deref() {
            Some("all") => "all",
            Some(_) => "amd64",
            None => architecture,
        };
        if let Some(size_bytes) = size_bytes {
            packages.push(Package { name, version, architecture, size_bytes });
        }
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Wanted {
        Wanted::source(Release::Newest)
    }

    #[test]
    fn packages_are_sorted_newest_first() {
        let text = "Package: linux-source-7.3\nVersion: 7.3.4-1~bpo13+1\nSize: 10\n\n\
            Package: linux-source-7.10\nVersion: 7.10.1-1~bpo13+1\nSize: 12\nDepends: xz-utils\n\n\
            Package: linux-source-7.3\nVersion: 7.3.11-1~bpo13+1\nSize: 11\n\n";
        let names: Vec<String> = sorted(parse_show(text, "all"))
            .iter()
            .map(|p| format!("{} {}", p.name, p.version))
            .collect();
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
            architecture: "all",
            size_bytes: 3,
        };
        fs::create_dir_all(cache.packages()).unwrap();
        fs::write(package.file(&cache), "deb").unwrap();
        fs::write(cache.packages().join("notes.txt"), "x").unwrap();
        assert_eq!(cached(&cache, source()).unwrap(), [package]);
        assert_eq!(cached(&cache, Wanted::source(Release::V6_12)).unwrap(), []);
    }

    #[test]
    fn an_older_kernel_is_looked_for_where_the_system_s_own_packages_come_from() {
        let etc = tempfile::tempdir().unwrap();
        let list = "deb http://m/debian bookworm main\n\
                    deb [signed-by=/k.gpg] http://m/debian-security bookworm-security main\n";
        fs::write(etc.path().join("sources.list"), list).unwrap();
        let older = candidates(etc.path(), Wanted::source(Release::V6_12));
        assert_eq!(older.len(), 1);
        assert!(
            older[0].1.contains("Suites: bookworm-security\nComponents: main\nSigned-By: /k.gpg")
        );
        let newest = candidates(etc.path(), source());
        assert_eq!(newest.len(), 1);
        assert!(newest[0].1.contains("Suites: trixie-backports\n"), "{}", newest[0].1);
        let headers =
            &candidates(etc.path(), Wanted::headers(crate::kind::Kind::Stock(Release::Newest)))[0]
                .1;
        assert!(headers.contains("Suites: trixie-backports trixie\n"), "{headers}");
    }

    #[test]
    fn security_updates_that_the_system_leaves_out_are_asked_first_and_done_without_then() {
        let etc = tempfile::tempdir().unwrap();
        let lists = |text: &str| {
            fs::write(etc.path().join("sources.list"), text).unwrap();
            candidates(etc.path(), Wanted::source(Release::V6_12))
        };
        let both = lists("deb http://m/debian/ bookworm main\n");
        let [first, second] = &both[..] else { panic!("{both:?}") };
        assert!(first.1.contains("URIs: http://m/debian-security\nSuites: bookworm-security\n"));
        assert!(first.1.contains("URIs: http://m/debian/\nSuites: bookworm\n"), "{}", first.1);
        assert!(!second.1.contains("security"), "{}", second.1);
        assert_eq!(lists("deb http://m/debian sid main\n").len(), 1);
        assert!(lists("").is_empty());
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
        let key = |keys: &str| stanza("http://m/debian", BACKPORTS, Some(keys));
        assert!(key("/k.gpg").contains("Signed-By: /k.gpg\n"));
        assert!(key("\n -----BEGIN").contains("Signed-By:\n -----BEGIN\n"));
    }
}
