//! What a module is built against, kept of a source that was built: headers, makefiles, scripts
//! and the programs that these call, and the kernel's symbols; none of its objects.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Context, Result};
use crate::interrupt::Interrupts;
use crate::process;

/// Folders but for what was compiled there; makefiles of others; what the build wrote at the top,
/// and a program of its tools.
const KEEP: &str = r#"
    cd "$1" && mkdir -p "$2" || exit
    for name in include scripts arch/um/include arch/um/scripts arch/x86/include arch/x86/tools \
        arch/x86/um/asm arch/x86/um/shared Makefile* Kbuild* Kconfig* arch/um/Makefile* \
        arch/um/Kconfig* arch/x86/Makefile* arch/x86/Kbuild* arch/x86/Kconfig* \
        arch/x86/um/Makefile* arch/x86/um/Kconfig* .config Module.symvers tools/objtool/objtool
    do
        [ ! -e "$name" ] || echo "$name"
    done |
        tar --create --exclude='*.o' --exclude='*.a' --exclude='*.cmd' --exclude='*.so' \
            --exclude='*.dbg' --files-from=- |
        tar --extract --directory "$2""#;

/// Copies it from `source` to `headers`.
pub(super) fn keep(source: &Path, headers: &Path, interrupts: &Interrupts) -> Result<()> {
    // Linking the modules writes it, even if there are none. A module that is built without it
    // finds none of the kernel's symbols.
    let symbols = source.join("Module.symvers");
    fs::metadata(&symbols).doing("reading", &symbols)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", KEEP, "keep"]).args([source, headers]);
    process::output(&mut shell, interrupts).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
        keep(source.path(), &headers, &Interrupts::arm().unwrap()).unwrap();
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
        let interrupts = Interrupts::arm().unwrap();
        let error = keep(source.path(), &source.path().join("out"), &interrupts).unwrap_err();
        assert!(error.to_string().contains("Module.symvers"), "{error}");
    }
}
