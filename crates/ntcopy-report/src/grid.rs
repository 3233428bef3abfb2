//! A table of words, for whichever form it is printed in.

/// One table: what its rows have in common, its columns, its rows.
pub(crate) struct Grid {
    pub heading: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}
