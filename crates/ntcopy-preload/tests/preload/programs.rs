//! Programs that everybody has: the same output, the same bytes, the same exit code.

use std::path::Path;
use std::process::Command;

use crate::built::{played, run, text, under};

/// Bytes sent by Python in every way it has, through every kind of socket, and what arrived.
const PYTHON: &str = r#"
import hashlib, os, socket, threading
data = bytes(range(256)) * 2048
def tcp():
    listener = socket.create_server(("127.0.0.1", 0))
    here = socket.create_connection(listener.getsockname())
    return here, listener.accept()[0]
for name, pair in (("unix", socket.socketpair), ("tcp", tcp)):
    here, there = pair()
    def read():
        got = hashlib.sha256()
        while more := there.recv(1 << 20):
            got.update(more)
        print(name, got.hexdigest())
    reader = threading.Thread(target=read)
    reader.start()
    here.sendall(data)
    sent = 0
    while sent < len(data):
        sent += os.write(here.fileno(), data[sent:])
    sent = 0
    while sent < len(data):
        sent += os.writev(here.fileno(), [data[sent:sent + 1000], data[sent + 1000:]])
    sent = 0
    while sent < len(data):
        sent += here.sendmsg([data[sent:]])
    with here.makefile("wb") as file:
        file.write(data)
    here.close()
    reader.join()
"#;

fn same_with_and_without(make: impl Fn(&dyn Fn(&Path) -> Command) -> Command) -> String {
    let mut plain = make(&|path| played("taken", path, &[]));
    let without = plain.output().expect("it starts");
    let mut hinted = make(&|path| under(path));
    let with = hinted.output().expect("it starts");
    assert_eq!(with.status, without.status, "{hinted:?}: {}", text(&with.stderr));
    assert_eq!(text(&with.stdout), text(&without.stdout), "{hinted:?}");
    assert_eq!(text(&with.stderr), text(&without.stderr), "{hinted:?}");
    text(&with.stdout)
}

#[test]
fn a_shell_with_pipes_files_and_children() {
    let script = "echo one; (echo two; exit 3); echo $?; \
                  head -c 300000 /dev/zero | tr '\\0' x | cat | cksum; \
                  f=$(mktemp) && head -c 100000 /dev/zero >\"$f\" && cat \"$f\" | wc -c; \
                  rm \"$f\"; cat /nonexistent; kill -9 $$";
    for shell in ["/bin/sh", "/bin/bash"] {
        let said = same_with_and_without(|command| {
            let mut command = command(Path::new(shell));
            command.args(["-c", script]);
            command
        });
        assert!(said.contains("\n3\n") && said.contains("100000"), "{said}");
    }
}

#[test]
fn python_sends_in_every_way() {
    let said = same_with_and_without(|command| {
        let mut command = command(Path::new("/usr/bin/python3"));
        command.args(["-c", PYTHON]);
        command
    });
    assert_eq!(said.lines().count(), 2, "{said}");
    // And its sockets opt in while it does so.
    let script = format!(
        "{PYTHON}\nhere, there = socket.socketpair()\n\
         print(here.getsockopt(socket.SOL_SOCKET, {}))",
        ntcopy::uapi::SO_NTCOPY
    );
    let said = run(under(Path::new("/usr/bin/python3")).args(["-c", &script]));
    assert!(said.ends_with("\n262144\n"), "{said}");
}

#[test]
fn a_daemon_that_closes_every_number_there_could_be() {
    let script = "import os, socket\n\
                  pair = socket.socketpair()\n\
                  pair[0].send(b'x' * 8192)\n\
                  os.closerange(3, 1 << 20)\n\
                  here, there = os.pipe()\n\
                  sent = os.write(there, b'x' * 8192)\n\
                  print(here, there, sent, len(os.read(here, 8192)), flush=True)\n\
                  os._exit(0)";
    let said = same_with_and_without(|command| {
        let mut command = command(Path::new("/usr/bin/python3"));
        command.args(["-c", script]);
        command
    });
    assert_eq!(said, "3 4 8192 8192\n");
}

#[test]
fn a_program_of_rust_this_one() {
    // Its own standard library sends by write, writev, send and sendmsg.
    let this = std::env::current_exe().expect("a path of this program");
    let listed = run(under(&this).args(["--list"]));
    assert!(listed.contains("a_program_of_rust_this_one"), "{listed}");
}
