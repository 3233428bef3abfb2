//! `examples/backend.c`: how it is compiled, and started.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use ntcopy::uapi;

use super::programs::Program;
use super::setup::Setup;
use crate::experiments::http::HttpMode;
use crate::experiments::turns::program::Endpoint;
use crate::run::Failure;

/// The example, and the header that it needs.
const FILES: [(&str, &str); 2] = [
    ("backend.c", include_str!("../../../../../../examples/backend.c")),
    ("ntcopy.h", include_str!("../../../../../../uapi/ntcopy.h")),
];

pub struct Example {
    /// Not in memory: programs may be refused there.
    folder: tempfile::TempDir,
    objects: PathBuf,
}

impl Example {
    pub fn compile(objects: PathBuf) -> Result<Example, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::io("cannot make a folder"))?;
        for (name, text) in FILES {
            fs::write(folder.path().join(name), text)
                .map_err(Failure::io("cannot write backend.c"))?;
        }
        let compiler = Program::Example.find().map_err(Failure::Limit)?;
        let mut command = Command::new(&compiler);
        command.current_dir(&folder).args(["-O2", "-pthread", "-I.", "backend.c", "-o", "backend"]);
        let output = command.output().map_err(Failure::io("cannot start the C compiler"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| line.contains("error")).unwrap_or(&said);
            let compiler = compiler.display();
            return Err(Failure::Limit(format!("{compiler} does not compile backend.c: {first}")));
        }
        Ok(Example { folder, objects })
    }
}

pub fn backend(
    setup: &Setup<'_>,
    example: Option<&Example>,
    at: &Endpoint,
) -> Result<Command, Failure> {
    let (Some(example), Endpoint::Unix(path)) = (example, at) else {
        return Err(Failure::Limit("backend.c listens on a unix socket alone".to_owned()));
    };
    let sends = match setup.way.mode {
        HttpMode::Nt => uapi::SOCK_OBEY.to_string(),
        HttpMode::Adaptive => uapi::SOCK_EVERY.to_string(),
        HttpMode::Sendfile => "sendfile".to_owned(),
        _ => uapi::SOCK_NONE.to_string(),
    };
    let mut command = Command::new(example.folder.path().join("backend"));
    command.arg(path).arg(&example.objects);
    command.arg(setup.cell.object_bytes.to_string()).arg(sends);
    command.arg(setup.plan.settings.sndbuf_bytes.unwrap_or(0).to_string());
    Ok(command)
}
