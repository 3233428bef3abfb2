//! A box that scrolls by itself, so that a wide table does not make the page wide.

use maud::{Markup, html};

/// Around a table; `names` are the ids of what it is called by.
pub(super) fn scroll(names: &str, table: &Markup) -> Markup {
    of_class("scroll", names, table)
}

/// The same, which may be wider than the text where the window is.
pub(super) fn wide(names: &str, table: &Markup) -> Markup {
    of_class("scroll wide", names, table)
}

/// A group, no region: a page of hundreds of landmarks has none.
fn of_class(class: &str, names: &str, table: &Markup) -> Markup {
    html! { div class=(class) role="group" aria-labelledby=(names) tabindex="0" { (table) } }
}
