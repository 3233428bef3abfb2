//! What the head of an ELF file says about who will start it.

use std::fs::File;
use std::path::Path;

use object::elf::{EM_X86_64, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, FileKind, ReadCache};

/// The first bytes of every ELF file.
pub const MAGIC: &[u8] = b"\x7fELF";

/// Why no library of ours can be loaded before a program. What cannot be looked into has none.
pub fn obstacle(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    look(&ReadCache::new(&file)).ok().flatten()
}

fn look(data: &ReadCache<&File>) -> object::read::Result<Option<String>> {
    let is = |why: &str| Ok(Some(why.to_owned()));
    const OTHER_MACHINE: &str = "is no program for 64-bit x86, as the library is";
    if FileKind::parse(data)? != FileKind::Elf64 {
        return is(OTHER_MACHINE);
    }
    let head = FileHeader64::<Endianness>::parse(data)?;
    let endian = head.endian()?;
    if head.e_machine(endian) != EM_X86_64 {
        return is(OTHER_MACHINE);
    }
    let segments = head.program_headers(endian, data)?.iter();
    let loaders = segments.map(|segment| segment.interpreter(endian, data));
    let Some(loader) = loaders.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next() else {
        return is("is linked statically: no library can be loaded before it");
    };
    // Sections may be missing; then nothing is known of Go.
    let sections = head.sections(endian, data).ok();
    if sections.is_some_and(|all| all.section_by_name(endian, b".go.buildinfo").is_some()) {
        return is("is a Go program: those make their system calls without the C library");
    }
    let loader = String::from_utf8_lossy(loader);
    let is_glibc = loader.rsplit('/').next().unwrap_or_default().starts_with("ld-linux");
    Ok((!is_glibc).then(|| format!("is started by {loader}, not by glibc's dynamic loader")))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// What is in the way of the shell, changed.
    fn shell(change: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
        let mut bytes = std::fs::read("/bin/sh").unwrap();
        change(&mut bytes);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        obstacle(file.path())
    }

    /// Puts bytes in the place of as many others, where they are last.
    fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
        let at = bytes.windows(old.len()).rposition(|place| place == old).unwrap();
        bytes[at..at + new.len()].copy_from_slice(new);
    }

    #[test]
    fn what_is_out_of_reach_is_said_and_what_is_cut_short_is_not_known() {
        assert_eq!(shell(|_| {}), None);
        // 32 bits, and another processor.
        for (at, value) in [(4, 1), (18, 183)] {
            assert!(shell(|bytes| bytes[at] = value).unwrap().contains("64-bit x86"));
        }
        // Without the program header that names the loader.
        let unnamed = shell(|bytes| {
            let mut kinds = (64..).step_by(56);
            let at = kinds.find(|at| bytes[*at..*at + 4] == [3, 0, 0, 0]).unwrap();
            bytes[at] = 0;
        });
        assert!(unnamed.unwrap().contains("statically"));
        // A section of Go's in the place of one whose name is as long.
        let named = shell(|bytes| replace(bytes, b"\0.eh_frame_hdr\0", b"\0.go.buildinfo\0"));
        assert!(named.unwrap().contains("Go"));
        let musl = shell(|bytes| replace(bytes, b"/ld-linux-", b"/ld-musl--"));
        assert!(musl.unwrap().contains("/ld-musl-"));
        assert_eq!(shell(|bytes| bytes.truncate(4000)), None, "no sections");
        assert_eq!(shell(|bytes| bytes.truncate(100)), None);
    }
}
