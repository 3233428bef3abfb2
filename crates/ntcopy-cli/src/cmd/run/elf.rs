//! What the head of an ELF file says about who will start it.
//!
//! Offsets and numbers are those of elf(5).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The first bytes of every ELF file.
pub const MAGIC: &[u8] = b"\x7fELF";

const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const MACHINE_X86_64: u16 = 62;
const PT_INTERP: u32 = 3;
/// More than any real file has; a broken one may claim anything.
const MOST_BYTES: u64 = 1 << 20;

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
    let head = bytes(file, 0, 64)?;
    if head[4] != CLASS_64 || head[5] != LITTLE_ENDIAN || u16_at(&head, 18) != MACHINE_X86_64 {
        return Ok(Elf::OtherMachine);
    }
    let Some(loader) = loader(file, &head)? else { return Ok(Elf::Static) };
    // Sections may be missing; then nothing is known of Go.
    if has_section(file, &head, b".go.buildinfo").unwrap_or(false) {
        return Ok(Elf::Go);
    }
    Ok(Elf::Dynamic(loader))
}

/// The path in the program header that names the loader.
fn loader(file: &File, head: &[u8]) -> io::Result<Option<String>> {
    let (at, size, count) = (u64_at(head, 32), u16_at(head, 54), u16_at(head, 56));
    for header in headers(&table(file, at, size, count, 56)?, size) {
        if u32_at(header, 0) == PT_INTERP {
            let path = bytes(file, u64_at(header, 8), u64_at(header, 32))?;
            let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
            return Ok(Some(String::from_utf8_lossy(path).into_owned()));
        }
    }
    Ok(None)
}

fn has_section(file: &File, head: &[u8], name: &[u8]) -> io::Result<bool> {
    let (at, size, count) = (u64_at(head, 40), u16_at(head, 58), u16_at(head, 60));
    let table = table(file, at, size, count, 64)?;
    let names = headers(&table, size).nth(usize::from(u16_at(head, 62)));
    let Some(names) = names else { return Ok(false) };
    let names = bytes(file, u64_at(names, 24), u64_at(names, 32))?;
    let is_it = |header: &[u8]| {
        let rest = names.get(u32_at(header, 0) as usize..).unwrap_or_default();
        rest.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0))
    };
    Ok(headers(&table, size).any(is_it))
}

/// A table of `count` headers of this size, which is at least that of elf(5).
fn table(file: &File, at: u64, size: u16, count: u16, least: u16) -> io::Result<Vec<u8>> {
    if count > 0 && size < least {
        return Err(broken());
    }
    bytes(file, at, u64::from(size) * u64::from(count))
}

/// The headers of a table; where it has none, their size may be zero too.
fn headers(table: &[u8], size: u16) -> impl Iterator<Item = &[u8]> {
    table.chunks_exact(usize::from(size).max(1))
}

fn bytes(file: &File, at: u64, size_bytes: u64) -> io::Result<Vec<u8>> {
    if size_bytes > MOST_BYTES {
        return Err(broken());
    }
    let mut bytes = vec![0; size_bytes as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not the headers of an ELF file")
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn this_very_program_has_a_loader() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let Elf::Dynamic(loader) = read(&file).unwrap() else { panic!("static?") };
        assert!(loader.starts_with('/'), "{loader}");
    }

    /// A head, and a table of one program header of this kind.
    fn tiny(kind: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 62;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&kind.to_le_bytes());
        bytes[64 + 8] = 64 + 56;
        bytes[64 + 32] = 5;
        bytes.extend(b"/ld\0x");
        bytes
    }

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(read(&file(&tiny(1))).unwrap(), Elf::Static);
        assert_eq!(read(&file(&tiny(PT_INTERP))).unwrap(), Elf::Dynamic("/ld".into()));
        for (at, value) in [(4, 1), (5, 2), (18, 183)] {
            let mut other = tiny(PT_INTERP);
            other[at] = value;
            assert_eq!(read(&file(&other)).unwrap(), Elf::OtherMachine);
        }
    }

    #[test]
    fn a_section_of_go_is_found() {
        let mut bytes = tiny(PT_INTERP);
        let names = bytes.len() as u64;
        bytes.extend(b"\0.go.buildinfo\0");
        let table = bytes.len() as u64;
        bytes[40..48].copy_from_slice(&table.to_le_bytes());
        bytes[58] = 64;
        bytes[60] = 2;
        // The first holds the names and has none itself; the second is named by the first.
        let mut section = [0; 64];
        section[24..32].copy_from_slice(&names.to_le_bytes());
        section[32] = 15;
        bytes.extend(section);
        section[0] = 1;
        bytes.extend(section);
        assert_eq!(read(&file(&bytes)).unwrap(), Elf::Go);
        let end = bytes.len();
        bytes[end - 64] = 2;
        assert_eq!(read(&file(&bytes)).unwrap(), Elf::Dynamic("/ld".into()));
    }

    #[test]
    fn broken_files_are_errors_and_no_panics() {
        let whole = tiny(PT_INTERP);
        for end in 4..whole.len() - 1 {
            assert!(read(&file(&whole[..end])).is_err(), "{end}");
        }
        for at in 4..whole.len() {
            for value in [0, 1, 255] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = read(&file(&bytes));
            }
        }
    }
}
