//! The directory of one guest: its orders, its console, the kernel's own files.

use std::path::{Path, PathBuf};

use super::wall::OWN;
use crate::error::Result;
use crate::temporary::Folder;

/// Makes one, which is removed when dropped.
pub(super) fn make() -> Result<Folder> {
    Folder::below(&parent(&std::env::temp_dir()), "ntcopy-guest-")
}

/// Where the directory lies. Its name must be short and plain: the kernel puts a socket into it,
/// whose path holds 107 bytes, and reads it from its command line. And it must not be where the
/// guest mounts something of its own.
fn parent(wished: &Path) -> PathBuf {
    let hidden = OWN.iter().any(|own| wished.starts_with(own));
    let plain = wished.to_str().is_some_and(|name| {
        name.len() < 60 && !name.contains(|c: char| c.is_whitespace() || c == '"' || c == ',')
    });
    if plain && !hidden { wished.to_path_buf() } else { "/tmp".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_the_guest_would_not_see_is_not_taken() {
        for wished in ["/run/user/0", "/dev/shm", "/tmp/with space"] {
            assert_eq!(parent(Path::new(wished)), Path::new("/tmp"));
        }
        assert_eq!(parent(Path::new("/var/tmp")), Path::new("/var/tmp"));
    }
}
