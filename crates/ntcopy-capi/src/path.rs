//! Paths as C has them: a number, which only these functions read.

use std::ffi::{c_char, c_int};

use ntcopy::{Method, Path, Prefetch, Turns};

const METHODS: usize = Method::ALL.len();
const PREFETCHES: usize = Prefetch::ALL.len();
const TURNS: usize = Turns::ALL.len();
/// Room for the longest name and its NUL; a constant that were too small would not compile.
const NAME_BYTES: usize = 40;

/// A path's number: 0 for the C library.
#[inline]
pub(crate) fn encode(path: Path) -> u32 {
    let method = path.method as u32;
    let prefetch = path.prefetch as u32;
    let turns = Turns::ALL.iter().position(|turns| *turns == path.turns).unwrap_or_default();
    (method * PREFETCHES as u32 + prefetch) * TURNS as u32 + turns as u32
}

/// The path of a number, if it is one.
const fn decode(code: u32) -> Option<Path> {
    let code = code as usize;
    let (shape, turns) = (code / TURNS, Turns::ALL[code % TURNS]);
    if shape / PREFETCHES >= METHODS {
        return None;
    }
    let method = Method::ALL[shape / PREFETCHES];
    Some(Path { method, prefetch: Prefetch::ALL[shape % PREFETCHES], turns })
}

/// Every path's name with its NUL, so that a caller may keep the pointer for ever.
static NAMES: [[u8; NAME_BYTES]; METHODS * PREFETCHES * TURNS] = names();

const fn names() -> [[u8; NAME_BYTES]; METHODS * PREFETCHES * TURNS] {
    let mut names = [[0; NAME_BYTES]; METHODS * PREFETCHES * TURNS];
    let mut code = 0;
    while code < names.len() {
        let Some(path) = decode(code as u32) else { panic!("a table longer than the paths") };
        let mut at = append(&mut names[code], 0, path.name());
        if !matches!(path.prefetch, Prefetch::None) {
            at = append(&mut names[code], at, "+");
            at = append(&mut names[code], at, path.prefetch.name());
        }
        if !path.turns.is_none() {
            at = append(&mut names[code], at, "+");
            append(&mut names[code], at, path.turns.name());
        }
        code += 1;
    }
    names
}

/// Writes `text` at `at`, before a NUL that is there already.
const fn append(name: &mut [u8; NAME_BYTES], mut at: usize, text: &str) -> usize {
    let text = text.as_bytes();
    assert!(at + text.len() < NAME_BYTES);
    let mut done = 0;
    while done < text.len() {
        name[at] = text[done];
        at += 1;
        done += 1;
    }
    at
}

/// The name of a path; NULL for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn ntcopy_path_name(path: u32) -> *const c_char {
    match NAMES.get(path as usize) {
        Some(name) => name.as_ptr().cast(),
        None => std::ptr::null(),
    }
}

/// Whether the stores bypassed the caches.
#[unsafe(no_mangle)]
pub extern "C" fn ntcopy_path_is_nontemporal(path: u32) -> c_int {
    decode(path).is_some_and(Path::is_nontemporal).into()
}

/// Whether the source was prefetched past the outer caches, or flushed out of all of them.
#[unsafe(no_mangle)]
pub extern "C" fn ntcopy_path_source_is_nontemporal(path: u32) -> c_int {
    decode(path).is_some_and(Path::source_is_nontemporal).into()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn all() -> impl Iterator<Item = Path> {
        Method::ALL.into_iter().flat_map(|method| {
            Prefetch::ALL
                .into_iter()
                .flat_map(move |prefetch| Turns::ALL.map(|turns| Path { method, prefetch, turns }))
        })
    }

    #[test]
    fn every_path_has_a_number_of_its_own_and_the_name_that_rust_gives_it() {
        for (number, path) in all().enumerate() {
            assert_eq!(encode(path) as usize, number, "Method::ALL is in the order of the enum");
            assert_eq!(decode(encode(path)), Some(path));
            let name = ntcopy_path_name(encode(path));
            // SAFETY: the name ends with a NUL, and is static.
            let name = unsafe { CStr::from_ptr(name) };
            assert_eq!(name.to_str().unwrap(), path.to_string());
            assert_eq!(ntcopy_path_is_nontemporal(encode(path)) != 0, path.is_nontemporal());
            assert_eq!(
                ntcopy_path_source_is_nontemporal(encode(path)) != 0,
                path.source_is_nontemporal()
            );
        }
        assert_eq!(encode(Path::LIBC), 0, "a zeroed path is the C library's");
    }

    #[test]
    fn a_number_that_is_no_path_has_no_name() {
        for number in [all().count() as u32, u32::MAX] {
            assert!(ntcopy_path_name(number).is_null());
            assert_eq!(ntcopy_path_is_nontemporal(number), 0);
        }
    }
}
