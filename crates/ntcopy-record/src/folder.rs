//! The user's folders.

use std::path::PathBuf;

/// What a variable of the XDG Base Directory Specification names, else that folder below the home.
/// A relative path in either is as good as none.
#[must_use]
pub fn of_user(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))
}
