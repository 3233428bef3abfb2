//! `--apply DIR`: drop-in files in a folder, and never in the system.

use std::borrow::Cow;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use ntcopy_record::advice::Advice;
use ntcopy_record::durable;
use ntcopy_report::advice::dropins::{self, DropIn, MARK, Service};

use crate::cmd::NOT_AVAILABLE;

/// What a running system reads its settings from, or is made of.
const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys",
    "/usr", "/var",
];
/// Folders below these that every user may write to.
const EVERYBODYS: [&str; 2] = ["/dev/shm", "/var/tmp"];

/// A folder that files may be written to.
pub struct Folder(PathBuf);

/// What was written.
pub struct Applied {
    /// Each file, and what to do with it.
    pub written: Vec<(PathBuf, Cow<'static, str>)>,
    /// Files of an earlier time that nothing stands behind any more.
    stale: Vec<PathBuf>,
}

impl Folder {
    /// Looks whether a folder, which need not exist yet, is one of the user's own.
    ///
    /// # Errors
    ///
    /// Why it is not, and what to do.
    pub fn check(folder: &Path) -> Result<Folder, String> {
        let real = real(folder)?;
        match whose(&real) {
            None => Ok(Folder(real)),
            Some(whose) => Err(format!(
                "--apply {}: {whose}, and advice is never written into the system: name a folder \
                 of your own (--apply out/advice, or one below a sysroot: --apply \
                 /srv/image/etc), look at the files, and copy them",
                folder.display()
            )),
        }
    }

    /// Writes what the advice gives, each file whole or not at all, and durably: what was written
    /// when this returns is there after a loss of power.
    ///
    /// # Errors
    ///
    /// Before anything is written, where a file is not ours or its folder leads into the
    /// system; or where a file can't be written.
    pub fn write(
        &self,
        all: &[Advice],
        services: &[Service],
        min_bytes: Option<&str>,
    ) -> anyhow::Result<Applied> {
        let others = std::env::var("GLIBC_TUNABLES").unwrap_or_default();
        let program = program(std::env::current_exe());
        let mut files = dropins::files(all, &others, &program);
        if !services.is_empty() {
            files.retain(|file| file.path != dropins::EXAMPLE);
        }
        files.extend(
            services.iter().filter_map(|one| dropins::service(all, &program, one, min_bytes)),
        );
        self.write_files(&files)
    }

    fn write_files(&self, files: &[DropIn]) -> anyhow::Result<Applied> {
        for file in files {
            self.is_ours(&file.path)?;
        }
        let mut written = Vec::new();
        for file in files {
            written.push((self.put(file)?, file.then.clone()));
        }
        let is_stale = |path: &&str| {
            files.iter().all(|file| file.path != **path) && self.0.join(path).exists()
        };
        let stale = dropins::ALL.iter().filter(|path| is_stale(path));
        Ok(Applied { written, stale: stale.map(|path| self.0.join(path)).collect() })
    }

    /// Whether a file may be written: its folder, links followed, is not the system's, and what is
    /// there was written by this program.
    fn is_ours(&self, path: &str) -> anyhow::Result<()> {
        let path = self.0.join(path);
        let folder = path.parent().unwrap_or(&self.0);
        let real = real(folder).map_err(anyhow::Error::msg)?;
        if let Some(whose) = whose(&real) {
            bail!("{} leads to {}: {whose}; nothing was written", folder.display(), real.display());
        }
        match fs::read_to_string(&path) {
            Ok(text) if text.starts_with(MARK) => Ok(()),
            Ok(_) => bail!(
                "{} is there, and ntcopy advise did not write it: move it away, or name another \
                 folder; nothing was written",
                path.display()
            ),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn put(&self, file: &DropIn) -> anyhow::Result<PathBuf> {
        let path = self.0.join(&*file.path);
        let context = || format!("cannot write {}", path.display());
        let folder = path.parent().unwrap_or(&self.0);
        durable::create_dir_all(folder).with_context(context)?;
        let mut aside = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(folder)
            .with_context(context)?;
        aside.write_all(file.text.as_bytes()).with_context(context)?;
        aside.as_file().sync_all().with_context(context)?;
        aside.persist(&path).with_context(context)?;
        durable::sync_dir(folder).with_context(context)?;
        Ok(path)
    }
}

impl Applied {
    /// Says which files of an earlier time nothing stands behind any more.
    fn say_stale(&self) {
        for path in &self.stale {
            eprintln!(
                "note: {} is from an earlier time, and nothing stands behind it now: remove it",
                path.display()
            );
        }
    }

    /// Says what was written and what to do with it.
    pub fn say(&self, json: bool) -> anyhow::Result<ExitCode> {
        self.say_stale();
        if self.written.is_empty() {
            eprintln!(
                "ntcopy: nothing was written: no advice is carried by the records that a drop-in \
                 file could hold"
            );
            return Ok(ExitCode::from(NOT_AVAILABLE));
        }
        if !json {
            let mut text = "\nWritten, and read by nothing where they are:\n".to_owned();
            for (path, then) in &self.written {
                text.push_str(&format!("  {}\n      {then}\n", path.display()));
            }
            print!("{text}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Where this program is, links followed: what a unit should start. A path that is not there any
/// more, because an upgrade has replaced the program while it ran, is no use; then its name is.
fn program(found: std::io::Result<PathBuf>) -> PathBuf {
    let found = found.and_then(fs::canonicalize).ok();
    found.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("ntcopy"))
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> Result<PathBuf, String> {
    let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut rest = Vec::new();
    let mut there = path.as_path();
    loop {
        match fs::canonicalize(there) {
            Ok(real) => return Ok(rest.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{}: {error}", there.display())),
        }
        // `..` below what does not exist could lead anywhere once it does; and a link that leads
        // nowhere today may lead into the system tomorrow.
        let Some(Component::Normal(name)) = there.components().next_back() else {
            return Err(format!("{}: not a path that can be followed", path.display()));
        };
        if fs::symlink_metadata(there).is_ok() {
            return Err(format!("{}: a link that leads nowhere", there.display()));
        }
        rest.push(name.to_owned());
        there = there.parent().unwrap_or(Path::new("/"));
    }
}

/// Whose a folder is that is not the user's own to fill.
fn whose(real: &Path) -> Option<&'static str> {
    if real == Path::new("/") {
        return Some("the root of the system");
    }
    if EVERYBODYS.iter().any(|folder| real.starts_with(folder)) {
        return None;
    }
    if SYSTEM.iter().any(|folder| real.starts_with(folder)) {
        return Some("a folder of the system");
    }
    let config = ntcopy::folder::of_this_user("XDG_CONFIG_HOME", ".config")
        .map(|path| fs::canonicalize(&path).unwrap_or(path));
    if config.is_some_and(|config| real.starts_with(config)) {
        return Some("your own configuration, which your sessions read");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_into_the_system_is_the_system() {
        let own = tempfile::tempdir().unwrap();
        let link = own.path().join("link");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        assert!(Folder::check(&link).is_err());
        assert!(Folder::check(&link.join("not-there-yet")).is_err());
        let nowhere = own.path().join("nowhere");
        std::os::unix::fs::symlink("/etc/not-there-yet", &nowhere).unwrap();
        assert!(Folder::check(&nowhere).is_err());
        let folder = Folder::check(own.path()).unwrap();
        std::os::unix::fs::symlink("/etc", own.path().join("sysctl.d")).unwrap();
        let why = folder.is_ours(dropins::SYSCTL).unwrap_err().to_string();
        assert!(why.contains("a folder of the system"), "{why}");
    }

    #[test]
    fn the_program_is_where_it_runs_from_or_a_name() {
        let own = tempfile::tempdir().unwrap();
        let (file, link) = (own.path().join("ntcopy"), own.path().join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let file = fs::canonicalize(file).unwrap();
        assert_eq!(program(Ok(link)), file);
        let replaced = PathBuf::from(format!("{} (deleted)", file.display()));
        assert_eq!(program(Ok(replaced)), PathBuf::from("ntcopy"));
        assert_eq!(program(Err(std::io::ErrorKind::NotFound.into())), PathBuf::from("ntcopy"));
    }
}
