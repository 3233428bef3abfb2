//! Random operations by one client, against a model; proxyd's soak has many at once.

use std::collections::BTreeMap;
use std::fs;

use fastrand::Rng;

use crate::common::{Daemon, Peer, bytes, in_chunks, scratch};

/// Operations of the long walk.
const OPERATIONS: usize = 10_000;

const KEYS: [&str; 10] = ["a", "a/b", "a/b/c", "a-", "b", "b/1", "b/2", "c/d/e/f/g/h", "é", "z z"];

/// What must be there: content and tag.
type Model = BTreeMap<&'static str, (Vec<u8>, String)>;

fn path(key: &str) -> String {
    let encode = |byte: u8| match byte {
        b'/' => "/".to_owned(),
        byte => format!("%{byte:02x}"),
    };
    format!("/{}", key.bytes().map(encode).collect::<String>())
}

/// Around the sizes at which the daemon changes its ways.
fn content(random: &mut Rng) -> Vec<u8> {
    let size = match random.u8(..7) {
        0..4 => random.usize(..2000),
        4..6 => random.usize(16_000..17_000),
        _ => random.usize(65_000..200_000),
    };
    bytes(random.u64(..1000), size)
}

/// A PUT, in one of its forms; whether its connection goes on.
fn put(client: &mut Peer, model: &mut Model, key: &'static str, random: &mut Rng) -> bool {
    let (old, body) = (model.get(key).map(|(_, tag)| tag.clone()), content(random));
    let (may, got) = match random.u8(..12) {
        0..4 => (true, client.put(&path(key), &body)),
        4..8 => {
            let head = "HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
            client.send(format!("PUT {} {head}", path(key)));
            client.send(in_chunks(&body, random.usize(1..50_000)));
            (true, client.answer().unwrap())
        }
        8..10 => {
            let length = body.len();
            client.send(format!(
                "PUT {} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\nIf-None-Match: *\r\n\
                 Expect: 100-continue\r\n\r\n",
                path(key)
            ));
            let mut got = client.answer().unwrap();
            if got.status == 100 {
                assert!(old.is_none(), "what will not be taken is not asked for");
                client.send(&body);
                got = client.answer().unwrap();
            }
            (old.is_none(), got)
        }
        kind => {
            let tag = old.clone().filter(|_| kind == 10).unwrap_or("\"stale\"".to_owned());
            let lines = format!("If-Match: {tag}\r\n");
            (Some(tag) == old, client.request("PUT", &path(key), &lines, &body))
        }
    };
    let right = if old.is_some() { 204 } else { 201 };
    assert_eq!(got.status, if may { right } else { 412 });
    if may {
        model.insert(key, (body, got.etag().to_owned()));
    }
    may
}

fn read(client: &mut Peer, model: &Model, key: &str, random: &mut Rng) {
    let known = model.get(key);
    let (from, count) = (random.usize(..70_000), random.usize(1..70_000));
    let kind = random.u8(..22);
    let (method, lines) = match kind {
        0..10 => ("GET", String::new()),
        10..16 => ("GET", format!("Range: bytes={from}-{}\r\n", from + count - 1)),
        16..19 => ("HEAD", String::new()),
        _ => ("GET", format!("If-None-Match: {}\r\n", known.map_or("\"x\"", |(_, tag)| tag))),
    };
    let got = client.request(method, &path(key), &lines, b"");
    let Some((content, tag)) = known else { return assert_eq!(got.status, 404) };
    assert_eq!(got.etag(), tag);
    match kind {
        0..10 => assert!(got.status == 200 && got.body == *content),
        10..16 if from < content.len() => {
            let end = (from + count).min(content.len());
            assert!(got.status == 206 && got.body == content[from..end]);
        }
        10..16 => assert_eq!(got.status, 416),
        16..19 => assert_eq!(got.header("content-length"), Some(&*content.len().to_string())),
        _ => assert_eq!(got.status, 304),
    }
}

fn delete(client: &mut Peer, model: &mut Model, key: &str, random: &mut Rng) {
    let is_there = model.contains_key(key);
    let (lines, status) = match random.u8(..4) {
        0 => ("If-Match: \"stale\"\r\n".to_owned(), 412),
        1 if is_there => (format!("If-Match: {}\r\n", model[key].1), 204),
        _ => (String::new(), if is_there { 204 } else { 404 }),
    };
    assert_eq!(client.request("DELETE", &path(key), &lines, b"").status, status);
    if status == 204 {
        model.remove(key);
    }
}

/// All pages of that many objects.
fn list(client: &mut Peer, model: &Model, prefix: &str, limit: usize) {
    let encoded = |key: &str| path(key).split_off(1).replace('/', "%2f");
    let mut left = model.iter().filter(|(key, _)| key.starts_with(prefix)).peekable();
    let mut after = String::new();
    loop {
        let (prefix, from) = (encoded(prefix), encoded(&after));
        let got = client.get(&format!("/?prefix={prefix}&after={from}&limit={limit}"));
        let json: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
        let found = json["objects"].as_array().unwrap();
        for object in found {
            let (key, (content, tag)) = left.next().unwrap();
            assert_eq!(object["key"], **key);
            assert_eq!(object["bytes"], content.len());
            assert_eq!(object["etag"], *tag);
        }
        let Some(next) = json["next"].as_str() else { break };
        assert!(found.len() == limit && left.peek().is_some());
        after = next.to_owned();
    }
    assert!(left.next().is_none());
}

/// One long walk, by one connection where the daemon keeps it, with a crash now and then.
#[test]
fn ten_thousand_operations_and_a_model() {
    let (dir, mut random) = (scratch(), Rng::with_seed(7));
    let mut daemon = Daemon::start(dir.path(), &["--open-objects", "3"]);
    let (mut client, mut model) = (daemon.client(), Model::new());
    for at in 0..OPERATIONS {
        let key = KEYS[random.usize(..KEYS.len())];
        match random.u8(..41) {
            0..12 => {
                if !put(&mut client, &mut model, key, &mut random) {
                    client = daemon.client();
                }
            }
            12..34 => read(&mut client, &model, key, &mut random),
            34..38 => delete(&mut client, &mut model, key, &mut random),
            _ => list(&mut client, &model, key, random.usize(1..12)),
        }
        if at % 2_500 == 2_499 {
            drop(client);
            daemon.kill();
            daemon = Daemon::start(dir.path(), &[]);
            client = daemon.client();
        }
    }
    for (key, (content, _)) in &model {
        assert!(client.get(&path(key)).body == *content);
    }
    list(&mut client, &model, "", 1000);
    daemon.wait_for_blobs(model.len(), "a file for each object");
    // Keys that are deleted leave nothing that a list or a start would have to walk through.
    for key in model.keys() {
        assert_eq!(client.delete(&path(key)).status, 204);
    }
    assert_eq!((daemon.list().len(), daemon.blobs()), (0, 0));
    assert_eq!(
        fs::read_dir(daemon.data()).unwrap().count(),
        3,
        "an index, spare room and an empty folder"
    );
}
