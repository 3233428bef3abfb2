//! The user's folders, by the XDG Base Directory Specification.

use std::ffi::OsString;
use std::path::PathBuf;

/// The folder that `variable` names, else `below_home` in the user's home. A path that isn't
/// absolute counts as not set.
pub fn of_this_user(variable: &str, below_home: &str) -> Option<PathBuf> {
    of_user(|name| std::env::var_os(name), variable, below_home)
}

fn of_user(
    get: impl Fn(&str) -> Option<OsString>,
    variable: &str,
    below_home: &str,
) -> Option<PathBuf> {
    let absolute = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_absolute_is_none() {
        let folder = |base: Option<&str>, home: Option<&str>| {
            let get = |name: &str| match name {
                "XDG_DATA_HOME" => base.map(OsString::from),
                "HOME" => home.map(OsString::from),
                _ => None,
            };
            of_user(get, "XDG_DATA_HOME", ".local/share").map(|path| path.display().to_string())
        };
        for base in [None, Some(""), Some("rel"), Some("./rel"), Some("~/x")] {
            assert_eq!(folder(base, Some("/home/u")).unwrap(), "/home/u/.local/share", "{base:?}");
            for home in [None, Some(""), Some("u")] {
                assert_eq!(folder(base, home), None, "{base:?} {home:?}");
            }
        }
        assert_eq!(folder(Some("/x"), None).unwrap(), "/x");
    }
}
