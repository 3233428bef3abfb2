//! What the head of an ELF file says about who will start it.

use std::fs::File;
use std::io;

use object::elf::{EM_X86_64, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, FileKind, ReadCache};

/// The first bytes of every ELF file.
pub const MAGIC: &[u8] = b"\x7fELF";

/// What matters about a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Elf {
    /// For another processor, or in 32 bits.
    OtherMachine,
    /// Without a dynamic loader.
    Static,
    /// Built by Go, whose programs make their system calls themselves.
    Go,
    /// The dynamic loader that starts it.
    Dynamic(String),
}

/// Reads a file that begins with [`MAGIC`].
pub fn read(file: &File) -> io::Result<Elf> {
    look(&ReadCache::new(file)).map_err(io::Error::other)
}

fn look(data: &ReadCache<&File>) -> object::read::Result<Elf> {
    if FileKind::parse(data)? != FileKind::Elf64 {
        return Ok(Elf::OtherMachine);
    }
    let head = FileHeader64::<Endianness>::parse(data)?;
    let endian = head.endian()?;
    if head.e_machine(endian) != EM_X86_64 {
        return Ok(Elf::OtherMachine);
    }
    let segments = head.program_headers(endian, data)?.iter();
    let loaders = segments.map(|segment| segment.interpreter(endian, data));
    let Some(loader) = loaders.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next() else {
        return Ok(Elf::Static);
    };
    // Sections may be missing; then nothing is known of Go.
    let sections = head.sections(endian, data).ok();
    if sections.is_some_and(|all| all.section_by_name(endian, b".go.buildinfo").is_some()) {
        return Ok(Elf::Go);
    }
    Ok(Elf::Dynamic(String::from_utf8_lossy(loader).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// The shell, changed.
    fn shell(change: impl FnOnce(&mut Vec<u8>)) -> io::Result<Elf> {
        let mut bytes = std::fs::read("/bin/sh").unwrap();
        change(&mut bytes);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        read(&file)
    }

    #[test]
    fn kinds_are_told_apart_and_what_is_cut_short_is_an_error() {
        let dynamic = Elf::Dynamic("/lib64/ld-linux-x86-64.so.2".to_owned());
        assert_eq!(shell(|_| {}).unwrap(), dynamic);
        // 32 bits, and another processor.
        for (at, value) in [(4, 1), (18, 183)] {
            assert_eq!(shell(|bytes| bytes[at] = value).unwrap(), Elf::OtherMachine);
        }
        // Without the program header that names the loader.
        let unnamed = shell(|bytes| {
            let mut kinds = (64..).step_by(56);
            let at = kinds.find(|at| bytes[*at..*at + 4] == [3, 0, 0, 0]).unwrap();
            bytes[at] = 0;
        });
        assert_eq!(unnamed.unwrap(), Elf::Static);
        // A section of Go's in the place of one whose name is as long.
        let (any, of_go) = (b"\0.eh_frame_hdr\0", b"\0.go.buildinfo\0");
        let named = shell(|bytes| {
            let at = bytes.windows(any.len()).rposition(|name| name == any).unwrap();
            bytes[at..at + of_go.len()].copy_from_slice(of_go);
        });
        assert_eq!(named.unwrap(), Elf::Go);
        assert_eq!(shell(|bytes| bytes.truncate(4000)).unwrap(), dynamic, "no sections");
        assert!(shell(|bytes| bytes.truncate(100)).is_err());
    }
}
