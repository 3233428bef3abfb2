//! What stands before a value's bytes in an answer.

/// The longest head, of any program.
pub const MOST_HEAD_BYTES: usize = 1024;

/// What has to come before a value's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// These very bytes.
    Exact(Vec<u8>),
}

/// What came is not that head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTheHead;

impl Head {
    /// How many of these bytes it takes; none while it has not come as a whole.
    pub fn end(&self, came: &[u8]) -> Result<Option<usize>, NotTheHead> {
        let Head::Exact(right) = self;
        let both = came.len().min(right.len());
        if came[..both] != right[..both] {
            return Err(NotTheHead);
        }
        Ok((both == right.len()).then_some(both))
    }

    /// How many bytes to read, at most, after so many have come.
    pub fn most_left(&self, came: usize) -> usize {
        let Head::Exact(right) = self;
        right.len().saturating_sub(came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_where_all_of_it_has_come_and_a_wrong_one_at_once() {
        let head = Head::Exact(b"$3\r\n".to_vec());
        assert_eq!((head.end(b"$"), head.most_left(1)), (Ok(None), 3));
        assert_eq!((head.end(b"$3\r\nabc"), head.most_left(7)), (Ok(Some(4)), 0));
        assert_eq!(head.end(b"-"), Err(NotTheHead));
    }
}
