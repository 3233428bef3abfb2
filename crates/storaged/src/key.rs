//! Names of objects.

use percent_encoding::percent_decode_str;

/// Longest key, in bytes after percent-decoding.
pub const KEY_BYTES_MAX: usize = 1024;

/// The name of an object, one or more segments with `/` between them: the path of a request target,
/// its first slash included, decoded. Its percent signs are known to be good. What is wrong with it
/// is for the client.
pub fn key_of(path: &str) -> Result<String, &'static str> {
    const FORBIDDEN: &str = "the key has a control character, or an encoded slash";
    let path = path.strip_prefix('/').unwrap_or_default();
    // Before decoding: an encoded slash would make two segments of one.
    let is_slash = |text: &str| text.get(..2).is_some_and(|two| two.eq_ignore_ascii_case("2f"));
    if path.split('%').skip(1).any(is_slash) {
        return Err(FORBIDDEN);
    }
    let key = percent_decode_str(path).decode_utf8().map_err(|_| "the key is not UTF-8")?;
    if key.is_empty() {
        return Err("the key is empty");
    }
    if key.len() > KEY_BYTES_MAX {
        return Err("the key is longer than 1024 bytes");
    }
    if key.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err(FORBIDDEN);
    }
    if key.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err("a segment of the key is empty, '.' or '..'");
    }
    Ok(key.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_what_they_name() {
        let longest = format!("/{}", "y".repeat(KEY_BYTES_MAX));
        let too_long = format!("{longest}y");
        for (path, expected) in [
            ("/a", Ok("a")),
            ("/a/b%20c", Ok("a/b c")),
            ("/a+b", Ok("a+b")),
            ("/%C3%A9", Ok("é")),
            ("/%61%252F", Ok("a%2F")),
            ("/a/_", Ok("a/_")),
            (&longest, Ok(&longest[1..])),
            ("/", Err("is empty")),
            ("/a//b", Err("segment")),
            ("/a/", Err("segment")),
            ("/.", Err("segment")),
            ("/a/../b", Err("segment")),
            ("/a/%2e%2E/b", Err("segment")),
            ("/a%2Fb", Err("encoded slash")),
            ("/a%00", Err("control")),
            ("/a%7f", Err("control")),
            ("/a%ff", Err("UTF-8")),
            (&too_long, Err("longer")),
        ] {
            let key = key_of(path);
            match expected {
                Ok(name) => assert_eq!(key.unwrap(), name),
                Err(why) => assert!(key.unwrap_err().contains(why), "{path}"),
            }
        }
    }
}
