//! RESP, the protocol of Redis, in its second version.

use super::{Protocol, Value, first_line, words};

pub struct Redis;

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

impl Protocol for Redis {
    fn get(&self, value: &Value) -> Vec<u8> {
        command(&["GET", &value.key()])
    }

    fn multiget(&self, values: &[Value]) -> Vec<u8> {
        let keys: Vec<String> = values.iter().map(Value::key).collect();
        let mut all = vec!["MGET"];
        all.extend(keys.iter().map(String::as_str));
        command(&all)
    }

    fn opening(&self, values: usize) -> Vec<u8> {
        format!("*{values}\r\n").into_bytes()
    }

    fn head(&self, value: &Value) -> Vec<u8> {
        format!("${}\r\n", value.bytes).into_bytes()
    }

    fn line_end(&self) -> &'static [u8] {
        b"\r\n"
    }

    fn tail(&self) -> &'static [u8] {
        b"\r\n"
    }

    /// An error begins with a minus; a null is a value that is not there.
    fn refusal(&self, answer: &[u8]) -> Option<String> {
        match first_line(answer) {
            [b'-', line @ ..] => Some(words(line)),
            b"$-1" => Some("no such key".to_owned()),
            _ => None,
        }
    }

    fn set(&self, value: &Value) -> (Vec<u8>, &'static [u8]) {
        let key = value.key();
        let before = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n", key.len(), value.bytes);
        (before.into_bytes(), b"\r\n")
    }

    fn stored(&self) -> &'static [u8] {
        b"+OK\r\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_tells_the_length_of_each_word() {
        let value = |number| Value { is_small: true, number, bytes: 3 };
        assert_eq!(Redis.get(&value(1)), b"*2\r\n$3\r\nGET\r\n$9\r\ns00000001\r\n");
        assert_eq!(
            Redis.multiget(&[value(1), value(2)]),
            b"*3\r\n$4\r\nMGET\r\n$9\r\ns00000001\r\n$9\r\ns00000002\r\n"
        );
        let (before, after) = Redis.set(&value(1));
        assert_eq!(before, b"*3\r\n$3\r\nSET\r\n$9\r\ns00000001\r\n$3\r\n");
        assert_eq!(after, b"\r\n");
    }
}
