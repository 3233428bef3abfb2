//! `examples/backend.c` compiles without a warning, answers over a kept connection, and HAProxy
//! passes its answers on.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const BODY_BYTES: usize = 300_000;
/// Nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn compiled(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = folder.join("backend");
    let status = Command::new("cc")
        .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-pthread"])
        .arg(format!("-I{}", root.join("uapi").display()))
        .arg(root.join("examples/backend.c"))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("a C compiler");
    assert!(status.success());
    program
}

/// Tries until it works.
fn soon<T>(mut what: impl FnMut() -> std::io::Result<T>) -> T {
    let begun = Instant::now();
    loop {
        match what() {
            Ok(done) => return done,
            Err(error) if begun.elapsed() > PATIENCE => panic!("{error}"),
            Err(_) => sleep(Duration::from_millis(10)),
        }
    }
}

/// Asks for one of the two pieces, and compares the answer.
fn ask(stream: &mut (impl Read + Write), piece: u8) {
    let request = format!("GET /o/000{piece} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let head_bytes = loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
        if answer.ends_with(b"\r\n\r\n") {
            break answer.len();
        }
    };
    let head = String::from_utf8(answer).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 200 ") && head_bytes < 1000, "{head}");
    assert!(head.contains(&format!("content-length: {BODY_BYTES}")), "{head}");
    let mut body = vec![0; BODY_BYTES];
    stream.read_exact(&mut body).unwrap();
    assert!(body.iter().all(|byte| *byte == 7 + piece));
}

#[test]
fn it_answers_by_itself_and_behind_haproxy() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("backend.sock");
    let mut command = Command::new(compiled(folder.path()));
    let pieces = folder.path().join("pieces");
    fs::write(&pieces, [[7; BODY_BYTES], [8; BODY_BYTES]].concat()).unwrap();
    command.arg(&socket).arg(pieces).arg(BODY_BYTES.to_string());
    let _backend = Running(command.spawn().unwrap());
    let mut stream = soon(|| UnixStream::connect(&socket));
    ask(&mut stream, 0);
    ask(&mut stream, 1);

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = format!(
        "defaults\n  mode http\n  option splice-response\n  timeout connect 10s\n  \
         timeout client 1m\n  timeout server 1m\nlisten all\n  bind 127.0.0.1:{port}\n  \
         server one unix@{}\n",
        socket.display()
    );
    let file = folder.path().join("haproxy.cfg");
    fs::write(&file, settings).unwrap();
    let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    let mut haproxy = Command::new("haproxy");
    haproxy.env("PATH", path).args(["-db", "-f"]).arg(file).stderr(Stdio::null());
    match haproxy.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("not run behind HAProxy, which is not installed (scripts/setup.sh programs)");
        }
        haproxy => {
            let _haproxy = Running(haproxy.unwrap());
            let mut stream = soon(|| TcpStream::connect(("127.0.0.1", port)));
            ask(&mut stream, 1);
            ask(&mut stream, 0);
        }
    }
}
