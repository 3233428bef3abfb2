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
