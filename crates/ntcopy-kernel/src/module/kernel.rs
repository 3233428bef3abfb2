//! The module for a kernel of `ntcopy kernel`: one that is fetched, or built here for it.

use crate::build::BuildOptions;
use crate::cache::Built;
use crate::error::Result;
use crate::progress::Progress;

use super::compile::ModuleBuild;
use super::error::ModuleError;
use super::stock::stock_headers;

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
