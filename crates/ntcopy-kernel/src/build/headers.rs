//! What a module is built against, kept of a source that was built: headers, makefiles, scripts
//! and the programs that these call, and the kernel's symbols; none of its objects.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::cache::children;
use crate::error::{Context, Result};

/// Kept whole but for what was compiled there, if the source has them.
const FOLDERS: [&str; 8] = [
    "include",
    "scripts",
    "arch/um/include",
    "arch/um/scripts",
    "arch/x86/include",
    "arch/x86/tools",
    "arch/x86/um/asm",
    "arch/x86/um/shared",
];

/// Folders whose files are taken, and none of the folders in them.
const MAKEFILES_OF: [&str; 4] = ["", "arch/um", "arch/x86", "arch/x86/um"];

/// Single files: what the build wrote at the top, and a program of its tools.
const FILES: [&str; 3] = [".config", "Module.symvers", "tools/objtool/objtool"];

/// Gives the files of `source` a second name below `headers`, which is on the same disk: the
/// source may go, or be kept.
pub(super) fn keep(source: &Path, headers: &Path) -> Result<()> {
    // Linking the modules writes it, even if there are none. A module that is built without it
    // finds none of the kernel's symbols.
    let symbols = source.join("Module.symvers");
    fs::metadata(&symbols).doing("reading", &symbols)?;
    for folder in FOLDERS.iter().filter(|folder| source.join(folder).is_dir()) {
        keep_folder(&source.join(folder), &headers.join(folder))?;
    }
    for folder in MAKEFILES_OF.map(|folder| source.join(folder)) {
        for path in children(&folder)?.into_iter().filter(|path| is_makefile(path)) {
            let below = path.strip_prefix(source).unwrap_or(&path);
            keep_file(&path, &headers.join(below))?;
        }
    }
    for file in FILES.iter().filter(|file| source.join(file).is_file()) {
        keep_file(&source.join(file), &headers.join(file))?;
    }
    Ok(())
}

fn keep_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).doing("creating", to)?;
    for path in children(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        let kind = fs::symlink_metadata(&path).doing("reading", &path)?.file_type();
        if kind.is_symlink() {
            let leads_to = fs::read_link(&path).doing("reading", &path)?;
            symlink(leads_to, &target).doing("creating", &target)?;
        } else if kind.is_dir() {
            keep_folder(&path, &target)?;
        } else if !is_compiled(&path) {
            fs::hard_link(&path, &target).doing("keeping", &path)?;
        }
    }
    Ok(())
}

fn keep_file(from: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).doing("creating", parent)?;
    fs::hard_link(from, to).doing("keeping", from)
}

fn is_makefile(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["Makefile", "Kbuild", "Kconfig"].iter().any(|start| name.starts_with(start)) && path.is_file()
}

/// Whether the build made it, and only the linker of the kernel wants it.
fn is_compiled(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    matches!(ending, "o" | "a" | "cmd" | "so" | "dbg")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(files: &[&str]) -> tempfile::TempDir {
        let source = tempfile::tempdir().unwrap();
        for file in files {
            let path = source.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, *file).unwrap();
        }
        source
    }

    #[test]
    fn headers_and_what_builds_with_them_are_kept_and_objects_are_not() {
        let kept = [
            "Makefile",
            ".config",
            "Module.symvers",
            "include/generated/autoconf.h",
            "include/linux/net.h",
            "scripts/mod/modpost",
            "scripts/Makefile.modpost",
            "arch/um/Makefile-skas",
            "arch/x86/Makefile.um",
            "arch/x86/um/asm/ptrace.h",
            "tools/objtool/objtool",
        ];
        let left = [
            "vmlinux.o",
            "net/socket.c",
            "arch/x86/lib/csum.c",
            "scripts/mod/modpost.o",
            "scripts/mod/.modpost.cmd",
            "tools/objtool/check.c",
        ];
        let source = source(&[&kept[..], &left[..]].concat());
        symlink("../linux", source.path().join("scripts/link")).unwrap();
        let headers = source.path().join("out/headers");
        keep(source.path(), &headers).unwrap();
        for file in kept {
            assert_eq!(fs::read_to_string(headers.join(file)).unwrap(), file);
        }
        for file in left {
            assert!(!headers.join(file).exists(), "{file}");
        }
        assert_eq!(fs::read_link(headers.join("scripts/link")).unwrap(), Path::new("../linux"));
    }

    #[test]
    fn a_build_without_symbols_is_no_kernel_for_modules() {
        let source = source(&["Makefile", "include/linux/net.h"]);
        let error = keep(source.path(), &source.path().join("out/headers")).unwrap_err();
        assert!(error.to_string().contains("Module.symvers"), "{error}");
    }
}
