//! A multiget, and where the values lie in its answer.

use super::{LINE_END, TAIL, Value, get_all, head, unexpected};
use crate::experiments::app::Data;
use crate::run::Failure;

const MULTIGETS: u64 = 8;

/// A multiget of values that are all of the same size.
pub struct Multiget {
    pub request: Vec<u8>,
    /// What is asked for, in this order.
    pub values: Vec<Value>,
    /// Those of the whole answer.
    pub bytes: usize,
    /// What the answer begins with: the first value's head.
    beginning: Vec<u8>,
    /// The bytes from one value's head to the next one's.
    stride: usize,
}

#[derive(Debug, Default)]
pub struct Came {
    pub bytes: usize,
    has_begun: bool,
}

impl Multiget {
    /// Every one of them: neighbouring keys, each key in about as many of them.
    pub fn all(data: &Data) -> Vec<Multiget> {
        let step = (data.small_keys / MULTIGETS).max(1);
        let starts = (0..MULTIGETS).map(|number| number * step % data.small_keys);
        starts
            .map(|start| {
                let keys = (start..start + data.multiget).map(|key| key % data.small_keys);
                let values: Vec<Value> = keys.map(|key| data.small(key)).collect();
                Multiget::new(values)
            })
            .collect()
    }

    pub fn new(values: Vec<Value>) -> Multiget {
        let beginning = head(&values[0]);
        let line_end = LINE_END.len();
        let stride = beginning.len() + values[0].bytes as usize + line_end;
        let bytes = stride * values.len() + TAIL.len() - line_end;
        let request = get_all(&values);
        Multiget { request, values, bytes, beginning, stride }
    }

    /// Looks at what has come, and says whether it is all. A wrong beginning fails at once:
    /// the rest of such an answer may never come.
    pub fn is_whole(&self, answer: &[u8], came: &mut Came) -> Result<bool, Failure> {
        if !came.has_begun {
            let both = came.bytes.min(self.beginning.len());
            if answer[..both] != self.beginning[..both] {
                return Err(unexpected(&self.values[0], &answer[..came.bytes]));
            }
            came.has_begun = both == self.beginning.len();
        }
        Ok(came.bytes == self.bytes)
    }

    /// Compares one value of a whole answer with its head, and the answer's end.
    pub fn compare(&self, answer: &[u8], at: usize) -> Result<(), Failure> {
        let at = at % self.values.len();
        let value = &self.values[at];
        let whole = &answer[at * self.stride..][..self.stride];
        match whole.strip_prefix(&head(value)[..]) {
            Some(rest) if answer.ends_with(TAIL) => {
                value.compare(0, &rest[..rest.len() - LINE_END.len()])
            }
            _ => Err(unexpected(value, whole)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{DATA, answer};
    use super::*;

    fn came(bytes: usize) -> Came {
        Came { bytes, ..Came::default() }
    }

    #[test]
    fn an_answer_has_the_length_and_the_bytes_that_are_expected() {
        let mut asked = [0; 512];
        for multiget in &Multiget::all(&DATA) {
            let right = answer(multiget);
            let came = &mut came(right.len());
            assert!(multiget.is_whole(&right, came).unwrap());
            for at in 0..multiget.values.len() {
                asked[multiget.values[at].number as usize] += 1;
                multiget.compare(&right, at).unwrap();
            }
            let mut wrong = right;
            wrong[100] ^= 1;
            let failure = multiget.compare(&wrong, 0).unwrap_err();
            assert!(matches!(failure, Failure::WrongByte(_)), "{failure}");
            assert!(multiget.compare(&wrong, 1).is_ok());
        }
        assert!(asked.iter().all(|times| (1..=2).contains(times)), "{asked:?}");
    }

    #[test]
    fn an_answer_that_begins_otherwise_is_told_before_the_rest_comes() {
        let multiget = &Multiget::all(&DATA)[0];
        let right = answer(multiget);
        let mut came = came(3);
        assert!(!multiget.is_whole(&right, &mut came).unwrap());
        came.bytes = 60;
        assert!(!multiget.is_whole(&right, &mut came).unwrap());
        let refused = b"SERVER_ERROR nothing here\r\n";
        let mut came = Came { bytes: refused.len(), ..Came::default() };
        let failure = multiget.is_whole(refused, &mut came).unwrap_err();
        assert!(matches!(&failure, Failure::Answer(_)), "{failure}");
    }
}
