//! Random operations by one client, against a model; proxyd's soak has many at once.

use std::collections::BTreeMap;

use crate::common::{Daemon, Peer, bytes, scratch};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Operations of the long walk.
const OPERATIONS: usize = 10_000;

#[derive(Debug, Clone)]
enum Operation {
    Put { key: usize, seed: u64, size: usize, chunked: bool },
    PutIfAbsent { key: usize, seed: u64 },
    PutIfSame { key: usize, seed: u64, stale: bool },
    Get { key: usize },
    GetRange { key: usize, from: usize, count: usize },
    GetUnlessSame { key: usize },
    Head { key: usize },
    Delete { key: usize },
    DeleteIfSame { key: usize, stale: bool },
    List { prefix: usize, limit: usize },
}

const KEYS: [&str; 10] = ["a", "a/b", "a/b/c", "a-", "b", "b/1", "b/2", "c/d/e/f", "é", "z z"];

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..KEYS.len();
    let seed = 0_u64..1000;
    let size =
        prop_oneof![4 => 0_usize..2000, 2 => 16_000_usize..17_000, 1 => 65_000_usize..200_000];
    prop_oneof![
        8 => (key.clone(), seed.clone(), size, any::<bool>())
            .prop_map(|(key, seed, size, chunked)| Operation::Put { key, seed, size, chunked }),
        2 => (key.clone(), seed.clone())
            .prop_map(|(key, seed)| Operation::PutIfAbsent { key, seed }),
        2 => (key.clone(), seed, any::<bool>())
            .prop_map(|(key, seed, stale)| Operation::PutIfSame { key, seed, stale }),
        10 => key.clone().prop_map(|key| Operation::Get { key }),
        6 => (key.clone(), 0_usize..70_000, 1_usize..70_000)
            .prop_map(|(key, from, count)| Operation::GetRange { key, from, count }),
        3 => key.clone().prop_map(|key| Operation::GetUnlessSame { key }),
        3 => key.clone().prop_map(|key| Operation::Head { key }),
        3 => key.clone().prop_map(|key| Operation::Delete { key }),
        1 => (key.clone(), any::<bool>())
            .prop_map(|(key, stale)| Operation::DeleteIfSame { key, stale }),
        3 => (key, 1_usize..12).prop_map(|(prefix, limit)| Operation::List { prefix, limit }),
    ]
}

/// What must be there: content and tag.
type Model = BTreeMap<&'static str, (Vec<u8>, String)>;

fn path(key: &str) -> String {
    let encode = |byte: u8| match byte {
        b'/' => "/".to_owned(),
        byte => format!("%{byte:02x}"),
    };
    format!("/{}", key.bytes().map(encode).collect::<String>())
}

fn put(client: &mut Peer, model: &mut Model, key: usize, headers: &str, body: Vec<u8>) {
    let new = !model.contains_key(KEYS[key]);
    let got = client.request("PUT", &path(KEYS[key]), headers, &body);
    assert_eq!(got.status, if new { 201 } else { 204 });
    model.insert(KEYS[key], (body, got.etag().to_owned()));
}

fn tag(model: &Model, key: usize, stale: bool) -> String {
    match model.get(KEYS[key]) {
        Some((_, tag)) if !stale => tag.clone(),
        _ => "\"stale\"".to_owned(),
    }
}

fn step(client: &mut Peer, model: &mut Model, operation: &Operation) {
    match *operation {
        Operation::Put { key, seed, size, chunked: false } => {
            put(client, model, key, "", bytes(seed, size));
        }
        Operation::Put { key, seed, size, chunked: true } => {
            let (new, body) = (!model.contains_key(KEYS[key]), bytes(seed, size));
            let mut all = format!(
                "PUT {} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
                path(KEYS[key])
            )
            .into_bytes();
            for chunk in body.chunks(seed as usize * 50 + 1) {
                all.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                all.extend_from_slice(chunk);
                all.extend_from_slice(b"\r\n");
            }
            all.extend_from_slice(b"0\r\n\r\n");
            client.send(&all);
            let got = client.answer().unwrap();
            assert_eq!(got.status, if new { 201 } else { 204 });
            model.insert(KEYS[key], (body, got.etag().to_owned()));
        }
        Operation::PutIfAbsent { key, seed } => {
            let headers = "If-None-Match: *\r\nExpect: 100-continue\r\n";
            let head = format!(
                "PUT {} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n{headers}\r\n",
                path(KEYS[key])
            );
            client.send(head.as_bytes());
            let got = client.answer().unwrap();
            if model.contains_key(KEYS[key]) {
                assert_eq!(got.status, 412);
            } else {
                assert_eq!(got.status, 100);
                client.send(bytes(seed, 9));
                let got = client.answer().unwrap();
                assert_eq!(got.status, 201);
                model.insert(KEYS[key], (bytes(seed, 9), got.etag().to_owned()));
            }
        }
        Operation::PutIfSame { key, seed, stale } => {
            let headers = format!("If-Match: {}\r\n", tag(model, key, stale));
            if model.contains_key(KEYS[key]) && !stale {
                put(client, model, key, &headers, bytes(seed, 77));
            } else {
                let got = client.request("PUT", &path(KEYS[key]), &headers, b"refused");
                assert_eq!(got.status, 412);
            }
        }
        Operation::Delete { key } => {
            let there = model.remove(KEYS[key]).is_some();
            assert_eq!(client.delete(&path(KEYS[key])).status, if there { 204 } else { 404 });
        }
        Operation::DeleteIfSame { key, stale } => {
            let headers = format!("If-Match: {}\r\n", tag(model, key, stale));
            let right = model.contains_key(KEYS[key]) && !stale;
            let got = client.request("DELETE", &path(KEYS[key]), &headers, b"");
            assert_eq!(got.status, if right { 204 } else { 412 });
            if right {
                model.remove(KEYS[key]);
            }
        }
        Operation::List { prefix, limit } => list(client, model, KEYS[prefix], limit),
        _ => read(client, model, operation),
    }
}

fn read(client: &mut Peer, model: &Model, operation: &Operation) {
    let (key, method, headers) = match *operation {
        Operation::Get { key } => (key, "GET", String::new()),
        Operation::Head { key } => (key, "HEAD", String::new()),
        Operation::GetUnlessSame { key } => {
            (key, "GET", format!("If-None-Match: {}\r\n", tag(model, key, false)))
        }
        Operation::GetRange { key, from, count } => {
            (key, "GET", format!("Range: bytes={from}-{}\r\n", from + count - 1))
        }
        _ => unreachable!("not a read"),
    };
    let got = client.request(method, &path(KEYS[key]), &headers, b"");
    let Some((content, tag)) = model.get(KEYS[key]) else {
        assert_eq!(got.status, 404);
        return;
    };
    assert_eq!(got.etag(), tag);
    match *operation {
        Operation::Get { .. } => assert!(got.status == 200 && got.body == *content),
        Operation::Head { .. } => {
            assert_eq!(got.header("content-length"), Some(&*content.len().to_string()));
        }
        Operation::GetUnlessSame { .. } => assert_eq!(got.status, 304),
        Operation::GetRange { from, count, .. } if from < content.len() => {
            let end = (from + count).min(content.len());
            assert!(got.status == 206 && got.body == content[from..end]);
        }
        _ => assert_eq!(got.status, 416),
    }
}

fn list(client: &mut Peer, model: &Model, prefix: &str, limit: usize) {
    let encoded = path(prefix).split_off(1).replace('/', "%2f");
    let got = client.get(&format!("/?prefix={encoded}&limit={limit}"));
    let json: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
    let matching: Vec<_> = model.iter().filter(|(key, _)| key.starts_with(prefix)).collect();
    let found = json["objects"].as_array().unwrap();
    assert_eq!(found.len(), matching.len().min(limit));
    for (object, (key, (content, tag))) in found.iter().zip(&matching) {
        assert_eq!(object["key"], **key);
        assert_eq!(object["bytes"], content.len());
        assert_eq!(object["etag"], *tag);
    }
    assert_eq!(json["next"].is_string(), matching.len() > limit);
}

/// One long walk, by one connection where the daemon keeps it, with a crash now and then.
#[test]
fn ten_thousand_operations_and_a_model() {
    let dir = scratch();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut daemon = Daemon::start(dir.path(), &["--open-objects", "3"]);
    let mut client = daemon.client();
    let mut model = Model::new();
    for at in 0..OPERATIONS {
        let operation = operation().new_tree(&mut runner).unwrap().current();
        step(&mut client, &mut model, &operation);
        // A refused PUT ends its connection.
        if matches!(operation, Operation::PutIfAbsent { .. } | Operation::PutIfSame { .. }) {
            client = daemon.client();
        }
        if at % 2_500 == 2_499 {
            drop(client);
            daemon.kill();
            daemon = Daemon::start(dir.path(), &[]);
            client = daemon.client();
        }
    }
    for key in 0..KEYS.len() {
        read(&mut client, &model, &Operation::Get { key });
    }
    list(&mut client, &model, "", 1000);
    assert_eq!((daemon.list().len(), daemon.blobs()), (model.len(), model.len()));
}
