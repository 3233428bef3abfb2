use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::metrics::Counter;
use crate::reply::Reply;
use crate::ticket::Counts;

/// Answers each request with its own head.
struct Echo;

impl Service for Echo {
    type Worker = ();

    const NAME: &'static str = "echo";

    fn report(&self, _: &mut Text) {}

    fn worker(self: &Arc<Self>, _: usize) {}

    async fn serve(_: Rc<()>, mut conn: Conn) {
        while let Some(Ok(head)) = conn.head(Duration::from_secs(60)).await {
            let reply = Reply::new(200, true).end_with(&conn.input.bytes[..head], false);
            conn.input.consume(head);
            if conn.stream.write_all(&reply).await.is_err() {
                return;
            }
        }
    }

    fn no_room(&self, _: usize) -> Vec<u8> {
        b"no room".to_vec()
    }
}

#[derive(clap::Parser)]
struct Words {
    #[command(flatten)]
    options: Options,
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// What comes until there is what ends an answer of [`Echo`] to `GET`, or the end.
fn answer(stream: &mut impl Read) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    while !all.ends_with(b"h\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(bytes) if bytes > 0 => all.extend_from_slice(&piece[..bytes]),
            _ => break,
        }
    }
    all
}

fn until(what: impl Fn() -> bool) {
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(std::time::Instant::now() < end);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn sum(server: &Server, which: fn(&Counts) -> &Counter) -> u64 {
    server.core.workers.iter().map(|worker| which(&worker.counts).get()).sum()
}

fn open(server: &Server) -> u64 {
    sum(server, |counts| &counts.open)
}

#[test]
fn the_longest_idle_of_all_workers_makes_room() {
    let mut options = Words::parse_from(["echo"]).options;
    (options.connections_max, options.workers) = (4, Some(3));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let server = Server::start(Arc::new(Echo), &[Address::Unix(path.clone())], options).unwrap();
    let idle = || server.core.idle.load(Ordering::Relaxed);
    let mut clients: Vec<UnixStream> = Vec::new();
    for at in 0..4 {
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(GET).unwrap();
        assert!(!answer(&mut client).is_empty());
        clients.push(client);
        // An answer comes a moment before its connection is idle.
        until(|| idle() == at + 1);
    }
    // Whichever worker has it, the first is the longest idle, then the second.
    for at in 0..2 {
        until(|| open(&server) == 4 && idle() == 4);
        let mut new = UnixStream::connect(&path).unwrap();
        new.write_all(GET).unwrap();
        assert!(answer(&mut new).ends_with(GET), "{at}");
        assert_eq!(answer(&mut clients[at]), b"", "{at}");
        clients.push(new);
    }
    // None is idle: there is no room.
    until(|| open(&server) == 4 && idle() == 4);
    for client in &mut clients[2..] {
        client.write_all(b"G").unwrap();
    }
    until(|| idle() == 0);
    let mut last = UnixStream::connect(&path).unwrap();
    assert_eq!(answer(&mut last), b"no room");
    assert_eq!(sum(&server, |counts| &counts.evicted), 2);
    assert_eq!(sum(&server, |counts| &counts.turned_away), 1);
}
