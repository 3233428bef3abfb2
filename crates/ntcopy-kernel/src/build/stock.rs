//! The distribution's own kernel: fetched and unpacked, never built, never installed.

use std::fs;
use std::path::{Path, PathBuf};

use super::Work;
use crate::cache::{Built, Inputs};
use crate::error::{Context, Result};
use crate::source::package::{self, Apt};
use crate::source::unpack;
use crate::source::wanted::{Package, Wanted};

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
        self.progress.begin(&format!("unpacking {}", package.name), None);
        let files: Vec<PathBuf> = packages.iter().map(|package| package.file(cache)).collect();
        let release = unpack::image(&files, &out, self.interrupts);
        self.progress.end();
        let meta = inputs.meta(&version, &release?, package.id());
        self.install(partial, None::<&Path>, &key, meta)
    }

    /// The packages, downloaded: the kernel itself, and what belongs to it.
    fn image(&mut self) -> Result<Vec<Package>> {
        let (cache, kind) = (&self.options.cache, self.options.kind);
        let wanted = Wanted::image(kind);
        let with_rest = |package: Package| {
            let rest = wanted.companions(&package.name).into_iter();
            let rest: Vec<Package> = rest.map(|name| package.sibling(name)).collect();
            [vec![package], rest].concat()
        };
        let is_here = |package: &Package| package.file(cache).is_file();
        let kernels = package::cached(cache, wanted)?.into_iter().map(with_rest);
        if let Some(whole) = kernels.into_iter().find(|whole| whole.iter().all(is_here)) {
            return Ok(whole);
        }
        let apt = Apt::update(&self.options.etc_apt, wanted, self.interrupts, self.progress)?;
        // There is one at least, or this would have been an error.
        let newest = apt.packages(self.interrupts)?.swap_remove(0);
        let names = wanted.companions(&newest.name);
        let mut packages = vec![newest];
        packages.extend(apt.show(&names, self.interrupts)?);
        let version = packages[0].version.clone();
        packages.retain(|package| package.version == version);
        for package in packages.iter().filter(|package| !is_here(package)) {
            apt.download(package, cache, self.interrupts, self.progress)?;
        }
        Ok(packages)
    }
}
