//! What is let in: methods, and the list of what is there.

use httpd::Refusal;

/// Methods that are passed on where none are named.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// How often an encoding may be encoded again before a path is refused for it.
const ENCODED_MAX: usize = 3;

#[derive(Debug, Clone)]
pub struct Policy {
    methods: Vec<String>,
    /// Whether `/` is passed on.
    lists: bool,
}

impl Policy {
    /// No methods stand for the usual ones.
    pub fn new(methods: &[String], lists: bool) -> Policy {
        let methods = match methods {
            [] => METHODS.map(str::to_owned).to_vec(),
            named => named.to_vec(),
        };
        Policy { methods, lists }
    }

    /// The methods, for an `Allow` line.
    pub fn allow(&self) -> String {
        self.methods.join(", ")
    }

    /// Whether a request is passed on; `path` is without its query.
    pub fn admit(&self, method: &str, path: &str) -> Result<(), Refusal> {
        let refuse = |status, reason| Err(Refusal { status, reason });
        if !self.methods.iter().any(|one| one == method) {
            return refuse(405, "this method is not passed on here");
        }
        if self.lists || path == "*" {
            return Ok(());
        }
        match is_root(path) {
            None => refuse(400, "a path that is encoded several times over"),
            Some(true) => refuse(403, "the list of what is here is not public"),
            Some(false) => Ok(()),
        }
    }
}

/// Whether a path may mean `/` to whoever takes it: as it is, or decoded as often as it was encoded.
/// `None` if it was encoded too often.
fn is_root(path: &str) -> Option<bool> {
    let mut form = path.as_bytes().to_vec();
    for _ in 0..=ENCODED_MAX {
        if leads_nowhere(&form) {
            return Some(true);
        }
        let decoded = decode(&form);
        if decoded == form {
            return Some(false);
        }
        form = decoded;
    }
    None
}

/// Whether nothing is left of a path without dots, backslashes and empty segments.
fn leads_nowhere(path: &[u8]) -> bool {
    let mut depth = 0_usize;
    for segment in path.split(|byte| matches!(byte, b'/' | b'\\')) {
        // A servlet container drops what follows a semicolon.
        match segment.split(|byte| *byte == b';').next().unwrap_or_default() {
            b"" | b"." => {}
            b".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    depth == 0
}

fn decode(path: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut at = 0;
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    while at < path.len() {
        match (path[at], digit(path.get(at + 1)), digit(path.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high << 4 | low) as u8);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_not_to_be_had_by_another_spelling() {
        let (hidden, shown) = (Policy::new(&[], false), Policy::new(&[], true));
        for path in [
            "/",
            "//",
            "/.",
            "/./",
            "\\",
            "/;x",
            "/.;x/",
            "/a/..",
            "/a/../",
            "/../a/..",
            "/a\\..\\",
            "/%2f",
            "/%2e",
            "/%2F%2E",
            "/a/%2e%2e",
            "/a%2f..",
            "/a%5c..",
            "/%252e",
            "/%25252e",
            "/a/%252e%252e",
        ] {
            let status = hidden.admit("GET", path).map_err(|refusal| refusal.status);
            assert_eq!(status, Err(403), "{path}");
            assert_eq!(shown.admit("GET", path), Ok(()), "{path}");
        }
        assert_eq!(hidden.admit("GET", "/a%2525252e").unwrap_err().status, 400);
        for path in ["/a", "/_x", "/a/_/b", "/a%20b", "/%", "/a/.", "/..a", "*"] {
            assert_eq!(hidden.admit("GET", path), Ok(()), "{path}");
        }
    }

    #[test]
    fn methods_are_those_that_are_named() {
        let policy = Policy::new(&["GET".to_owned(), "HEAD".to_owned()], false);
        assert_eq!(policy.admit("GET", "/a"), Ok(()));
        assert_eq!(policy.admit("PUT", "/a").unwrap_err().status, 405);
        assert_eq!(policy.admit("get", "/a").unwrap_err().status, 405);
        assert_eq!(policy.allow(), "GET, HEAD");
    }
}
