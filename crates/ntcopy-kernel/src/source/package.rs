//! Kernels and their sources as packages of the distribution.
//!
//! The system's apt answers for transport, proxies and signatures. Its lists and its sources stay
//! as they are: ours have a folder of their own, and hooks of the system are not run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::wanted::{FIX, Package, Wanted};
use crate::cache::{Cache, children, size_bytes, version_key};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::Release;
use crate::process::{self, Event};
use crate::progress::Progress;
use crate::temporary::Folder;

/// The suite that carries new kernels for Debian 12 and 13.
const NEWEST: &str = "trixie-backports";

/// The packages that the cache holds, newest first.
pub(crate) fn cached(cache: &Cache, wanted: Wanted) -> Result<Vec<Package>> {
    let paths = children(&cache.packages())?;
    Ok(sorted(paths.iter().filter_map(|path| Package::from_file(path, wanted)).collect()))
}

/// The files of all sources that the cache holds, newest first.
pub fn cached_sources(cache: &Cache) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for release in [Release::Newest, Release::V6_12] {
        let packages = cached(cache, Wanted::source(release))?;
        files.extend(packages.iter().map(|package| package.file(cache)));
    }
    Ok(files)
}

fn sorted(mut packages: Vec<Package>) -> Vec<Package> {
    packages.sort_by_key(|p| (version_key(&p.name), version_key(&p.version)));
    packages.reverse();
    packages
}

/// apt, pointed at a folder of its own.
pub(crate) struct Apt {
    /// Removed when dropped.
    folder: Folder,
    /// What it was asked about, for messages.
    asked: String,
    wanted: Wanted,
}

impl Apt {
    /// Asks the mirrors of `/etc/apt` for their lists of packages: for a new kernel one after the
    /// other, until one has the suite; for an older one the suites that the system itself has.
    pub(crate) fn update(
        etc_apt: &Path,
        wanted: Wanted,
        interrupts: &Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let mut failures = Vec::new();
        for list in candidates(places(etc_apt, interrupts)?, wanted) {
            progress.begin("asking the mirror");
            let apt = Self::new(&list, wanted, interrupts)?;
            let updated =
                process::output(apt.command("apt-get").args(["update", "-q"]), interrupts);
            progress.end();
            match updated {
                Ok(_) => return Ok(apt),
                Err(Error::Interrupted(signal)) => return Err(Error::Interrupted(signal)),
                Err(error) => failures.push(format!("{}: {error}", apt.asked)),
            }
        }
        let looked_for = match failures.is_empty() {
            true => format!(
                "apt-get update --print-uris names no Debian archive of {}",
                etc_apt.display()
            ),
            false => format!("apt-get update failed for {}", failures.join("; ")),
        };
        Err(Error::NoSource { looked_for, fix: FIX.into() })
    }

    fn new(list: &[Place], wanted: Wanted, interrupts: &Interrupts) -> Result<Self> {
        let asked: Vec<String> =
            list.iter().map(|(mirror, suite)| format!("{mirror} {suite}")).collect();
        let asked = asked.join(", ");
        let folder = Folder::new("ntcopy-apt-")?;
        let path = folder.path();
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(path.join(part)).doing("creating", path)?;
        }
        let file = path.join("ntcopy.list");
        fs::write(&file, sources(list)).doing("writing", &file)?;
        // How to reach the mirror (proxies, certificates) is the system's business; its hooks
        // and its lists are not ours.
        let dump = process::output(Command::new("apt-config").arg("dump"), interrupts)?;
        let conf = path.join("apt.conf");
        fs::write(&conf, conf_text(path, &dump)).doing("writing", &conf)?;
        Ok(Self { folder, asked, wanted })
    }

    /// A tool of apt with our configuration.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        command.env("APT_CONFIG", self.folder.path().join("apt.conf")).env("LC_ALL", "C");
        command
    }

    /// The packages that the mirror has, newest first.
    pub(crate) fn packages(&self, interrupts: &Interrupts) -> Result<Vec<Package>> {
        let prefix = self.wanted.prefix();
        let names =
            process::output(self.command("apt-cache").args(["pkgnames", prefix]), interrupts)?;
        let names = names.lines().filter(|name| self.wanted.has(name)).map(str::to_owned);
        let names: Vec<String> = names.collect();
        let offered =
            process::output(self.command("apt-cache").arg("madison").args(&names), interrupts)?;
        let packages = sorted(parse_madison(&offered, self.wanted.architecture()));
        if packages.is_empty() {
            return Err(Error::NoSource {
                looked_for: format!("{} has no package {prefix}*", self.asked),
                fix: FIX.into(),
            });
        }
        Ok(packages)
    }

    pub(crate) fn download(
        &self,
        package: &Package,
        cache: &Cache,
        interrupts: &Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let partial = cache.partial(&cache.packages())?;
        progress.begin(&format!("downloading {}", package.name));
        let wanted = format!("{}={}", package.name, package.version);
        // apt-get download writes into the directory that it is started in.
        let directory = format!("Dir::Cache::archives={}", partial.path().display());
        let mut command = self.command("apt-get");
        command.args(["download", "-q", "-o", &directory, &wanted]).current_dir(partial.path());
        let mut said = Vec::new();
        let status = process::run(&mut command, interrupts, &mut |event| {
            match event {
                Event::Tick => progress.advance(size_bytes(partial.path()) >> 20),
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

type Place = (String, String);

/// Suites that are Debian itself, without what hangs on them.
const DEBIAN: [&str; 9] =
    ["bookworm", "trixie", "forky", "duke", "sid", "oldstable", "stable", "testing", "unstable"];
/// The keys that Debian's archives are signed with, where the system does not trust them anyway.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The places of Debian's main component that the system's apt would ask, in its order.
fn places(etc_apt: &Path, interrupts: &Interrupts) -> Result<Vec<Place>> {
    let mut apt = Command::new("apt-get");
    apt.args(["update", "--print-uris", "-o"]).arg(format!("Dir::Etc={}", etc_apt.display()));
    Ok(parse_uris(&process::output(apt.env("LC_ALL", "C"), interrupts)?))
}

/// Reads `'URI/dists/SUITE/main/binary-amd64/Packages.xz' FILE 0`, a line for each list.
fn parse_uris(text: &str) -> Vec<Place> {
    let place = |line: &str| {
        let (mirror, rest) = line.strip_prefix('\'')?.split_once("/dists/")?;
        let (suite, _) = rest.split_once("/main/binary-amd64/Packages")?;
        let is_debian = DEBIAN.contains(&suite.split('-').next()?) && !mirror.starts_with("cdrom:");
        is_debian.then(|| (mirror.to_owned(), suite.to_owned()))
    };
    text.lines().filter_map(place).collect()
}

/// The lists of places to ask, one after the other.
fn candidates(places: Vec<Place>, wanted: Wanted) -> Vec<Vec<Place>> {
    if wanted.release == Release::V6_12 {
        return if places.is_empty() { Vec::new() } else { vec![places] };
    }
    let mut mirrors: Vec<String> = Vec::new();
    for (mirror, suite) in places {
        if !suite.ends_with("-security") && !mirrors.contains(&mirror) {
            mirrors.push(mirror);
        }
    }
    mirrors.into_iter().map(|mirror| vec![(mirror, NEWEST.to_owned())]).collect()
}

fn sources(places: &[Place]) -> String {
    let signed =
        if Path::new(KEYS).exists() { format!("[signed-by={KEYS}] ") } else { String::new() };
    places.iter().map(|(mirror, suite)| format!("deb {signed}{mirror} {suite} main\n")).collect()
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
         Dir::Etc::sourcelist \"{folder}/ntcopy.list\";\n\
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

/// Reads what `apt-cache madison` prints: `NAME | VERSION | WHERE`, a line for each package.
fn parse_madison(text: &str, architecture: &'static str) -> Vec<Package> {
    let package = |line: &str| {
        let mut fields = line.split('|').map(|field| field.trim().to_owned());
        Some(Package { name: fields.next()?, version: fields.next()?, architecture })
    };
    text.lines().filter_map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Wanted {
        Wanted::source(Release::Newest)
    }

    #[test]
    fn packages_are_sorted_newest_first() {
        let text = "\
            linux-source-7.3 | 7.3.4-1~bpo13+1 | http://m/debian trixie-backports/main amd64 Packages\n\
            linux-source-7.10 | 7.10.1-1~bpo13+1 | http://m/debian trixie-backports/main amd64 Packages\n\
            linux-source-7.3 | 7.3.11-1~bpo13+1 | http://m/debian trixie-backports/main amd64 Packages\n";
        let names: Vec<String> = sorted(parse_madison(text, "all"))
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
        };
        fs::create_dir_all(cache.packages()).unwrap();
        fs::write(package.file(&cache), "deb").unwrap();
        fs::write(cache.packages().join("notes.txt"), "x").unwrap();
        assert_eq!(cached(&cache, source()).unwrap(), [package]);
        assert_eq!(cached(&cache, Wanted::source(Release::V6_12)).unwrap(), []);
    }

    fn place(mirror: &str, suite: &str) -> Place {
        (mirror.to_owned(), suite.to_owned())
    }

    #[test]
    fn what_apt_would_ask_gives_debian_s_main_component_and_no_stranger() {
        let text = "'http://m/debian/dists/bookworm/InRelease' m_InRelease 0 \n\
            'http://m/debian/dists/bookworm/main/binary-amd64/Packages.xz' m_Packages 0 \n\
            'http://m/debian/dists/bookworm/contrib/binary-amd64/Packages.xz' c_Packages 0 \n\
            'http://m/s/dists/bookworm-security/main/binary-amd64/Packages.xz' s_Packages 0 \n\
            'cdrom://Debian/dists/trixie/main/binary-amd64/Packages.xz' d_Packages 0 \n\
            'http://n/node/dists/nodistro/main/binary-amd64/Packages.xz' n_Packages 0 \n";
        let expected =
            [place("http://m/debian", "bookworm"), place("http://m/s", "bookworm-security")];
        assert_eq!(parse_uris(text), expected);
        assert!(parse_uris("E: something\n").is_empty());
    }

    #[test]
    fn the_system_s_own_apt_reads_its_sources() {
        let etc = tempfile::tempdir().unwrap();
        let list =
            "# deb http://x/debian sid main\ndeb [trusted=yes] http://m/debian trixie main\n";
        fs::write(etc.path().join("sources.list"), list).unwrap();
        let found = places(etc.path(), &Interrupts::arm().unwrap()).unwrap();
        assert_eq!(found, [place("http://m/debian", "trixie")]);
    }

    #[test]
    fn a_new_kernel_is_looked_for_in_the_backports_of_each_mirror_and_an_older_one_at_home() {
        let own = vec![place("m", "bookworm"), place("m", "bookworm-updates"), place("n", "sid")];
        let lists = candidates(own.clone(), source());
        assert_eq!(lists, [[place("m", "trixie-backports")], [place("n", "trixie-backports")]]);
        assert_eq!(candidates(own.clone(), Wanted::source(Release::V6_12)), [own]);
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
}
