//! Entity tags, and the conditions that requests make with them.

/// The list in an `If-Match` or `If-None-Match`: tags as they were sent, `W/` included; or `*`, which
/// stands for whatever is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tags(Vec<String>);

impl Tags {
    pub fn parse(value: &str) -> Option<Tags> {
        let mut rest = value.trim_matches([' ', '\t']);
        if rest == "*" {
            return Some(Tags(vec![rest.to_owned()]));
        }
        let mut tags = Vec::new();
        loop {
            // Empty members are allowed in lists.
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                return (!tags.is_empty()).then_some(Tags(tags));
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

    /// Whether one is the tag of what is there; strongly, a weak one matches nothing, else its `W/`
    /// is looked past.
    fn match_what(&self, current: &Current, strongly: bool) -> bool {
        let prefix = if strongly { "" } else { "W/" };
        let is_it =
            |one: &String| Some(one.strip_prefix(prefix).unwrap_or(one)) == current.tag.as_deref();
        self.0 == ["*"] || self.0.iter().any(is_it)
    }
}

/// What is there. A page has neither.
#[derive(Debug, Clone, Default)]
pub struct Current {
    pub tag: Option<String>,
    /// The second in which it was stored, since 1970.
    pub modified: Option<u64>,
}

/// What a request says of the object that it is about. Dates are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    pub if_match: Option<Tags>,
    pub if_none_match: Option<Tags>,
    pub if_unmodified_since: Option<u64>,
    /// Of a GET or a HEAD: it means nothing elsewhere (RFC 9110, 13.1.3).
    pub if_modified_since: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Hold,
    /// 412.
    Fail,
    /// The client has it: 304 for what reads, 412 for what changes.
    Known,
}

impl Conditions {
    /// In the order of RFC 9110, 13.2.2: a tag goes before a date, and a date says nothing of what
    /// has none.
    pub fn judge(&self, current: Option<&Current>) -> Verdict {
        let matches =
            |tags: &Tags, strongly| current.is_some_and(|it| tags.match_what(it, strongly));
        let modified = current.and_then(|it| it.modified);
        let must = match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => matches(tags, true),
            (None, Some(date)) => modified.is_none_or(|modified| modified <= date),
            (None, None) => true,
        };
        let known = match (&self.if_none_match, self.if_modified_since) {
            (Some(tags), _) => matches(tags, false),
            (None, Some(date)) => modified.is_some_and(|modified| modified <= date),
            (None, None) => false,
        };
        match (must, known) {
            (false, _) => Verdict::Fail,
            (true, true) => Verdict::Known,
            (true, false) => Verdict::Hold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tags() {
        let list = |tags: &[&str]| Some(Tags(tags.iter().map(|tag| (*tag).to_owned()).collect()));
        for (value, expected) in [
            ("*", list(&["*"])),
            (" * ", list(&["*"])),
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
        use Verdict::{Fail, Hold, Known};
        let tag = "\"a\"";
        let list = |tag: &str| Tags::parse(tag);
        let object = |tag: &str| Current { tag: Some(tag.to_owned()), modified: Some(100) };
        // Nothing, that object, another, a page.
        let states = [None, Some(object(tag)), Some(object("\"b\"")), Some(Current::default())];
        // If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since; what becomes of each.
        for (if_match, if_unmodified_since, if_none_match, if_modified_since, expected) in [
            (None, None, None, None, [Hold, Hold, Hold, Hold]),
            (list("*"), None, None, None, [Fail, Hold, Hold, Hold]),
            (list(tag), None, None, None, [Fail, Hold, Fail, Fail]),
            (list(&format!("W/{tag}")), None, None, None, [Fail, Fail, Fail, Fail]),
            (None, None, list("*"), None, [Hold, Known, Known, Known]),
            (None, None, list(tag), None, [Hold, Known, Hold, Hold]),
            (None, None, list(&format!("W/{tag}")), None, [Hold, Known, Hold, Hold]),
            (None, Some(99), None, None, [Hold, Fail, Fail, Hold]),
            (None, Some(100), None, None, [Hold, Hold, Hold, Hold]),
            (None, None, None, Some(99), [Hold, Hold, Hold, Hold]),
            (None, None, None, Some(100), [Hold, Known, Known, Hold]),
            // A tag goes before a date, in both pairs, and the first pair before the second.
            (list(tag), Some(99), None, None, [Fail, Hold, Fail, Fail]),
            (None, None, list("\"x\""), Some(100), [Hold, Hold, Hold, Hold]),
            (None, Some(99), list(tag), None, [Hold, Fail, Fail, Hold]),
            (list(tag), None, list(tag), None, [Fail, Known, Fail, Fail]),
        ] {
            let conditions =
                Conditions { if_match, if_none_match, if_unmodified_since, if_modified_since };
            let found = states.each_ref().map(|current| conditions.judge(current.as_ref()));
            assert_eq!(found, expected, "{conditions:?}");
        }
    }
}
