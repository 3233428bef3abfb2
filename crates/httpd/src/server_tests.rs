use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use clap::Parser;

use super::*;
use crate::head::Limits;
use crate::{Ended, Reply};

/// Answers each request with its own head, and does not keep connections that say `/last`.
struct Echo {
    /// How long a head may take.
    patience: Duration,
}

impl Service for Echo {
    type Worker = (Limits, Duration);

    const NAME: &'static str = "echo";

    fn report(&self, _: &mut Text) {}

    fn worker(&self, _: usize) -> Self::Worker {
        (Limits::default(), self.patience)
    }

    async fn serve(worker: Rc<Self::Worker>, mut conn: Conn) {
        let (limits, patience) = &*worker;
        loop {
            let head = match conn.head(limits, *patience).await {
                Ok(head) => head,
                Err(Ended::Closed) => return,
                Err(ended) => {
                    let text = format!("{ended:?}");
                    let _ = conn
                        .stream
                        .send_all(&Reply::new(408, false).end_with(text.as_bytes(), false))
                        .await;
                    break;
                }
            };
            let last = conn.input.bytes().starts_with(b"GET /last") || conn.ticket.is_draining();
            let reply = Reply::new(200, !last).end_with(&conn.input.bytes()[..head], false);
            conn.input.consume(head);
            if conn.stream.send_all(&reply).await.is_err() {
                return;
            }
            if last {
                break;
            }
        }
        conn.stream.end_sending();
        conn.linger().await;
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

fn options(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Words::parse_from(["echo", "--workers", "2"]).options;
    change(&mut options);
    options
}

fn start(change: impl FnOnce(&mut Options)) -> (Server, PathBuf, tempfile::TempDir) {
    start_with(options(change), Duration::from_secs(2))
}

fn start_with(options: Options, patience: Duration) -> (Server, PathBuf, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let door = |address| Door { address, mode: None };
    let doors = [Address::Unix(path.clone()), "127.0.0.1:0".parse().unwrap()].map(door);
    (Server::start(Arc::new(Echo { patience }), &doors, options).unwrap(), path, dir)
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const LAST: &[u8] = b"GET /last HTTP/1.1\r\nHost: h\r\n\r\n";

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

fn open(server: &Server) -> u64 {
    server.counts().iter().map(|counts| counts.open.get()).sum()
}

#[test]
fn requests_in_pieces_and_in_rows_over_both_kinds_of_socket() {
    let (server, path, _dir) = start(|_| {});
    let Address::Tcp(tcp) = server.addresses()[1] else { panic!() };
    let mut unix = UnixStream::connect(&path).unwrap();
    let mut tcp = TcpStream::connect(tcp).unwrap();
    for byte in GET {
        tcp.write_all(&[*byte]).unwrap();
    }
    assert!(answer(&mut tcp).ends_with(GET));
    unix.write_all(&[GET, GET, LAST, GET].concat()).unwrap();
    let mut all = String::new();
    unix.read_to_string(&mut all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200").count(), 3, "{all}");
    // A head has its time from its first byte on.
    tcp.write_all(b"GET").unwrap();
    let mut end = String::new();
    tcp.read_to_string(&mut end).unwrap();
    assert!(end.ends_with("TimedOut"), "{end}");
    drop((tcp, unix));
    until(|| open(&server) == 0);
}

#[test]
fn the_longest_idle_of_all_workers_makes_room() {
    let limits = |options: &mut Options| (options.connections_max, options.workers) = (4, Some(3));
    let (server, path, _dir) = start_with(options(limits), Duration::from_secs(60));
    let idle = || server.core.workers.iter().map(|worker| worker.idle.len()).sum::<usize>();
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
    let counts = server.counts();
    assert_eq!(counts.iter().map(|one| one.evicted.get()).sum::<u64>(), 2);
    assert_eq!(counts.iter().map(|one| one.turned_away.get()).sum::<u64>(), 1);
}

#[test]
fn one_client_has_its_share() {
    let (server, path, _dir) = start(|options| options.per_client = 2);
    let Address::Tcp(at) = server.addresses()[1] else { panic!() };
    let mut two = [(); 2].map(|()| TcpStream::connect(at).unwrap());
    for client in &mut two {
        client.write_all(GET).unwrap();
        assert!(answer(client).ends_with(GET));
    }
    assert_eq!(answer(&mut TcpStream::connect(at).unwrap()), b"no room");
    let mut unix = UnixStream::connect(&path).unwrap();
    unix.write_all(GET).unwrap();
    assert!(answer(&mut unix).ends_with(GET), "a unix socket has no address");
    drop(two);
    until(|| open(&server) == 1);
    assert!(server.core.clients.lock().unwrap().is_empty());
}

#[test]
fn idle_connections_age_and_others_do_not() {
    let (server, path, _dir) = start(|options| options.idle_timeout = Duration::from_millis(50));
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(GET).unwrap();
    assert!(answer(&mut client).ends_with(GET));
    assert_eq!(answer(&mut client), b"");
    until(|| open(&server) == 0);
}

#[test]
fn the_end_lets_what_has_come_be_answered() {
    let (mut server, path, _dir) = start(|_| {});
    let mut idle = UnixStream::connect(&path).unwrap();
    idle.write_all(GET).unwrap();
    assert!(answer(&mut idle).ends_with(GET));
    let mut begun = UnixStream::connect(&path).unwrap();
    begun.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    until(|| open(&server) == 2);
    let mut fresh: Vec<_> = (0..20)
        .map(|_| {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(GET).unwrap();
            client
        })
        .collect();
    server.stop(Stop::Graceful);
    assert!(!path.exists());
    begun.write_all(b"Host: h\r\n\r\n").unwrap();
    for client in fresh.iter_mut().chain([&mut begun]) {
        assert!(answer(client).ends_with(GET));
    }
    assert_eq!(answer(&mut idle), b"");
    drop((fresh, begun, idle));
    server.join();
}

#[test]
fn patience_ends() {
    for now in [false, true] {
        let drain = Duration::from_millis(if now { 600_000 } else { 100 });
        let (mut server, path, _dir) = start(|options| options.drain_timeout = drain);
        let mut stuck = UnixStream::connect(&path).unwrap();
        stuck.write_all(LAST).unwrap();
        until(|| open(&server) == 1);
        server.stop(Stop::Graceful);
        if now {
            server.stop(Stop::Now);
        }
        server.join();
    }
}
