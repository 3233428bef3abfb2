//! What a listener lets in: methods and paths.

use httpd::Refusal;
use httpd::config::ModeBits;
use serde::Deserialize;

/// Methods that are passed on where none are named.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Paths that are hidden from outside where none are named: storaged's own pages.
const HIDDEN: &str = "/_/";
/// How often an encoding may be encoded again before a path is refused for it.
const ENCODED_MAX: usize = 3;

/// What listeners let in; `[edge]` in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Methods that are passed on.
    pub methods: Vec<String>,
    /// Prefixes of the paths that are passed on.
    pub paths: Vec<String>,
    /// Prefixes of paths that are not, though they have one of the above.
    pub hidden: Vec<String>,
    /// Whether `/` is passed on: storaged answers it with the list of its keys.
    pub lists: bool,
    /// Mode of unix sockets, in octal.
    pub mode: Option<ModeBits>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            methods: METHODS.map(str::to_owned).to_vec(),
            paths: vec!["/".to_owned()],
            hidden: vec![HIDDEN.to_owned()],
            lists: false,
            mode: None,
        }
    }
}

impl Policy {
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
        if path == "*" {
            return Ok(());
        }
        let Some(forms) = forms(path) else {
            return refuse(400, "a path that is encoded several times over");
        };
        let has =
            |form: &[u8], list: &[String]| list.iter().any(|one| form.starts_with(one.as_bytes()));
        for form in &forms {
            if !self.lists && form == b"/" {
                return refuse(403, "the list of what is here is not public");
            }
            if has(form, &self.hidden) || !has(form, &self.paths) {
                return refuse(403, "this path is not public");
            }
        }
        Ok(())
    }
}

/// What a path may mean to whoever takes it: as it is, decoded as often as it was encoded, and
/// each without dots, backslashes and empty segments. `None` if it was encoded too often.
fn forms(path: &str) -> Option<Vec<Vec<u8>>> {
    let mut form = path.as_bytes().to_vec();
    let mut forms = Vec::new();
    for _ in 0..=ENCODED_MAX {
        let plain = resolve(&form);
        if plain != form {
            forms.push(plain);
        }
        let decoded = decode(&form);
        forms.push(std::mem::replace(&mut form, decoded));
        if forms.last() == Some(&form) {
            return Some(forms);
        }
    }
    None
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

fn resolve(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let all: Vec<&[u8]> = path.split(|byte| matches!(byte, b'/' | b'\\')).collect();
    for segment in &all {
        // A servlet container drops what follows a semicolon.
        match segment.split(|byte| *byte == b';').next().unwrap_or_default() {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            plain => segments.push(plain),
        }
    }
    let folder = matches!(all.last(), Some(&(b"" | b"." | b"..")));
    let mut plain = vec![b'/'];
    plain.extend_from_slice(&segments.join(&b'/'));
    if folder && !segments.is_empty() {
        plain.push(b'/');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Policy {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn what_is_not_public_is_not_to_be_had_by_another_spelling() {
        let policy = policy("");
        for path in [
            "/_/stat",
            "/_/",
            "/%5f/stat",
            "/%5F%2fstat",
            "//_/stat",
            "/./_/stat",
            "/a/../_/stat",
            "/a/%2e%2e/_/stat",
            "/%255f/stat",
            "/%25255f/stat",
            "\\_\\stat",
            "/_;x/stat",
            "/",
            "//",
            "/.",
            "/a/..",
            "/%2f",
            "/%2e",
        ] {
            let status = policy.admit("GET", path).map_err(|refusal| refusal.status);
            assert_eq!(status, Err(403), "{path}");
        }
        assert_eq!(policy.admit("GET", "/%2525255f/stat").unwrap_err().status, 400);
        for path in ["/a", "/_x", "/a/_/b", "/a%20b", "/%", "*"] {
            assert_eq!(policy.admit("GET", path), Ok(()), "{path}");
        }
    }

    #[test]
    fn a_listener_names_its_methods_and_paths() {
        let policy = policy("methods = [\"GET\", \"HEAD\"]\npaths = [\"/pub/\"]\nlists = true\n");
        assert_eq!(policy.admit("GET", "/pub/a"), Ok(()));
        assert_eq!(policy.admit("PUT", "/pub/a").unwrap_err().status, 405);
        assert_eq!(policy.admit("get", "/pub/a").unwrap_err().status, 405);
        for path in ["/", "/a", "/pub", "/pub/../a", "/pub/%2e%2e/a", "/pub//../a", "/pub/..%2fa"] {
            assert_eq!(policy.admit("GET", path).unwrap_err().status, 403, "{path}");
        }
        assert_eq!(policy.allow(), "GET, HEAD");
    }
}
