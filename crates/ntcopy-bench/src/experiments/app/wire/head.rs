//! What stands before a value's bytes in an answer.

use crate::run::response_end;

/// The longest head, of any program.
pub const MOST_HEAD_BYTES: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    Exact(Vec<u8>),
    /// The head of a good HTTP response, with a body of this number of bytes.
    Response {
        bytes: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTheHead;

impl Head {
    /// How many of these bytes it takes; none while it has not come as a whole.
    pub fn end(&self, came: &[u8]) -> Result<Option<usize>, NotTheHead> {
        match self {
            Head::Exact(right) => {
                let both = came.len().min(right.len());
                if came[..both] != right[..both] {
                    return Err(NotTheHead);
                }
                Ok((both == right.len()).then_some(both))
            }
            Head::Response { bytes } => match response_end(came, *bytes) {
                Ok(Some(end)) if end <= MOST_HEAD_BYTES => Ok(Some(end)),
                Ok(None) if came.len() < MOST_HEAD_BYTES => Ok(None),
                _ => Err(NotTheHead),
            },
        }
    }

    /// How many bytes to read, at most, after this number of bytes.
    pub fn most_left(&self, came: usize) -> usize {
        let most = match self {
            Head::Exact(right) => right.len(),
            Head::Response { .. } => MOST_HEAD_BYTES,
        };
        most.saturating_sub(came)
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

    #[test]
    fn a_response_has_the_status_and_the_length_that_are_expected() {
        let head = Head::Response { bytes: 3 };
        let right = b"HTTP/1.1 200 OK\r\nServer: any\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(head.end(&[&right[..], b"abc"].concat()), Ok(Some(right.len())));
        assert_eq!(head.end(&right[..20]), Ok(None));
        for wrong in [
            &b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"VALUE s00000001 0 3\r\n",
        ] {
            assert_eq!(head.end(wrong), Err(NotTheHead), "{}", String::from_utf8_lossy(wrong));
        }
        let endless = [&right[..30], &[b'x'; MOST_HEAD_BYTES]].concat();
        assert_eq!(head.end(&endless), Err(NotTheHead));
    }
}
