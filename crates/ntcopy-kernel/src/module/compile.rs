//! Compiles the sources to `ntcopy.ko`: for a kernel whose headers are here, or for one of `ntcopy
//! kernel`, which is fetched or built before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use super::headers::Headers;
use super::{kept, source, stock};
use crate::build::make::{FOREIGN_VARIABLES, run_make};
use crate::build::{BuildOptions, keep_log};
use crate::cache::{Built, Cache, Part};
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
    /// Instead of the compiler that the kernel was built with.
    pub compiler: Option<String>,
    pub cache: Cache,
    /// Build again, though it is there.
    pub rebuild: bool,
    pub jobs: usize,
    /// `/`, or the folder that a test takes for it.
    pub root: PathBuf,
}

/// Builds the module, unless the cache has it, and gives the path of `ntcopy.ko`.
pub fn build(options: &ModuleBuild, progress: &mut dyn Progress) -> Result<PathBuf> {
    let interrupts = Interrupts::arm().doing("taking over signals for", "the build")?;
    let headers = match (&options.headers, options.release.as_deref()) {
        (Some(dir), release) => Headers::open(dir, release)?,
        (None, Some(release)) => {
            source::check(release)?;
            Headers::installed(&options.root, release)?
        }
        (None, None) => return Err(Error::NotHere("no kernel to build the module for".into())),
    };
    source::check(&headers.release)?;
    tools::check_module()?;
    let compiler = match &options.compiler {
        Some(program) => vec![format!("CC={program}")],
        None => headers.compiler()?,
    };
    let key = key(&headers, &compiler)?;
    let module = options.cache.modules().join(&key).join(kept::FILE);
    if options.rebuild || !module.is_file() {
        let _lock = options.cache.lock(Part::Modules, &interrupts, progress)?;
        let work = Work { options, headers: &headers, compiler, key: &key };
        // Whoever had the lock may have built it.
        if options.rebuild || !module.is_file() {
            work.build(&interrupts, progress)?;
        }
    }
    let Some(out) = &options.out else { return Ok(module) };
    fs::create_dir_all(out).doing("creating", out)?;
    let copy = out.join(kept::FILE);
    fs::copy(&module, &copy).doing("copying to", &copy)?;
    Ok(copy)
}

/// The name of the module's folder in the cache: what it is for, and hashes of all that goes in.
fn key(headers: &Headers, compiler: &[String]) -> Result<String> {
    let mut hasher = Sha256::new();
    for part in [headers.fingerprint()?, compiler.join(" ").into_bytes()] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    Ok(format!("{}{}", kept::prefix(&headers.release), &hex(&hasher.finalize())[..12]))
}

/// A build under way.
struct Work<'a> {
    options: &'a ModuleBuild,
    headers: &'a Headers,
    /// The arguments of make that name the compiler.
    compiler: Vec<String>,
    key: &'a str,
}

impl Work<'_> {
    fn build(&self, interrupts: &Interrupts, progress: &mut dyn Progress) -> Result<()> {
        let cache = &self.options.cache;
        let partial = cache.partial(&cache.modules())?;
        let place = partial.path().join("src");
        source::write_to(&place)?;
        let log = partial.path().join("build.log");
        let compiled = self.compile(&place, &log, interrupts, progress);
        let name = format!("module-{}", self.key);
        compiled.map_err(|error| keep_log(cache, &name, &log, error))?;
        let made = place.join(kept::FILE);
        let release = release_of(&fs::read(&made).doing("reading", &made)?);
        if release.as_ref().is_some_and(|release| *release != self.headers.release) {
            let release = release.unwrap_or_default();
            let text =
                format!("the module came out for Linux {release}, not {}", self.headers.release);
            return Err(Error::Refused(text));
        }
        let out = partial.path().join("out");
        fs::create_dir_all(&out).doing("creating", &out)?;
        fs::rename(&made, out.join(kept::FILE)).doing("moving", &made)?;
        fs::rename(&log, out.join("build.log")).doing("moving", &log)?;
        let dir = cache.modules().join(self.key);
        if dir.exists() {
            fs::rename(&dir, partial.path().join("old")).doing("replacing", &dir)?;
        }
        fs::rename(&out, &dir).doing("moving the module to", &dir)
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
        make.arg(format!("-j{}", self.options.jobs)).arg("modules");
        let step = format!("building ntcopy.ko for Linux {}", self.headers.release);
        progress.begin(&step, None);
        let mut done = 0;
        let result = run_make(&mut make, interrupts, &step, log, &mut |is_step| {
            done += u64::from(is_step);
            progress.advance(done);
        });
        progress.end();
        result
    }
}

/// The kernel that a module is for: `vermagic=RELEASE …` among the strings of its `.modinfo`.
fn release_of(module: &[u8]) -> Option<String> {
    let magic = module.split(|&byte| byte == 0).find_map(|it| it.strip_prefix(b"vermagic="))?;
    String::from_utf8_lossy(magic).split(' ').next().map(str::to_owned)
}

impl ModuleBuild {
    /// Has the kernel built or fetched, unless the cache has it, and takes its release and headers.
    pub fn take_kernel(
        &mut self,
        kernel: &BuildOptions,
        progress: &mut dyn Progress,
    ) -> Result<Built> {
        if !kernel.kind.is_stock() && !kernel.kind.is_for_module() {
            return Err(Error::NotHere(format!(
                "'{}' is built without modules; those that take it are stock, stock:7.3, \
                 um+module, x86+module and x86:6.12+module. For a kernel of your own, --headers \
                 names the source tree that it was built in",
                kernel.kind
            )));
        }
        let built = crate::build(kernel, progress)?;
        match built.headers() {
            Some(headers) => self.headers = Some(headers),
            None => {
                let headers = stock::headers(&built, &self.cache, &kernel.etc_apt, progress)?;
                self.headers = Some(headers);
            }
        }
        self.release = Some(built.meta.release.clone());
        Ok(built)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_of_a_module_is_found_among_its_bytes() {
        let bytes = b"\x7fELF\0\0version=0.1.0\0depends=\0vermagic=6.12.117+deb12 SMP preempt \0x";
        assert_eq!(release_of(bytes).as_deref(), Some("6.12.117+deb12"));
        assert_eq!(release_of(b"\x7fELF\0version=1\0"), None);
    }
}
