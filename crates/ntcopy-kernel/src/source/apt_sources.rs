//! Reading the system's apt sources, to find the Debian mirror that it already uses.

use std::fs;
use std::path::Path;

use crate::cache::children;

/// An archive that holds Debian itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    /// Base URI of the mirror.
    pub(crate) uri: String,
    /// The keys that sign it: paths, a fingerprint, or a whole key as deb822 spells it.
    pub(crate) signed_by: Option<String>,
}

/// One source, in either format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) uris: Vec<String>,
    pub(crate) suites: Vec<String>,
    components: Vec<String>,
    pub(crate) signed_by: Option<String>,
}

/// Suites that are Debian itself, without the `-updates` and `-backports` that hang on them.
const DEBIAN_SUITES: &[&str] =
    &["bookworm", "trixie", "forky", "duke", "sid", "oldstable", "stable", "testing", "unstable"];

/// The Debian archives of `/etc/apt`, in the order in which apt reads them.
pub(crate) fn system(etc_apt: &Path) -> Vec<Archive> {
    archives(&entries(etc_apt))
}

/// The sources of `/etc/apt` that are Debian's main component, security updates included.
pub(crate) fn debian(etc_apt: &Path) -> Vec<Entry> {
    let mut entries = entries(etc_apt);
    for entry in &mut entries {
        entry.suites.retain(|suite| is_debian(suite));
        entry.uris.retain(|uri| !uri.starts_with("cdrom:"));
    }
    entries.retain(|entry| {
        let has_main = entry.components.iter().any(|component| component == "main");
        has_main && !entry.suites.is_empty() && !entry.uris.is_empty()
    });
    entries
}

/// Where the security updates are of what these sources have, if none of them has those: beside the
/// mirror itself. A Linux of a release that is old enough comes as one.
pub(crate) fn missing_security(entries: &[Entry]) -> Option<Entry> {
    let is_security = |suite: &String| suite.ends_with("-security");
    if entries.iter().any(|entry| entry.suites.iter().any(is_security)) {
        return None;
    }
    let has_none = ["sid", "unstable"];
    entries.iter().find_map(|entry| {
        let whole = |suite: &&String| DEBIAN_SUITES.contains(&suite.as_str());
        let suite = entry.suites.iter().filter(whole).find(|s| !has_none.contains(&s.as_str()))?;
        let uri = entry.uris.first()?.trim_end_matches('/');
        Some(Entry {
            uris: vec![format!("{uri}-security")],
            suites: vec![format!("{suite}-security")],
            ..entry.clone()
        })
    })
}

/// Whether a suite is one of Debian's, or hangs on one.
fn is_debian(suite: &str) -> bool {
    let base = ["-security", "-proposed-updates", "-updates", "-backports-sloppy", "-backports"]
        .iter()
        .find_map(|suffix| suite.strip_suffix(suffix))
        .unwrap_or(suite);
    DEBIAN_SUITES.contains(&base)
}

/// All sources of `/etc/apt`.
fn entries(etc_apt: &Path) -> Vec<Entry> {
    let mut entries = Vec::new();
    let list = etc_apt.join("sources.list");
    let parts = children(&etc_apt.join("sources.list.d")).unwrap_or_default();
    for path in std::iter::once(list).chain(parts) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("list") => entries.extend(one_line(&text)),
            Some("sources") => entries.extend(deb822(&text)),
            _ => {}
        }
    }
    entries
}

/// The archives among the entries that carry Debian's main component.
fn archives(entries: &[Entry]) -> Vec<Archive> {
    let mut found: Vec<Archive> = Vec::new();
    for entry in entries {
        let has_main = entry.components.iter().any(|component| component == "main");
        if !has_main || !entry.suites.iter().any(|suite| is_debian(suite)) {
            continue;
        }
        for uri in entry.uris.iter().filter(|uri| !uri.starts_with("cdrom:")) {
            if uri.contains("security") || found.iter().any(|archive| archive.uri == *uri) {
                continue;
            }
            found.push(Archive { uri: uri.clone(), signed_by: entry.signed_by.clone() });
        }
    }
    found
}

/// The `deb` lines of a `.list` file: `deb [options] uri suite component…`.
fn one_line(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("").trim();
        let Some(rest) = line
            .strip_prefix("deb")
            .filter(|rest| rest.starts_with(char::is_whitespace) || rest.starts_with('['))
        else {
            continue;
        };
        let rest = rest.trim();
        let (options, rest) = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            Some((options, rest)) => (options, rest),
            None => ("", rest),
        };
        let signed_by = options
            .split_whitespace()
            .find_map(|option| option.strip_prefix("signed-by="))
            .map(|keys| keys.replace(',', " "));
        let mut words = rest.split_whitespace().map(str::to_owned);
        let (Some(uri), Some(suite)) = (words.next(), words.next()) else { continue };
        let entry =
            Entry { uris: vec![uri], suites: vec![suite], components: words.collect(), signed_by };
        entries.push(entry);
    }
    entries
}

/// The enabled `deb` stanzas of a `.sources` file.
fn deb822(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines().chain(std::iter::once("")) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            entries.extend(stanza(&std::mem::take(&mut fields)));
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    entries
}

/// The fields of one stanza as an entry.
fn stanza(fields: &[(String, String)]) -> Option<Entry> {
    let field = |name: &str| {
        fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    };
    let words = |name: &str| -> Vec<String> {
        field(name).unwrap_or("").split_whitespace().map(str::to_owned).collect()
    };
    let is_off = matches!(field("enabled"), Some("no" | "false" | "off" | "0" | "without"));
    if is_off || !words("types").iter().any(|kind| kind == "deb") {
        return None;
    }
    Some(Entry {
        uris: words("uris"),
        suites: words("suites"),
        components: words("components"),
        signed_by: field("signed-by").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uris(entries: &[Entry]) -> Vec<String> {
        archives(entries).into_iter().map(|archive| archive.uri).collect()
    }

    #[test]
    fn a_one_line_list_gives_the_main_archive_only() {
        let text = "# head\n\
            deb-src http://a.example/debian bookworm main\n\
            deb [arch=amd64 signed-by=/k/a.gpg,/k/b.gpg] http://a.example/debian bookworm main contrib # x\n\
            deb http://a.example/debian-security bookworm-security main\n\
            deb http://c.example/apt cloud-sdk-bookworm main\n\
            deb http://a.example/debian bookworm-updates main\n";
        let entries = one_line(text);
        assert_eq!(
            archives(&entries),
            [Archive {
                uri: "http://a.example/debian".into(),
                signed_by: Some("/k/a.gpg /k/b.gpg".into())
            }]
        );
    }

    #[test]
    fn deb822_stanzas_are_read_with_their_keys() {
        let text = "Types: deb deb-src\n# a comment inside\nURIs: http://a.example/debian\n\
            Suites: trixie trixie-updates\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n\n\n\
            Types: deb\nURIs: http://s.example/debian-security\nSuites: trixie-security\nComponents: main\n\n\
            Types: deb\nURIs: https://n.example/node\nSuites: nodistro\nComponents: main\n";
        let found = archives(&deb822(text));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].uri, "http://a.example/debian");
        assert_eq!(found[0].signed_by.as_deref(), Some("\n -----BEGIN\n .\n abc"));
    }

    #[test]
    fn disabled_stanzas_source_stanzas_and_discs_are_left_out() {
        let text = "Enabled: no\nTypes: deb\nURIs: http://a/debian\nSuites: sid\nComponents: main\n\n\
            Types: deb-src\nURIs: http://b/debian\nSuites: sid\nComponents: main\n";
        assert!(uris(&deb822(text)).is_empty());
        assert!(uris(&one_line("deb cdrom:[Debian]/ bookworm main\n")).is_empty());
        assert!(uris(&one_line("debug http://a/debian sid main\n")).is_empty());
    }

    #[test]
    fn security_updates_are_kept_where_they_are_asked_for_and_strangers_are_not() {
        let etc = tempfile::tempdir().unwrap();
        fs::write(
            etc.path().join("sources.list"),
            "deb http://a/debian bookworm main\n\
             deb http://a/debian-security bookworm-security main\n\
             deb http://c/apt cloud-sdk-bookworm main\ndeb http://a/debian bookworm contrib\n",
        )
        .unwrap();
        let found = debian(etc.path());
        let suites: Vec<&str> = found.iter().map(|entry| entry.suites[0].as_str()).collect();
        assert_eq!(suites, ["bookworm", "bookworm-security"]);
        assert_eq!(system(etc.path()).len(), 1);
    }

    #[test]
    fn two_mirrors_stay_in_order() {
        let text = "deb http://one/debian stable main\ndeb http://two/debian stable main\n";
        assert_eq!(uris(&one_line(text)), ["http://one/debian", "http://two/debian"]);
    }
}
