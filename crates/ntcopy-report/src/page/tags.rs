//! Markup in fewer bytes.

/// End tags that HTML lets its writer leave out, where this page has them: what follows, or the
/// end of the parent, closes these elements.
const OPTIONAL: [&str; 7] =
    ["</td>", "</th>", "</tr>", "</thead>", "</tbody>", "</caption>", "</li>"];

/// A page without the end tags that a reader of HTML puts back by itself: in a page of tables they
/// are a tenth of it. Text is escaped, so that what looks like a tag is one.
pub(super) fn without_optional(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find("</") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = if OPTIONAL.iter().any(|tag| rest.starts_with(tag)) { 0 } else { 2 };
        out.push_str(&rest[..kept]);
        let end = rest.find('>').map_or(rest.len(), |end| end + 1);
        rest = &rest[if kept == 0 { end } else { kept }..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_end_tags_that_are_optional_go() {
        let page = "<table><caption>a</caption><thead><tr><th>b</th></tr></thead><tbody><tr><td>\
                    <small>c</small></td></tr></tbody></table><ul><li>d &lt;/td&gt;</li></ul></main>";
        assert_eq!(
            without_optional(page),
            "<table><caption>a<thead><tr><th>b<tbody><tr><td><small>c</small></table><ul>\
             <li>d &lt;/td&gt;</ul></main>"
        );
    }
}
