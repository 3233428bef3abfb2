//! Entity tags, and the conditions that requests make with them.

use std::fmt::Write;

use super::format::Hash;

/// The strong tag of a content, in its quotes.
pub fn etag(digest: &Hash) -> String {
    let mut tag = String::with_capacity(72);
    tag.push('"');
    for byte in digest {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

/// The list in an `If-Match` or `If-None-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    /// `*`: whatever is there.
    Any,
    /// Tags as they were sent, `W/` included.
    List(Vec<String>),
}

impl Tags {
    /// Reads a header's value; `None` if it isn't a list of tags.
    pub fn parse(value: &str) -> Option<Tags> {
        let mut rest = value.trim_matches([' ', '\t']);
        if rest == "*" {
            return Some(Tags::Any);
        }
        let mut tags = Vec::new();
        loop {
            // Empty members are allowed in lists.
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                return (!tags.is_empty()).then_some(Tags::List(tags));
            }
            let weak = if rest.starts_with("W/") { 2 } else { 0 };
            let inner = rest[weak..].strip_prefix('"')?;
            let end = weak + 2 + inner.find('"')?;
            tags.push(rest[..end].to_owned());
            rest = rest[end..].trim_start_matches([' ', '\t']);
            if !rest.is_empty() && !rest.starts_with(',') {
                return None;
            }
        }
    }

    /// Strong comparison: a weak tag matches nothing.
    pub fn match_strongly(&self, tag: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::List(tags) => tags.iter().any(|one| one == tag),
        }
    }

    /// Weak comparison: `W/` is looked past.
    pub fn match_weakly(&self, tag: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::List(tags) => tags.iter().any(|one| one.strip_prefix("W/").unwrap_or(one) == tag),
        }
    }
}

/// What has a name now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Current {
    /// Nothing.
    Absent,
    /// An object with this content.
    Object(Hash),
    /// Something whose digest was not asked for, or can't be read.
    Something,
}

/// `If-Match` and `If-None-Match` of a PUT or a DELETE.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// The object must be one of these.
    pub if_match: Option<Tags>,
    /// The object must be none of these.
    pub if_none_match: Option<Tags>,
}

impl Conditions {
    /// There are none.
    pub fn is_empty(&self) -> bool {
        *self == Conditions::default()
    }

    /// Whether they hold.
    pub fn hold(&self, current: &Current) -> bool {
        let matches = |tags: &Tags, one: fn(&Tags, &str) -> bool| match current {
            Current::Absent => false,
            Current::Something => *tags == Tags::Any,
            Current::Object(digest) => one(tags, &etag(digest)),
        };
        self.if_match.as_ref().is_none_or(|tags| matches(tags, Tags::match_strongly))
            && !self.if_none_match.as_ref().is_some_and(|tags| matches(tags, Tags::match_weakly))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tags() {
        let list =
            |tags: &[&str]| Some(Tags::List(tags.iter().map(|tag| (*tag).to_owned()).collect()));
        for (value, expected) in [
            ("*", Some(Tags::Any)),
            (" * ", Some(Tags::Any)),
            ("\"a\"", list(&["\"a\""])),
            ("\"a\", W/\"b\" ,,\"\"", list(&["\"a\"", "W/\"b\"", "\"\""])),
            ("\"a,b\"", list(&["\"a,b\""])),
            ("", None),
            (",", None),
            ("a", None),
            ("\"a", None),
            ("\"a\" \"b\"", None),
            ("*, \"a\"", None),
            ("w/\"a\"", None),
        ] {
            assert_eq!(Tags::parse(value), expected, "{value:?}");
        }
    }

    #[test]
    fn conditions_and_what_is_there() {
        let (mine, other) = ([1; 32], [2; 32]);
        let tag = etag(&mine);
        let list = |tag: &str| Tags::parse(tag).unwrap();
        // If-Match, If-None-Match, and whether they hold for: absent, mine, other, something.
        for (if_match, if_none_match, expected) in [
            (None, None, [true, true, true, true]),
            (Some(Tags::Any), None, [false, true, true, true]),
            (Some(list(&tag)), None, [false, true, false, false]),
            (Some(list(&format!("W/{tag}"))), None, [false, false, false, false]),
            (None, Some(Tags::Any), [true, false, false, false]),
            (None, Some(list(&tag)), [true, false, true, true]),
            (None, Some(list(&format!("W/{tag}"))), [true, false, true, true]),
        ] {
            let conditions = Conditions { if_match, if_none_match };
            let states = [
                Current::Absent,
                Current::Object(mine),
                Current::Object(other),
                Current::Something,
            ];
            let held = states.map(|current| conditions.hold(&current));
            assert_eq!(held, expected, "{conditions:?}");
        }
    }
}
