//! The library of `ntcopy run`, built for a test, a program to start with it, and what was counted.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{built, good};

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

/// The library, built and linked as `make build` does it.
pub fn library() -> &'static str {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let profile = built("ntcopy-preload");
        // Other tests may link it at the same time.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ntcopy-preload/link.sh");
        let rust = profile.join("libntcopy_preload.a");
        good(&Command::new(script).arg(rust).arg(&folder).output().expect("a shell"));
        folder.join("libntcopy-preload.so")
    });
    library.to_str().expect("a target folder in UTF-8")
}

/// By how much a counter of `ntcopy stat --json` rose, from 0 to the first one that was
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

/// The bytes of hinted sends.
pub fn hinted(object: &serde_json::Value) -> Option<u64> {
    object["hinted_bytes"].as_u64()
}
