//! Compiles the sources to `ntcopy.ko`: for a kernel whose headers are here, or for one of `ntcopy
//! kernel`, which is fetched or built before.

use std::fs;
use std::path::{Path, PathBuf};

use super::headers::Headers;
use super::kept;
use crate::build::make::{bare, run_make};
use crate::build::{BuildOptions, keep_log};
use crate::cache::{Built, Cache, Part};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::progress::Progress;
use crate::series::{MODULE, digest};
use crate::tools;

/// What [`build`] leaves in the cache.
pub struct Compiled {
    /// `ntcopy.ko`.
    pub path: PathBuf,
    /// The release of Linux that it is for.
    pub release: String,
}

/// Builds the module, unless the cache has it. `compiler` is one instead of that which the kernel
/// was built with.
pub fn build(
    headers: &Path,
    compiler: Option<&str>,
    cache: &Cache,
    progress: &mut dyn Progress,
) -> Result<Compiled> {
    let interrupts = Interrupts::arm()?;
    let headers = Headers::open(headers)?;
    tools::check_module()?;
    let compiler = match compiler {
        Some(program) => vec![format!("CC={program}")],
        None => headers.compiler()?,
    };
    let key = key(&headers, &compiler)?;
    let path = cache.modules().join(&key).join(kept::FILE);
    let compiled = Compiled { path, release: headers.release.clone() };
    if compiled.path.is_file() {
        return Ok(compiled);
    }
    let _lock = cache.lock(Part::Modules, &interrupts, progress)?;
    // Whoever had the lock may have built it.
    if !compiled.path.is_file() {
        Work { cache, headers, compiler, key }.build(&interrupts, progress)?;
    }
    Ok(compiled)
}

/// The same for a kernel of `ntcopy kernel`, which is built or fetched unless the cache has it.
pub fn build_for(
    kernel: &BuildOptions,
    compiler: Option<&str>,
    progress: &mut dyn Progress,
) -> Result<(Built, PathBuf)> {
    if !kernel.kind.is_stock() && !kernel.kind.is_for_module() {
        return Err(Error::NotHere(format!(
            "'{}' is built without modules; those that take it are stock, stock:7.3, um+module, \
             x86+module and x86:6.12+module",
            kernel.kind
        )));
    }
    let built = crate::build(kernel, progress)?;
    let module = build(&built.headers(), compiler, &kernel.cache, progress)?;
    Ok((built, module.path))
}

/// The name of the module's folder in the cache: what it is for, and hashes of all that goes in.
fn key(headers: &Headers, compiler: &[String]) -> Result<String> {
    let digest = digest([headers.fingerprint()?, compiler.join(" ").into_bytes()]);
    Ok(format!("{}{}", kept::prefix(&headers.release), &digest[..12]))
}

struct Work<'a> {
    cache: &'a Cache,
    headers: Headers,
    /// The arguments of make that name the compiler.
    compiler: Vec<String>,
    key: String,
}

impl Work<'_> {
    fn build(&self, interrupts: &Interrupts, progress: &mut dyn Progress) -> Result<()> {
        let partial = self.cache.partial(&self.cache.modules())?;
        let place = partial.path().join("src");
        for (name, content) in MODULE {
            let path = place.join(name);
            let parent = path.parent().unwrap_or(&place);
            fs::create_dir_all(parent).doing("creating", parent)?;
            fs::write(&path, content).doing("writing", &path)?;
        }
        let log = partial.path().join("build.log");
        let compiled = self.compile(&place, &log, interrupts, progress);
        let name = format!("module-{}", self.key);
        compiled.map_err(|error| keep_log(self.cache, &name, &log, error))?;
        let out = partial.path().join("out");
        fs::create_dir_all(&out).doing("creating", &out)?;
        for file in [place.join(kept::FILE), log] {
            fs::rename(&file, out.join(file.file_name().unwrap_or_default()))
                .doing("moving", &file)?;
        }
        let dir = self.cache.modules().join(&self.key);
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
        let mut make = bare(&self.headers.dir);
        make.arg(format!("M={}", source.display())).args(&self.compiler);
        if self.headers.is_um() {
            make.args(["ARCH=um", "SUBARCH=x86_64"]);
        }
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        make.arg(format!("-j{jobs}")).arg("modules");
        let step = format!("building ntcopy.ko for Linux {}", self.headers.release);
        run_make(&mut make, interrupts, progress, &step, log)
    }
}
