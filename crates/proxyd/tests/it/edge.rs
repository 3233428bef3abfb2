//! What a listener lets in, and what the backend gets of it.

use std::os::unix::fs::PermissionsExt;

use proxyd::config::Config;
use proxyd::net::Address;
use proxyd::policy::Edge;

use crate::common::{Backend, connect, pattern, proxy};

fn shut(config: &mut Config) {
    config.edge = Edge::default();
}

#[test]
fn the_daemons_pages_and_the_list_of_keys_are_not_public() {
    let backend = Backend::standard();
    let server = proxy(&backend, shut);
    for path in ["/_/stat", "/%5f/stat", "//_/stat", "/a/../_/stat", "/", "/?prefix=a", "/."] {
        let mut client = connect(&server);
        let answer = client.get(path);
        assert_eq!((answer.status, answer.header("connection")), (403, Some("close")), "{path}");
        assert!(String::from_utf8(answer.body).unwrap().contains("not public"), "{path}");
    }
    assert!(backend.heads().is_empty());
    assert_eq!(connect(&server).get("/length/3").body, pattern(3));
    let server = proxy(&backend, |config| {
        config.edge = Edge { lists: Some(true), hidden: Some(Vec::new()), ..Edge::default() };
    });
    for path in ["/_/stat", "/", "/?prefix=a"] {
        assert_eq!(connect(&server).get(path).status, 200, "{path}");
    }
}

#[test]
fn listeners_differ_in_methods_and_paths() {
    let backend = Backend::standard();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let server = proxy(&backend, |config| {
        config.edge = Edge {
            methods: Some(vec!["GET".to_owned()]),
            paths: Some(vec!["/length/".to_owned()]),
            ..Edge::default()
        };
        config.listen.push(Address::Unix(path.clone()).into());
        let inside = Edge {
            methods: Some(vec!["PUT".to_owned()]),
            paths: Some(vec!["/".to_owned()]),
            mode: Some("606".to_owned()),
            ..Edge::default()
        };
        config.listener.insert(format!("unix:{}", path.display()), inside);
    });
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o606);
    assert_eq!(connect(&server).get("/length/3").body, pattern(3));
    assert_eq!(connect(&server).get("/status/200").status, 403);
    let put = "PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello";
    let mut client = connect(&server);
    client.send(put);
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET")));
    let unix = || crate::common::Peer::new(std::os::unix::net::UnixStream::connect(&path).unwrap());
    let mut client = unix();
    client.send(put);
    assert_eq!(client.answer().unwrap().body, b"hello");
    assert_eq!(unix().get("/length/3").status, 405);
}

#[test]
fn a_table_for_an_address_that_is_not_listened_on_is_a_mistake() {
    let backend = Backend::standard();
    let mut config = crate::common::config(&backend);
    config.listener.insert("tcp:127.0.0.1:81".to_owned(), Edge::default());
    let error = config.check().unwrap_err().to_string();
    assert!(error.contains("nothing listens on tcp:127.0.0.1:81"), "{error}");
}

#[test]
fn nobody_is_believed_who_somebody_says_to_be() {
    let backend = Backend::standard();
    let claims = "X-Real-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\nX-Forwarded-Host: h\r\n\
                  X-Forwarded-Prefix: /a\r\nX_Forwarded_For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n\
                  CF-Connecting-IP: 6.6.6.6\r\nX-Original-URL: /_/stat\r\n";
    let server = proxy(&backend, |_| {});
    let mut client = connect(&server);
    client.send(format!("GET /head HTTP/1.1\r\nHost: t\r\nProxy: p:1\r\n{claims}\r\n"));
    let head = String::from_utf8(client.answer().unwrap().body).unwrap().to_lowercase();
    for said in ["6.6.6.6", "/_/stat", "x-forwarded-host", "prefix", "proxy:", "x_"] {
        assert!(!head.contains(said), "{said}: {head}");
    }
    assert!(head.contains("x-forwarded-for: 127.0.0.1\r\n"), "{head}");
}
