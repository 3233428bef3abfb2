//! A multiget, and where the values lie in its answer.

use super::{Head, MOST_HEAD_BYTES, Protocol, Value, unexpected};
use crate::experiments::app::plan::{App, Data};
use crate::run::Failure;

const MULTIGETS: u64 = 8;

/// A multiget of values that are all of the same size.
pub struct Multiget {
    pub request: Vec<u8>,
    /// What is asked for, in this order.
    pub values: Vec<Value>,
    pub most_bytes: usize,
    app: App,
    shape: Shape,
}

enum Shape {
    Known {
        /// What it begins with, the first value's head included.
        beginning: Vec<u8>,
        /// Where the first value's head begins.
        first: usize,
        /// The bytes from one value's head to the next one's.
        stride: usize,
    },
    /// Nothing: each value's head has to be read to see where it ends.
    Unknown,
}

#[derive(Debug, Default)]
pub struct Came {
    pub bytes: usize,
    has_begun: bool,
    /// Where values lie that came with their heads, if that was not known.
    bodies: Vec<usize>,
    next: usize,
}

impl Came {
    /// Nothing, of the next answer.
    pub fn clear(&mut self) {
        self.bodies.clear();
        *self = Came { bodies: std::mem::take(&mut self.bodies), ..Came::default() };
    }
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
        let request = protocol.multiget(&values);
        let value_bytes = values.first().map_or(0, |value| value.bytes as usize);
        let mut beginning = protocol.opening(values.len());
        let first = beginning.len();
        let (most_bytes, shape) = match values.first().map(|value| protocol.head(value)) {
            Some(Head::Response { .. }) => {
                ((MOST_HEAD_BYTES + value_bytes) * values.len(), Shape::Unknown)
            }
            Some(Head::Exact(head)) => {
                let stride = head.len() + value_bytes + protocol.line_end().len();
                let end = protocol.tail().len() - protocol.line_end().len();
                beginning.extend(head);
                let bytes = first + stride * values.len() + end;
                (bytes, Shape::Known { beginning, first, stride })
            }
            None => (0, Shape::Unknown),
        };
        Multiget { request, values, most_bytes, app, shape }
    }

    /// Looks at what has come, and says whether it is all. A wrong beginning fails at once:
    /// the rest of such an answer may never come.
    pub fn is_whole(&self, answer: &[u8], came: &mut Came) -> Result<bool, Failure> {
        let Shape::Known { beginning, .. } = &self.shape else {
            return self.has_all_heads(answer, came);
        };
        if !came.has_begun {
            let both = came.bytes.min(beginning.len());
            if answer[..both] != beginning[..both] {
                return Err(unexpected(self.app, &self.values[0], &answer[..came.bytes]));
            }
            came.has_begun = both == beginning.len();
        }
        Ok(came.bytes == self.most_bytes)
    }

    /// Reads heads as far as their values have come, too; whether that was all.
    fn has_all_heads(&self, answer: &[u8], came: &mut Came) -> Result<bool, Failure> {
        while let Some(value) = self.values.get(came.bodies.len()) {
            let rest = &answer[came.next..came.bytes];
            let end = match self.app.protocol().head(value).end(rest) {
                Ok(Some(end)) => end,
                Ok(None) => return Ok(false),
                Err(_) => return Err(unexpected(self.app, value, rest)),
            };
            let next = came.next + end + value.bytes as usize;
            if next > came.bytes {
                return Ok(false);
            }
            came.bodies.push(came.next + end);
            came.next = next;
        }
        match (&answer[came.next..came.bytes], self.values.last()) {
            ([], _) | (_, None) => Ok(true),
            (more, Some(last)) => Err(unexpected(self.app, last, more)),
        }
    }

    /// Compares one value of a whole answer with its head, and the answer's end.
    pub fn compare(&self, answer: &[u8], came: &Came, at: usize) -> Result<(), Failure> {
        let at = at % self.values.len();
        let value = &self.values[at];
        let (first, stride) = match &self.shape {
            Shape::Known { first, stride, .. } => (*first, *stride),
            // Its head was compared to find it.
            Shape::Unknown => {
                let body = came.bodies[at];
                return value.compare(0, &answer[body..body + value.bytes as usize]);
            }
        };
        let protocol: &dyn Protocol = self.app.protocol();
        let whole = &answer[first + at * stride..][..stride];
        match protocol.head(value).end(whole) {
            Ok(Some(head)) if answer.ends_with(protocol.tail()) => {
                value.compare(0, &whole[head..stride - protocol.line_end().len()])
            }
            _ => Err(unexpected(self.app, value, whole)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::DATA;
    use super::*;
    use crate::run::pattern;

    /// The answer that a right server gives.
    fn answer(app: App, multiget: &Multiget) -> Vec<u8> {
        let protocol = app.protocol();
        let mut answer = protocol.opening(multiget.values.len());
        for value in &multiget.values {
            answer.extend(match protocol.head(value) {
                Head::Exact(head) => head,
                Head::Response { bytes } => {
                    let (host, key) = ("Server: any\r\n", value.key());
                    format!(
                        "HTTP/1.1 200 OK\r\n{host}ETag: {key}\r\nContent-Length: {bytes}\r\n\r\n"
                    )
                    .into_bytes()
                }
            });
            let mut bytes = vec![0; value.bytes as usize];
            pattern::fill(value.seed(), 0, &mut bytes);
            answer.extend(bytes);
            answer.extend(protocol.line_end());
        }
        answer.extend(&protocol.tail()[protocol.line_end().len()..]);
        answer
    }

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
                    multiget.compare(&right, came, at).unwrap();
                }
                let mut wrong = right;
                wrong[100] ^= 1;
                let failure = multiget.compare(&wrong, came, 0).unwrap_err();
                assert!(matches!(failure, Failure::WrongByte(_)), "{app}: {failure}");
                assert!(multiget.compare(&wrong, came, 1).is_ok());
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
