//! A multiget, and where the values lie in its answer.

use super::{Protocol, Value, unexpected};
use crate::experiments::app::plan::{App, Data};
use crate::run::Failure;

const MULTIGETS: u64 = 8;

/// A multiget of values that are all of the same size.
pub struct Multiget {
    pub request: Vec<u8>,
    /// What is asked for, in this order.
    pub values: Vec<Value>,
    /// Those of the whole answer.
    pub bytes: usize,
    app: App,
    /// What the answer begins with, the first value's head included.
    beginning: Vec<u8>,
    /// Where the first value's head begins.
    first: usize,
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
    pub fn all(app: App, data: &Data) -> Vec<Multiget> {
        let step = (data.small_keys / MULTIGETS).max(1);
        let starts = (0..MULTIGETS).map(|number| number * step % data.small_keys);
        starts
            .map(|start| {
                let keys = (start..start + data.multiget).map(|key| key % data.small_keys);
                let values: Vec<Value> = keys.map(|key| data.small(key)).collect();
                Multiget::new(app, values)
            })
            .collect()
    }

    pub fn new(app: App, values: Vec<Value>) -> Multiget {
        let protocol = app.protocol();
        let mut beginning = protocol.opening(values.len());
        let first = beginning.len();
        let head = protocol.head(&values[0]);
        let stride = head.len() + values[0].bytes as usize + protocol.line_end().len();
        beginning.extend(head);
        let bytes =
            first + stride * values.len() + protocol.tail().len() - protocol.line_end().len();
        let request = protocol.multiget(&values);
        Multiget { request, values, bytes, app, beginning, first, stride }
    }

    /// Looks at what has come, and says whether it is all. A wrong beginning fails at once:
    /// the rest of such an answer may never come.
    pub fn is_whole(&self, answer: &[u8], came: &mut Came) -> Result<bool, Failure> {
        if !came.has_begun {
            let both = came.bytes.min(self.beginning.len());
            if answer[..both] != self.beginning[..both] {
                return Err(unexpected(self.app, &self.values[0], &answer[..came.bytes]));
            }
            came.has_begun = both == self.beginning.len();
        }
        Ok(came.bytes == self.bytes)
    }

    /// Compares one value of a whole answer with its head, and the answer's end.
    pub fn compare(&self, answer: &[u8], at: usize) -> Result<(), Failure> {
        let at = at % self.values.len();
        let value = &self.values[at];
        let protocol: &dyn Protocol = self.app.protocol();
        let whole = &answer[self.first + at * self.stride..][..self.stride];
        match whole.strip_prefix(&protocol.head(value)[..]) {
            Some(rest) if answer.ends_with(protocol.tail()) => {
                value.compare(0, &rest[..rest.len() - protocol.line_end().len()])
            }
            _ => Err(unexpected(self.app, value, whole)),
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
        for app in App::ALL.iter().copied() {
            let all = Multiget::all(app, &DATA);
            let mut asked = [0; 512];
            for multiget in &all {
                let right = answer(app, multiget);
                let came = &mut came(right.len());
                assert!(multiget.is_whole(&right, came).unwrap(), "{app}");
                for at in 0..multiget.values.len() {
                    asked[multiget.values[at].number as usize] += 1;
                    multiget.compare(&right, at).unwrap();
                }
                let mut wrong = right;
                wrong[100] ^= 1;
                let failure = multiget.compare(&wrong, 0).unwrap_err();
                assert!(matches!(failure, Failure::WrongByte(_)), "{app}: {failure}");
                assert!(multiget.compare(&wrong, 1).is_ok());
            }
            assert!(asked.iter().all(|times| (1..=2).contains(times)), "{asked:?}");
        }
    }

    #[test]
    fn an_answer_that_begins_otherwise_is_told_before_the_rest_comes() {
        for app in App::ALL.iter().copied() {
            let multiget = &Multiget::all(app, &DATA)[0];
            let right = answer(app, multiget);
            let mut came = came(3);
            assert!(!multiget.is_whole(&right, &mut came).unwrap());
            came.bytes = 60;
            assert!(!multiget.is_whole(&right, &mut came).unwrap());
            let refused = b"-ERR nothing here\r\n";
            let mut came = Came { bytes: refused.len(), ..Came::default() };
            let failure = multiget.is_whole(refused, &mut came).unwrap_err();
            assert!(matches!(&failure, Failure::Answer(_)), "{app}: {failure}");
        }
    }
}
