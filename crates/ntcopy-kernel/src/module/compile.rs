//! Compiles the sources to `ntcopy.ko`: for a kernel whose headers are here, or for one of `ntcopy
//! kernel`, which is fetched or built before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::Modinfo;
use super::error::ModuleError;
use super::headers::Headers;
use super::kept::{KeptMeta, META};
use super::source::Sources;
use super::stock::stock_headers;
use crate::build::BuildOptions;
use crate::build::make::{FOREIGN_VARIABLES, run_make};
use crate::cache::{Built, Cache, Partial};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::progress::Progress;
use crate::series::hex;
use crate::tools;

/// What to build the module for, and with what.
#[derive(Clone, Debug)]
pub struct ModuleBuild {
    /// The kernel's release; that of `headers` if there are any.
    pub release: Option<String>,
    /// A folder with headers, or a built source tree; else those that are installed.
    pub headers: Option<PathBuf>,
    /// A folder that gets a copy of what comes out.
    pub out: Option<PathBuf>,
    /// A compiler of the user's choice.
    pub compiler: Option<String>,
    /// Where it is kept.
    pub cache: Cache,
    /// Build again, though it is there.
    pub rebuild: bool,
    /// Compilers at work at once.
    pub jobs: usize,
    /// `/`, or the folder that a test takes for it.
    pub root: PathBuf,
}

/// Builds the module, unless the cache has it, and gives the path of `ntcopy.ko`.
///
/// # Errors
///
/// [`ModuleError`]'s cases, and those of reading and writing files. Nothing half-done is left.
pub fn build(options: &ModuleBuild, progress: &mut dyn Progress) -> Result<PathBuf> {
    let interrupts = Interrupts::arm().doing("taking over signals for", "the build")?;
    let sources = Sources::embedded();
    let asked = options.release.as_deref();
    let headers = match (&options.headers, asked) {
        (Some(dir), release) => Headers::open(dir, release)?,
        (None, Some(release)) => {
            check_range(&sources, release)?;
            Headers::installed(&options.root, release)?
        }
        (None, None) => return Err(Error::NotHere("no kernel to build the module for".into())),
    };
    check_range(&sources, &headers.release)?;
    tools::check_module()?;
    let compiler = match &options.compiler {
        Some(program) => vec![format!("CC={program}")],
        None => headers.compiler()?,
    };
    if let Some(out) = &options.out {
        check_writable(out)?;
    }
    let key = key(&sources, &headers, &compiler)?;
    let kept = options.cache.modules().join(&key).join("ntcopy.ko");
    if options.rebuild || !kept.is_file() {
        let _lock = options.cache.lock_modules(&interrupts, progress)?;
        let work = Work { options, headers: &headers, sources: &sources, compiler, key: &key };
        // Whoever had the lock may have built it.
        if options.rebuild || !kept.is_file() {
            work.build(&interrupts, progress)?;
        }
    }
    match &options.out {
        None => Ok(kept),
        Some(out) => {
            let copy = out.join("ntcopy.ko");
            fs::copy(&kept, &copy).doing("copying to", &copy)?;
            Ok(copy)
        }
    }
}

fn check_range(sources: &Sources, release: &str) -> Result<()> {
    let Some(range) = sources.range().filter(|range| !range.has(release)) else { return Ok(()) };
    let numbers = crate::cache::version_key(release);
    let is_newer = numbers.get(..2).is_some_and(|v| (v[0], v[1]) >= range.below);
    Err(ModuleError::OutOfRange { release: release.into(), range, is_newer }.into())
}

/// Not after a minute of compiling.
fn check_writable(folder: &Path) -> Result<()> {
    let tried = fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    let refused = |source| ModuleError::ReadOnly { path: folder.to_path_buf(), source };
    Ok(tried.map(drop).map_err(refused)?)
}

/// The name of the module's folder in the cache: the release and a hash of all that goes in.
fn key(sources: &Sources, headers: &Headers, compiler: &[String]) -> Result<String> {
    let mut hasher = Sha256::new();
    let compiler = format!("{} {}", compiler.join(" "), headers.compiler_text());
    for part in [sources.hash().into_bytes(), headers.fingerprint()?, compiler.into_bytes()] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Ok(format!("{}-{}", headers.release, &hex(&hasher.finalize())[..12]))
}

/// A build under way.
struct Work<'a> {
    options: &'a ModuleBuild,
    headers: &'a Headers,
    sources: &'a Sources,
    /// The arguments of make that name the compiler.
    compiler: Vec<String>,
    key: &'a str,
}

impl Work<'_> {
    fn build(&self, interrupts: &Interrupts, progress: &mut dyn Progress) -> Result<()> {
        let cache = &self.options.cache;
        let modules = cache.modules();
        fs::create_dir_all(&modules).map_err(|source| self.read_only(&modules, source))?;
        let partial = cache.partial(&modules)?;
        // Kbuild splits the folder's path at spaces and colons. The cache's name is the user's
        // own, and the headers' make gets a path below it.
        let source = partial.path().join("src");
        self.sources.write_to(&source)?;
        let log = partial.path().join("build.log");
        let compiled = self.compile(&source, &log, interrupts, progress);
        compiled.map_err(|error| self.keep_log(&log, error))?;
        self.install(&partial, &source)
    }

    fn read_only(&self, path: &Path, source: std::io::Error) -> Error {
        ModuleError::ReadOnly { path: path.to_path_buf(), source }.into()
    }

    fn compile(
        &self,
        source: &Path,
        log: &Path,
        interrupts: &Interrupts,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let mut make = Command::new("make");
        for variable in FOREIGN_VARIABLES {
            make.env_remove(variable);
        }
        make.env("LC_ALL", "C").arg("-C").arg(&self.headers.dir);
        make.arg(format!("M={}", source.display())).args(&self.compiler);
        if self.headers.is_um() {
            make.args(["ARCH=um", "SUBARCH=x86_64"]);
        }
        if let Some(symbols) = self.headers.extra_symbols() {
            make.arg(format!("KBUILD_EXTRA_SYMBOLS={}", symbols.display()));
        }
        make.arg(format!("-j{}", self.options.jobs)).arg("modules");
        // Each unit is compiled; then come modpost, the module's own file, and the linker.
        let total = self.sources.units() + 4;
        let step = format!("building ntcopy.ko for Linux {}", self.headers.release);
        progress.begin(&step, Some(total));
        let mut done = 0;
        let result = run_make(&mut make, interrupts, &step, log, &mut |is_step| {
            done += u64::from(is_step);
            progress.advance(done.min(total));
        });
        progress.end();
        result
    }

    /// Puts the module into the cache.
    fn install(&self, partial: &Partial, source: &Path) -> Result<()> {
        let made = source.join("ntcopy.ko");
        let info = Modinfo::read(&made)?;
        if let Some(release) = info.release().filter(|release| *release != self.headers.release) {
            let (made_for, wanted) = (release.to_owned(), self.headers.release.clone());
            return Err(ModuleError::OtherKernel { path: made, made: made_for, wanted }.into());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let meta = KeptMeta {
            release: self.headers.release.clone(),
            version: info.version.unwrap_or_default(),
            sources: self.sources.hash(),
            compiler: self.headers.compiler_text().to_owned(),
            built_unix_s: now.as_secs(),
        };
        let out = partial.path().join("out");
        fs::create_dir_all(&out).doing("creating", &out)?;
        let text = serde_json::to_string_pretty(&meta).map_err(std::io::Error::from);
        let path = out.join(META);
        fs::write(&path, text.doing("writing", &path)? + "\n").doing("writing", &path)?;
        fs::rename(&made, out.join("ntcopy.ko")).doing("moving", &made)?;
        fs::rename(partial.path().join("build.log"), out.join("build.log"))
            .doing("moving", &out)?;
        let dir = self.options.cache.modules().join(self.key);
        if dir.exists() {
            fs::rename(&dir, partial.path().join("old")).doing("replacing", &dir)?;
        }
        fs::rename(&out, &dir).doing("moving the module to", &dir)
    }

    /// Saves the log of a failed build, and says what the reason may be.
    fn keep_log(&self, log: &Path, error: Error) -> Error {
        let Error::Build { step, errors, .. } = error else { return error };
        let logs = self.options.cache.logs();
        let kept = logs.join(format!("module-{}.log", self.key));
        let moved = fs::create_dir_all(&logs).and_then(|()| fs::copy(log, &kept));
        let log = if moved.is_ok() { kept } else { "(could not be kept)".into() };
        let hint = hint(&errors, self.headers.compiler_text());
        ModuleError::Failed { step, errors, hint, log }.into()
    }
}

/// What a failed build's errors suggest, as a line, or nothing.
fn hint(errors: &[String], compiler: &str) -> String {
    let says = |marks: &[&str]| errors.iter().any(|line| marks.iter().any(|m| line.contains(m)));
    if says(&["unrecognized command-line option", "unrecognized command line option"]) {
        return format!(
            "the kernel was compiled by {compiler}, and this compiler doesn't know its options: \
             install that one, or name it with --cc\n"
        );
    }
    if says(&["GLIBC_"]) {
        return "the kernel's build tools are of a newer system than this one: build there, or in \
                a container of it\n"
            .into();
    }
    if says(&["#error", "ntcopy was written for", "ntcopy needs Linux"]) {
        return "the sources refuse this kernel: look for another version of ntcopy\n".into();
    }
    String::new()
}

impl ModuleBuild {
    /// Has the kernel built or fetched, unless the cache has it, and takes its release, its headers
    /// and, unless another is named, its compiler.
    ///
    /// # Errors
    ///
    /// [`ModuleError::TakesNoModule`] before anything is built, and those of [`crate::build`] and
    /// of [`stock_headers`].
    pub fn take_kernel(
        &mut self,
        kernel: &BuildOptions,
        progress: &mut dyn Progress,
    ) -> Result<Built> {
        if !kernel.kind.is_stock() && !kernel.kind.is_for_module() {
            return Err(ModuleError::TakesNoModule(kernel.kind.name()).into());
        }
        let built = crate::build(kernel, progress)?;
        match built.headers() {
            Some(headers) => self.headers = Some(headers),
            None => {
                let stock = stock_headers(&built, &self.cache, &kernel.etc_apt, progress)?;
                self.headers = Some(stock.dir);
                self.compiler = self.compiler.take().or(stock.compiler);
            }
        }
        self.release = Some(built.meta.release.clone());
        Ok(built)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cache::Cache;
    use crate::kind::Kind;

    #[test]
    fn a_failed_build_says_what_the_reason_may_be() {
        for (line, part) in [
            ("gcc: error: unrecognized command-line option '-fmin-x'", "compiled by gcc-14 (x)"),
            ("modpost: /lib/libc.so.6: version `GLIBC_2.38' not found", "newer system"),
            ("compat.h:22:2: error: #error \"ntcopy needs Linux 6.5\"", "another version"),
        ] {
            let text = hint(&[line.into()], "gcc-14 (x)");
            assert!(text.contains(part) && text.ends_with('\n'), "{line}: {text}");
        }
        assert_eq!(hint(&["send.c:1:2: error: expected ';'".into()], "gcc"), "");
    }

    #[test]
    fn a_folder_that_takes_no_files_is_an_error_before_anything_is_compiled() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let error = check_writable(&file.join("out")).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        let text = error.to_string();
        assert!(text.contains("takes no files") && text.contains("--out DIR"), "{text}");
        check_writable(&home.path().join("new/out")).unwrap();
    }

    #[test]
    fn a_kernel_that_takes_no_modules_is_refused_before_it_is_built() {
        let home = tempfile::tempdir().unwrap();
        let mut options = ModuleBuild {
            release: None,
            headers: None,
            out: None,
            compiler: None,
            cache: Cache::at(home.path().join("cache")),
            rebuild: false,
            jobs: 1,
            root: PathBuf::from("/"),
        };
        let kernel = BuildOptions::from_env(Kind::Um).unwrap();
        let kernel = BuildOptions { cache: options.cache.clone(), ..kernel };
        let error = options.take_kernel(&kernel, &mut crate::progress::Silent).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(text.contains("'um'") && text.contains("um+module"), "{text}");
        assert!(!options.cache.root().exists());
    }
}
