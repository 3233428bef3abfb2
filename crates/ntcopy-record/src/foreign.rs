//! Text that somebody else wrote, made safe to print.
//!
//! A terminal obeys escape sequences, a bidirectional override shows words in another order than
//! the bytes have, and a line feed forges a line (CWE-150). [`crate::Record::parse`] passes every
//! string of a record through [`visible`], so what a record says is safe wherever it is written.
//! Other text from outside (names of files and nodes, lines of another program) goes through
//! [`visible`] or [`visible_lines`] where it is read. A renderer whose format has signs of its own
//! quotes those: [`markdown`], and maud for HTML.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// One line: every character that is not seen, or that moves others, becomes `\u{1b}` and the like.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden, unicode)
}

/// Lines: as [`visible`], but line feeds and tabs stay.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden_in_lines, unicode)
}

fn unicode(c: char) -> String {
    c.escape_unicode().collect()
}

/// What a program prints: as [`visible_lines`], but as `\u001b`, which is right in JSON, too.
#[must_use]
pub fn visible_output(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden_in_lines, |c| {
        c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

fn is_hidden_in_lines(c: char) -> bool {
    c != '\n' && c != '\t' && is_hidden(c)
}

/// A cell or a line of Markdown: as [`visible`], and nothing in it ends a cell or begins markup.
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_hidden(c) => out.extend(c.escape_unicode()),
            '|' | '\\' | '`' | '*' | '[' | ']' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

/// A value of JSON whose strings and names are all [`visible`].
#[must_use]
pub fn visible_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(&text).into_owned()),
        Value::Array(list) => list.into_iter().map(visible_value).collect(),
        Value::Object(map) => {
            let pairs = map.into_iter();
            let pairs =
                pairs.map(|(name, value)| (visible(&name).into_owned(), visible_value(value)));
            Value::Object(pairs.collect::<Map<String, Value>>())
        }
        plain => plain,
    }
}

/// Whether a text of JSON can have anything for [`visible_value`] to do: only an escape or a byte
/// beyond printable ASCII can stand for a hidden character.
pub(crate) fn may_hide(json: &[u8]) -> bool {
    json.iter().any(|byte| !matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t') || *byte == b'\\')
}

/// Control characters, line and paragraph separators, and what has no width or turns the
/// direction of writing.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn escaped(
    text: &str,
    is_escaped: fn(char) -> bool,
    as_escape: fn(char) -> String,
) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) {
            out.push_str(&as_escape(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_seen_and_words_stay() {
        assert_eq!(
            visible("\x1b]0;t\x07\u{9b}31mred\x7f"),
            "\\u{1b}]0;t\\u{7}\\u{9b}31mred\\u{7f}"
        );
        assert_eq!(visible("a\nb\tc\r\0"), "a\\u{a}b\\u{9}c\\u{d}\\u{0}");
        assert_eq!(
            visible("\u{202e}nt\u{2066}\u{2028}\u{2029}"),
            "\\u{202e}nt\\u{2066}\\u{2028}\\u{2029}"
        );
        assert_eq!(visible("nt\u{200b}\u{feff}"), "nt\\u{200b}\\u{feff}");
        assert_eq!(visible_lines("a\nb\x1b\tc\n"), "a\nb\\u{1b}\tc\n");
        assert_eq!(visible_output("a\n\x1b\u{e0041}\t\n"), "a\n\\u001b\\udb40\\udc41\t\n");
        let json = serde_json::json!("\u{202e}\u{9b}\u{e0041}").to_string();
        let read: String = serde_json::from_str(&visible_output(&json)).unwrap();
        assert_eq!(read, "\u{202e}\u{9b}\u{e0041}");
        assert!(matches!(visible("12 µs, 日本, \\u{1b}"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_line_of_markdown_forges_no_row_and_no_markup() {
        let forged = "a | 9x |\n| b <script> `c` [d](e) *f* \\| &lt;";
        assert_eq!(
            markdown(forged),
            "a \\| 9x \\|\\u{a}\\| b &lt;script&gt; \\`c\\` \\[d\\](e) \\*f\\* \\\\\\| &amp;lt;"
        );
    }

    proptest! {
        #[test]
        fn json_is_seen_to_hide_whatever_its_strings_hide(text in any::<String>(), name in "\\PC*") {
            let value = serde_json::json!({ name: [text] });
            let seen = visible_value(value.clone());
            prop_assert!(seen == value || may_hide(value.to_string().as_bytes()));
            let text = seen.to_string();
            prop_assert_eq!(visible(&text), text.as_str());
        }
    }
}
