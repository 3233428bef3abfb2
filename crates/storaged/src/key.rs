//! Names of objects.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// Longest key, in bytes after percent-decoding.
pub const KEY_BYTES_MAX: usize = 1024;

/// The name of an object: one or more segments with `/` between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("the key is empty")]
    Empty,
    #[error("the key is longer than {KEY_BYTES_MAX} bytes")]
    TooLong,
    #[error("a segment of the key is empty")]
    EmptySegment,
    #[error("a segment of the key is '.' or '..'")]
    DotSegment,
    #[error("the key has a control character, or an encoded slash")]
    Forbidden,
    #[error("the key is not UTF-8")]
    NotUtf8,
}

impl Key {
    /// Decodes the path of a request target, its first slash included; its percent signs are known
    /// to be good.
    pub fn from_target(path: &str) -> Result<Key, BadKey> {
        let path = path.strip_prefix('/').ok_or(BadKey::Empty)?;
        // Before decoding: an encoded slash would make two segments of one.
        let is_slash = |text: &str| text.get(..2).is_some_and(|two| two.eq_ignore_ascii_case("2f"));
        if path.split('%').skip(1).any(is_slash) {
            return Err(BadKey::Forbidden);
        }
        percent_decode_str(path).decode_utf8().map_err(|_| BadKey::NotUtf8)?.parse()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Key {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Key, BadKey> {
        if text.is_empty() {
            return Err(BadKey::Empty);
        }
        if text.len() > KEY_BYTES_MAX {
            return Err(BadKey::TooLong);
        }
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err(BadKey::Forbidden);
        }
        for segment in text.split('/') {
            match segment {
                "" => return Err(BadKey::EmptySegment),
                "." | ".." => return Err(BadKey::DotSegment),
                _ => {}
            }
        }
        Ok(Key(text.to_owned()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_and_what_they_name() {
        let longest = format!("/{}", "y".repeat(KEY_BYTES_MAX));
        let too_long = format!("{longest}y");
        let table: &[(&str, Result<&str, BadKey>)] = &[
            ("/a", Ok("a")),
            ("/a/b%20c", Ok("a/b c")),
            ("/a+b", Ok("a+b")),
            ("/%C3%A9", Ok("é")),
            ("/a/_", Ok("a/_")),
            (&longest, Ok(&longest[1..])),
            ("/", Err(BadKey::Empty)),
            ("/a//b", Err(BadKey::EmptySegment)),
            ("/a/", Err(BadKey::EmptySegment)),
            ("/.", Err(BadKey::DotSegment)),
            ("/a/../b", Err(BadKey::DotSegment)),
            ("/a/%2e%2E/b", Err(BadKey::DotSegment)),
            ("/a%2Fb", Err(BadKey::Forbidden)),
            ("/a%00", Err(BadKey::Forbidden)),
            ("/a%7f", Err(BadKey::Forbidden)),
            ("/a%ff", Err(BadKey::NotUtf8)),
            (&too_long, Err(BadKey::TooLong)),
        ];
        for (path, expected) in table {
            let key = Key::from_target(path);
            assert_eq!(key.as_ref().map(Key::as_str), expected.as_ref().copied(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn every_key_is_its_own_target_encoded(text in ".{0,40}") {
            if let Ok(key) = Key::from_target(&format!("/{text}")) {
                let encoded: String = key.as_str().bytes().map(|byte| match byte {
                    b'/' => "/".to_owned(),
                    byte => format!("%{byte:02x}"),
                }).collect();
                prop_assert_eq!(Key::from_target(&format!("/{encoded}")), Ok(key));
            }
        }
    }
}
