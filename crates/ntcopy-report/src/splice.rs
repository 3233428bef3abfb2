//! Putting a generated table into a document that people write.

/// The line before the generated part.
pub const BEGIN: &str = "<!-- table:begin -->";
/// The line after it.
pub const END: &str = "<!-- table:end -->";

/// Why a table could not be put into a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    #[error("there is no line `{0}`: put `{BEGIN}` and `{END}` where the table belongs")]
    Missing(&'static str),
    /// A marker is there more than once.
    #[error("`{0}` is there more than once: which table is meant?")]
    Doubled(&'static str),
    /// The end comes before the beginning.
    #[error("`{END}` comes before `{BEGIN}`")]
    Reversed,
}

/// The document with what lies between its markers replaced; the markers stay.
pub fn splice(document: &str, table: &str) -> Result<String, SpliceError> {
    let begin = only(document, BEGIN)? + BEGIN.len();
    let end = only(document, END)?;
    let (before, after) = (&document[..begin], &document[end..]);
    if end < begin {
        return Err(SpliceError::Reversed);
    }
    Ok(format!("{before}\n{}\n{after}", table.trim_matches('\n')))
}

fn only(document: &str, marker: &'static str) -> Result<usize, SpliceError> {
    let mut found = document.match_indices(marker);
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (None, _) => Err(SpliceError::Missing(marker)),
        (Some(_), Some(_)) => Err(SpliceError::Doubled(marker)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_is_replaced_and_a_second_time_changes_nothing() {
        let document = format!("# Title\n\n{BEGIN}\nold\n{END}\n\nmore\n");
        let once = splice(&document, "\n| a |\n").unwrap();
        assert_eq!(once, format!("# Title\n\n{BEGIN}\n| a |\n{END}\n\nmore\n"));
        assert_eq!(splice(&once, "| a |\n").unwrap(), once);
    }

    #[test]
    fn markers_must_be_there_once_and_in_order() {
        assert_eq!(splice("x", "t"), Err(SpliceError::Missing(BEGIN)));
        assert_eq!(splice(BEGIN, "t"), Err(SpliceError::Missing(END)));
        assert_eq!(splice(&format!("{END}{BEGIN}"), "t"), Err(SpliceError::Reversed));
        let twice = format!("{BEGIN}{END}{BEGIN}");
        assert_eq!(splice(&twice, "t"), Err(SpliceError::Doubled(BEGIN)));
    }
}
