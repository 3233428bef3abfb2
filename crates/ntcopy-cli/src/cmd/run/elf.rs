//! What the head of an ELF file says about who will start it.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;

use object::elf::{DT_NEEDED, EM_X86_64, ET_DYN, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, FileKind, ReadCache};

/// The first bytes of every ELF file.
pub const MAGIC: &[u8] = b"\x7fELF";

/// Runtimes of AddressSanitizer, gcc's and clang's: they insist on being the first library.
const SANITIZERS: [&str; 2] = ["libasan.", "libclang_rt.asan"];

/// Why no library of ours is to be loaded before a program.
#[derive(Debug)]
pub struct Obstacle {
    pub why: String,
    /// Whether the program would not start.
    pub is_fatal: bool,
}

/// Why no library of ours is to be loaded before a program. What cannot be looked into has none.
pub fn obstacle(path: &Path) -> Option<Obstacle> {
    let file = File::open(path).ok()?;
    look(&ReadCache::new(&file), std::env::var_os("LD_PRELOAD")).ok().flatten()
}

fn look(
    data: &ReadCache<&File>,
    preloaded: Option<OsString>,
) -> object::read::Result<Option<Obstacle>> {
    let is = |why: &str| Ok(Some(Obstacle { why: why.to_owned(), is_fatal: false }));
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
    // Sections may be missing; then nothing is known of Go, nor of what is needed.
    let sections = head.sections(endian, data).unwrap_or_default();
    if sections.section_by_name(endian, b".go.buildinfo").is_some() {
        return is("is a Go program: those make their system calls without the C library");
    }
    let loader = String::from_utf8_lossy(loader);
    let name = loader.rsplit('/').next().unwrap_or_default();
    if !["ld-linux", "ld-musl-"].iter().any(|known| name.starts_with(known)) {
        let why = format!("is started by {loader}, neither glibc's nor musl's dynamic loader");
        return Ok(Some(Obstacle { why, is_fatal: false }));
    }
    let preloaded = preloaded.unwrap_or_default().to_string_lossy().into_owned();
    let is_first = SANITIZERS.iter().any(|runtime| preloaded.contains(runtime));
    let libraries = sections.dynamic_table(endian, data)?;
    let mut needed = libraries.iter().filter(|entry| entry.tag == DT_NEEDED);
    if is_first || !needed.any(|entry| libraries.string(entry).is_ok_and(is_sanitizer)) {
        return Ok(None);
    }
    let why = "is built with AddressSanitizer, whose runtime has to be the first library: \
               LD_PRELOAD=libasan.so in front of this command has the library loaded behind it"
        .to_owned();
    Ok(Some(Obstacle { why, is_fatal: true }))
}

fn is_sanitizer(library: &[u8]) -> bool {
    SANITIZERS.iter().any(|runtime| library.starts_with(runtime.as_bytes()))
}

/// Whether a file is a library of this machine, and whole.
pub fn is_library(file: &File) -> object::read::Result<bool> {
    let data = &ReadCache::new(file);
    let head = FileHeader64::<Endianness>::parse(data)?;
    let endian = head.endian()?;
    let is_one = head.e_type(endian) == ET_DYN && head.e_machine(endian) == EM_X86_64;
    let segments = head.program_headers(endian, data)?;
    Ok(is_one && segments.iter().all(|segment| segment.data(endian, data).is_ok()))
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
        obstacle(file.path()).map(|obstacle| obstacle.why)
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
        assert_eq!(shell(|bytes| replace(bytes, b"/ld-linux-", b"/ld-musl-x")), None);
        let other = shell(|bytes| replace(bytes, b"/ld-linux-", b"/ld-other--"));
        assert!(other.unwrap().contains("/ld-other-"));
        assert_eq!(shell(|bytes| bytes.truncate(4000)), None, "no sections");
        assert_eq!(shell(|bytes| bytes.truncate(100)), None);
    }
}
