//! A server whose sessions answer each request with its own head.

mod peer;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use httpd::metrics::Text;
use httpd::{Address, Conn, Options, Reply, Server, Service};
use peer::{Peer, eventually, samples};
use tokio::io::AsyncWriteExt;

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

#[test]
fn the_longest_idle_of_all_workers_makes_room() {
    let dir = tempfile::tempdir().unwrap();
    let at = Address::Unix(dir.path().join("s"));
    let words = ["echo", "--connections-max", "4", "--workers", "3"];
    let options = Words::parse_from(words).options;
    let server = Server::start(Arc::new(Echo), std::slice::from_ref(&at), options).unwrap();
    let count = |name: &str| samples(&server.metrics(), "echo_")[name];
    let mut clients = Vec::new();
    for before in 0..4 {
        let mut client = Peer::connect(&at);
        assert_eq!(client.get("/").status, 200);
        clients.push(client);
        // An answer comes a moment before its connection is idle.
        eventually("it is idle", || count("connections_idle") == before + 1);
    }
    let full = || count("connections") == 4 && count("connections_idle") == 4;
    // Whichever worker has it, the first is the longest idle, then the second.
    for longest in 0..2 {
        eventually("all are idle", full);
        let mut new = Peer::connect(&at);
        assert_eq!(new.get("/").status, 200);
        clients[longest].assert_ended();
        clients.push(new);
    }
    // None is idle: there is no room.
    eventually("all are idle", full);
    for client in &mut clients[2..] {
        client.send("G");
    }
    eventually("none is idle", || count("connections_idle") == 0);
    assert_eq!(Peer::connect(&at).rest(), b"no room");
    assert_eq!((count("evicted_total"), count("turned_away_total")), (2, 1));
}
