//! The distribution's own kernel, and what modules for it are built against: fetched and unpacked,
//! never built, never installed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::Work;
use crate::cache::{Built, HEADERS, Inputs};
use crate::error::{Context, Result};
use crate::source::package::{self, Apt};
use crate::source::unpack;
use crate::source::wanted::{self, Package, Wanted};

impl Work<'_> {
    /// Takes the newest kernel: of the cache, else of the mirror.
    pub(super) fn fetch(&mut self, inputs: &Inputs) -> Result<Built> {
        let cache = &self.options.cache;
        let partial = cache.partial(&cache.kernels())?;
        let packages = self.image()?;
        let package = &packages[0];
        let version = package.version.split('-').next().unwrap_or(&package.version).to_owned();
        let key = inputs.key(&package.id(), &version);
        let out = partial.path().join("out");
        fs::create_dir_all(&out).doing("creating", &out)?;
        self.progress.begin(&format!("unpacking {}", package.name));
        let files: Vec<PathBuf> = packages.iter().map(|package| package.file(cache)).collect();
        let release = self.unpack(&files, &out);
        self.progress.end();
        let meta = inputs.meta(&version, &release?, package.id());
        self.install(partial, &key, meta)
    }

    /// Unpacks the packages, and gives the kernel's release.
    fn unpack(&self, files: &[PathBuf], out: &Path) -> Result<String> {
        let (kernel, headers) = files.split_at(files.len() - wanted::HEADERS);
        let release = unpack::image(kernel, out, self.interrupts)?;
        for file in headers {
            unpack::files(file, out, self.interrupts)?;
        }
        let place = format!("usr/src/linux-headers-{release}");
        let link = out.join(HEADERS);
        symlink(&place, &link).doing("creating", &link)?;
        // It is not installed, so its folders are beside it.
        let makefile = out.join(&place).join("Makefile");
        let text = fs::read_to_string(&makefile).doing("reading", &makefile)?;
        let text = text.replace("/usr/src/", "$(CURDIR)/../");
        fs::write(&makefile, text).doing("writing", &makefile)?;
        // With it the build would call pahole, for types that only tracers want.
        let types = out.join(place).join("vmlinux");
        if types.exists() {
            fs::remove_file(&types).doing("removing", &types)?;
        }
        Ok(release)
    }

    /// The packages, downloaded: the kernel itself, and what belongs to it.
    fn image(&mut self) -> Result<Vec<Package>> {
        let (cache, kind) = (&self.options.cache, self.options.kind);
        let wanted = Wanted::image(kind);
        let whole = |image: Package| {
            let companions = wanted.companions(&image);
            [vec![image], companions].concat()
        };
        let is_here = |package: &Package| package.file(cache).is_file();
        let mut cached = package::cached(cache, wanted)?.into_iter().map(whole);
        if let Some(packages) = cached.find(|whole| whole.iter().all(is_here)) {
            return Ok(packages);
        }
        let apt = Apt::update(&self.options.etc_apt, wanted, self.interrupts, self.progress)?;
        // There is one at least, or this would have been an error.
        let newest = apt.packages(self.interrupts)?.swap_remove(0);
        let packages = whole(newest);
        for package in packages.iter().filter(|package| !is_here(package)) {
            apt.download(package, cache, self.interrupts, self.progress)?;
        }
        Ok(packages)
    }
}
