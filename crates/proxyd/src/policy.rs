//! What a listener lets in: methods and paths.

use std::collections::BTreeMap;

use httpd::config::ModeBits;
use httpd::{Address, BadAddress, Refusal, Rights};
use serde::Deserialize;

/// Methods that are passed on where none are named.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Paths that are hidden from outside where none are named: storaged's own pages.
const HIDDEN: &str = "/_/";
/// How often an encoding may be encoded again before a path is refused for it.
const ENCODED_MAX: usize = 3;

/// How a listener is set. What is left out is as `[edge]` has it, and that as the default is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edge {
    /// Methods that are passed on.
    pub methods: Option<Vec<String>>,
    /// Prefixes of the paths that are passed on.
    pub paths: Option<Vec<String>>,
    /// Prefixes of paths that are not, though they have one of the above.
    pub hidden: Option<Vec<String>>,
    /// Whether `/` is passed on: storaged answers it with the list of its keys.
    pub lists: Option<bool>,
    /// Mode of a unix socket, in octal.
    pub mode: Option<ModeBits>,
    /// Group of a unix socket, by name or number.
    pub group: Option<String>,
}

impl Edge {
    /// This, and for what it leaves out the other.
    fn over(&self, other: &Edge) -> Edge {
        let or = |one: &Option<Vec<String>>, two: &Option<Vec<String>>| {
            one.as_ref().or(two.as_ref()).cloned()
        };
        Edge {
            methods: or(&self.methods, &other.methods),
            paths: or(&self.paths, &other.paths),
            hidden: or(&self.hidden, &other.hidden),
            lists: self.lists.or(other.lists),
            mode: self.mode.or(other.mode),
            group: self.group.as_ref().or(other.group.as_ref()).cloned(),
        }
    }
}

/// The settings of all listeners.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edges {
    all: Edge,
    at: Vec<(Address, Edge)>,
}

impl Edges {
    /// `[edge]`, and the tables by address.
    pub fn new(all: &Edge, tables: &BTreeMap<String, Edge>) -> Result<Edges, String> {
        let mut edges = Edges { all: all.clone(), ..Edges::default() };
        for (name, edge) in tables {
            if name == "quic" {
                return Err("listener \"quic\" went: leave the table out, it was HTTP/3's".into());
            }
            let all = Address::all(name).map_err(|error: BadAddress| error.to_string())?;
            edges.at.extend(all.into_iter().map(|at| (at, edge.clone())));
        }
        Ok(edges)
    }

    /// Addresses that are set.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.at.iter().map(|(at, _)| at)
    }

    fn of(&self, at: &Address) -> Edge {
        let own = self.at.iter().find(|(other, _)| other == at).map(|(_, edge)| edge);
        own.unwrap_or(&Edge::default()).over(&self.all)
    }

    /// What that listener lets in.
    pub fn policy(&self, at: &Address) -> Policy {
        let edge = self.of(at);
        Policy {
            methods: edge.methods.unwrap_or_else(|| METHODS.map(str::to_owned).to_vec()),
            paths: edge.paths.unwrap_or_else(|| vec!["/".to_owned()]),
            hidden: edge.hidden.unwrap_or_else(|| vec![HIDDEN.to_owned()]),
            lists: edge.lists.unwrap_or(false),
        }
    }

    /// Who may connect to that unix socket.
    pub fn rights(&self, at: &Address) -> Rights {
        let edge = self.of(at);
        Rights { mode: edge.mode.map(|mode| mode.0), group: edge.group }
    }
}

/// What a listener lets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    methods: Vec<String>,
    paths: Vec<String>,
    hidden: Vec<String>,
    lists: bool,
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
        let edge: Edge = toml::from_str(text).unwrap();
        Edges::new(&edge, &BTreeMap::new()).unwrap().policy(&Address::Unix("/p".into()))
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

    #[test]
    fn a_table_of_a_listener_wins_over_that_of_all() {
        let tables: BTreeMap<String, Edge> = toml::from_str(
            "[\"/run/q\"]\nlists = false\n[\"/run/p\"]\nmode = \"660\"\nmethods = [\"GET\"]\n",
        )
        .unwrap();
        let all: Edge = toml::from_str("lists = true\n").unwrap();
        let edges = Edges::new(&all, &tables).unwrap();
        let unix = "unix:/run/p".parse().unwrap();
        let policy = edges.policy(&unix);
        assert!(policy.lists && policy.allow() == "GET");
        assert!(!edges.policy(&"/run/q".parse().unwrap()).lists);
        assert_eq!(edges.rights(&unix), Rights { mode: Some(0o660), group: None });
        let tables = toml::from_str("[x]\n").unwrap();
        assert!(Edges::new(&Edge::default(), &tables).is_err());
    }
}
