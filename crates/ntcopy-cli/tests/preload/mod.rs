//! The library of `ntcopy run`, built for a test, a program to start with it, and what was counted.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Sends 8 MiB by `sendall`, which Python makes of send.
pub const SENDER: &str = "import socket, threading\n\
                          here, there = socket.socketpair()\n\
                          def read():\n\
                          \x20while there.recv(1 << 20): pass\n\
                          reader = threading.Thread(target=read)\n\
                          reader.start()\n\
                          for _ in range(8): here.sendall(b'x' * (1 << 20))\n\
                          here.close()\n\
                          reader.join()\n";

pub const SENT_BYTES: u64 = 8 << 20;

pub const PYTHON: &str = "/usr/bin/python3";

/// Has cargo build something as this test was built, and gives the folder.
pub fn built(what: &[&str]) -> &'static Path {
    let profile =
        Path::new(env!("CARGO_BIN_EXE_ntcopy")).parent().expect("a folder of the program");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--locked"]).args(what).arg("--target-dir");
    cargo.arg(profile.parent().expect("the target folder"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    good(&cargo.output().expect("cargo, which runs this test"));
    profile
}

/// The library, built and linked as `make build` does it.
pub fn library() -> &'static str {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let profile = built(&["-p", "ntcopy-preload"]);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ntcopy-preload/link.sh");
        let rust = profile.join("libntcopy_preload.a");
        good(&Command::new(script).arg(rust).arg(&folder).output().expect("a shell"));
        folder.join("libntcopy-preload.so")
    });
    library.to_str().expect("a target folder in UTF-8")
}

/// The standard output of a run that must end well.
pub fn good(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{said}", output.status);
    out
}

/// By how much a counter of `ntcopy stat --once --json` rose, from 0 to the first one that was
/// printed, and from each to the next.
pub fn rises(said: &str, counter: impl Fn(&serde_json::Value) -> Option<u64>) -> Vec<u64> {
    let totals: Vec<u64> = said
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| {
            let object = serde_json::from_str(line).expect("JSON");
            counter(&object).expect("a number")
        })
        .collect();
    let before = std::iter::once(0).chain(totals.iter().copied());
    totals.iter().zip(before).map(|(total, before)| total - before).collect()
}

/// What every hint came to, together.
pub fn hinted(object: &serde_json::Value) -> Option<u64> {
    object["hinted_total_bytes"].as_u64()
}
