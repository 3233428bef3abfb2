//! How the programs of a stack are started: storaged and proxyd; `examples/backend.c`, compiled; nginx
//! and HAProxy, as they come, and under `ntcopy run`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ntcopy::uapi;
use ntcopy_kernel::temporary::Folder;

use super::daemon::free_address;
use super::programs::KnownProgram;
use crate::experiments::http::{
    HttpCell, HttpMode, HttpPlan, OUTPUT_BUFFERS, PROXY_BUFFERS, Transport, Way,
};
use crate::experiments::turns::program::Endpoint;
use crate::run::{Failure, Patience};

/// Seconds that a kept connection may be silent: longer than other modes are measured meanwhile.
const IDLE_S: u64 = 3600;
/// Requests that a connection may carry: as many as there are.
const NO_LIMIT: u32 = 2_000_000_000;
/// Beside those of the client: the looks whether it listens.
const SPARE_CONNECTIONS: u32 = 64;
/// The example, and the header that it needs.
const FILES: [(&str, &str); 2] = [
    ("backend.c", include_str!("../../../../../../examples/backend.c")),
    ("ntcopy/uapi.h", include_str!("../../../../../../uapi/ntcopy/uapi.h")),
];

/// What a proxy and its backend are started for.
pub struct Setup<'a> {
    pub plan: &'a HttpPlan,
    /// The cell, of those with the same data.
    pub cell: &'a HttpCell,
    pub way: Way,
    pub folder: &'a Path,
    pub open_files: u64,
    pub patience: Patience<'a>,
}

impl Setup<'_> {
    /// Where the backend listens.
    pub(super) fn between(&self) -> Result<Endpoint, Failure> {
        match self.plan.transport {
            Transport::Unix => Ok(Endpoint::Unix(self.folder.join("b.sock"))),
            Transport::Tcp => free_address().map(Endpoint::Tcp),
        }
    }
}

pub(super) fn storaged(
    mode: HttpMode,
    workers: u32,
    objects: u64,
    data: &Path,
    at: &Endpoint,
) -> Result<Command, Failure> {
    let mut command = Command::new(KnownProgram::Storaged.find().map_err(Failure::Limit)?);
    command.args(["--log-level", "warn", "--mode", storaged_mode(mode)]);
    // Every body is hinted in a hinted mode, whatever its length.
    command.arg("--min-bytes").arg(uapi::MIN_BYTES.to_string());
    command.arg("--workers").arg(workers.to_string());
    // Each object stays open, so that its bytes are verified once and its pages stay mapped.
    command.arg("--open-objects").arg((objects + 16).to_string());
    command.arg("--idle-timeout").arg(IDLE_S.to_string());
    command.arg("--listen").arg(at.to_string()).arg("--data").arg(data);
    Ok(command)
}

/// A mode in storaged's own words.
fn storaged_mode(mode: HttpMode) -> &'static str {
    match mode {
        HttpMode::Auto | HttpMode::Sendfile => mode.as_str(),
        HttpMode::Hinted | HttpMode::Plain => proxy_mode(mode),
    }
}

/// What proxyd does with what it writes itself. A backend that copies nothing leaves heads.
fn proxy_mode(mode: HttpMode) -> &'static str {
    match mode {
        HttpMode::Hinted | HttpMode::Auto => "nt",
        HttpMode::Plain | HttpMode::Sendfile => "copy",
    }
}

pub fn proxyd(setup: &Setup<'_>, at: &Endpoint, backend: &Endpoint) -> Result<Command, Failure> {
    let mut command = Command::new(KnownProgram::Proxyd.find().map_err(Failure::Limit)?);
    command.args(["--log-level", "warn", "--mode", proxy_mode(setup.way.mode)]);
    command.arg("--workers").arg(setup.plan.workers.to_string());
    command.arg("--listen").arg(at.to_string()).arg("--backend").arg(backend.to_string());
    for option in ["--idle-timeout", "--backend-idle-timeout"] {
        command.arg(option).arg(IDLE_S.to_string());
    }
    command.args(["--backend-idle", "4096"]);
    Ok(command)
}

pub struct Example {
    /// Not in memory: programs may be refused there.
    folder: Folder,
    objects: PathBuf,
}

impl Example {
    pub fn compile(objects: PathBuf) -> Result<Example, Failure> {
        let folder = Folder::new("ntcopy-backend-").map_err(Failure::temporary)?;
        fs::create_dir(folder.path().join("ntcopy"))
            .map_err(Failure::io("cannot make the header's folder"))?;
        for (name, text) in FILES {
            fs::write(folder.path().join(name), text)
                .map_err(Failure::io("cannot write backend.c"))?;
        }
        let compiler = KnownProgram::Example.find().map_err(Failure::Limit)?;
        let mut command = Command::new(&compiler);
        command.current_dir(folder.path()).args([
            "-O2",
            "-pthread",
            "-I.",
            "backend.c",
            "-o",
            "backend",
        ]);
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

pub fn example_backend(
    setup: &Setup<'_>,
    example: Option<&Example>,
    at: &Endpoint,
) -> Result<Command, Failure> {
    let (Some(example), Endpoint::Unix(path)) = (example, at) else {
        return Err(Failure::Limit("backend.c listens on a unix socket alone".to_owned()));
    };
    let sends = match setup.way.mode {
        HttpMode::Hinted => uapi::MIN_BYTES.to_string(),
        HttpMode::Sendfile => "sendfile".to_owned(),
        _ => "0".to_owned(),
    };
    let mut command = Command::new(example.folder.path().join("backend"));
    command.arg(path).arg(&example.objects);
    command.arg(setup.cell.object_bytes.to_string()).arg(sends);
    command.arg(setup.plan.settings.sndbuf_bytes.unwrap_or(0).to_string());
    Ok(command)
}

/// A program of a stack. Before a backend that hints by itself it is as it is everywhere.
fn program(setup: &Setup<'_>, program: KnownProgram) -> Result<Command, Failure> {
    let path = program.find().map_err(Failure::Limit)?;
    let hints_itself = setup.way.stack.hints_itself();
    Ok(if hints_itself { Command::new(path) } else { hinted(setup.way.mode, &path) })
}

/// A program, hinted if the mode says so.
pub fn hinted(mode: HttpMode, program: &Path) -> Command {
    let mut command;
    match mode {
        HttpMode::Hinted => {
            // The link in /proc, not the name behind it: the file may have been replaced since.
            command = Command::new("/proc/self/exe");
            command.args(["run", "--family", "unix,tcp", "--"]).arg(program);
        }
        _ => command = Command::new(program),
    }
    command
}

fn nginx_at(at: &Endpoint) -> String {
    match at {
        Endpoint::Unix(path) => format!("unix:{}", path.display()),
        Endpoint::Tcp(address) => address.to_string(),
    }
}

/// The settings that all forms of nginx share. The folder holds all that it writes.
fn nginx_settings(folder: &Path, workers: u32, files: u64, http: &str) -> String {
    let shown = folder.display();
    // Its workers would lose root's rights, and with them the way to the folder.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let mut text = format!(
        "daemon off;\n{user}worker_processes {workers};\npid {shown}/pid;\nerror_log stderr error;\n\
         worker_rlimit_nofile {files};\nevents {{ worker_connections 8192; }}\n\
         http {{\n  access_log off;\n  default_type application/octet-stream;\n  \
         keepalive_requests {NO_LIMIT};\n  keepalive_timeout 3600s;\n"
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(text, "  {kind}_temp_path {shown}/{kind};");
    }
    text.push_str(http);
    text.push_str("}\n");
    text
}

fn nginx(setup: &Setup<'_>, name: &str, http: &str) -> Result<Command, Failure> {
    let folder = setup.folder.join(name);
    fs::create_dir_all(&folder)
        .map_err(Failure::io(format!("cannot make {}", folder.display())))?;
    let text = nginx_settings(&folder, setup.plan.workers, setup.open_files, http);
    let file = write(&folder, "nginx.conf", &text)?;
    let mut command = program(setup, KnownProgram::Nginx)?;
    command.args(["-e", "stderr", "-p"]).arg(&folder).arg("-c").arg(file);
    Ok(command)
}

pub fn nginx_backend(setup: &Setup<'_>, root: &Path, at: &Endpoint) -> Result<Command, Failure> {
    // With it on, nothing is copied here, and there is nothing to hint.
    let sendfile = if setup.way.mode == HttpMode::Sendfile { "on" } else { "off" };
    let sndbuf =
        setup.plan.settings.sndbuf_bytes.map_or(String::new(), |bytes| format!(" sndbuf={bytes}"));
    let buffers = setup
        .plan
        .settings
        .nginx_buffer_bytes
        .map_or(String::new(), |bytes| format!("  output_buffers {OUTPUT_BUFFERS} {bytes};\n"));
    let http = format!(
        "  sendfile {sendfile};\n  tcp_nopush on;\n{buffers}  \
         open_file_cache max={} inactive=3600s;\n  open_file_cache_valid 3600s;\n  \
         server {{ listen {}{sndbuf}; root {}; }}\n",
        setup.cell.objects() + 16,
        nginx_at(at),
        root.display()
    );
    nginx(setup, "nginx-backend", &http)
}

pub fn nginx_proxy(
    setup: &Setup<'_>,
    at: &Endpoint,
    backend: &Endpoint,
) -> Result<Command, Failure> {
    let buffers =
        setup.plan.settings.nginx_buffer_bytes.map_or(String::new(), |bytes| {
            format!("      proxy_buffers {PROXY_BUFFERS} {bytes};\n")
        });
    let http = format!(
        "  upstream backend {{ server {}; keepalive 1024; keepalive_requests {NO_LIMIT}; \
         keepalive_timeout 3600s; }}\n  server {{ listen {};\n    \
         location / {{\n      proxy_pass http://backend;\n      proxy_http_version 1.1;\n      \
         proxy_set_header Connection \"\";\n      proxy_max_temp_file_size 0;\n{buffers}    }}\n  }}\n",
        nginx_at(backend),
        nginx_at(at)
    );
    nginx(setup, "nginx-proxy", &http)
}

/// HAProxy as the proxy; it splices unless that is switched off.
pub fn haproxy(setup: &Setup<'_>, at: &Endpoint, backend: &Endpoint) -> Result<Command, Failure> {
    let file = write(setup.folder, "haproxy.cfg", &haproxy_text(setup.plan, at, backend))?;
    let mut command = program(setup, KnownProgram::Haproxy)?;
    command.args(["-db", "-f"]).arg(file);
    Ok(command)
}

fn haproxy_text(plan: &HttpPlan, at: &Endpoint, backend: &Endpoint) -> String {
    let server = match backend {
        Endpoint::Unix(path) => format!("unix@{}", path.display()),
        Endpoint::Tcp(address) => address.to_string(),
    };
    let pipe_bytes = plan.settings.haproxy_pipe_bytes;
    let pipes = pipe_bytes.map_or(String::new(), |bytes| format!("  tune.pipesize {bytes}\n"));
    // A fourth of maxconn otherwise: responses that get no pipe are copied, or wait for ever.
    let connections = plan.most_connections() + SPARE_CONNECTIONS;
    let splice = if plan.settings.without_splice { "" } else { "  option splice-response\n" };
    format!(
        "global\n  nbthread {}\n  maxconn {connections}\n  maxpipes {connections}\n{pipes}\
         defaults\n  mode http\n{splice}  http-reuse always\n  \
         timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n  \
         timeout http-keep-alive 1h\n\
         frontend clients\n  bind {}\n  default_backend backend\n\
         backend backend\n  server one {server} pool-max-conn -1 pool-purge-delay 1h\n",
        plan.workers,
        nginx_at(at)
    )
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let file = folder.join(name);
    fs::write(&file, text).map_err(Failure::io(format!("cannot write {}", file.display())))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::http::{Settings, plan};
    use crate::plan::Cpus;

    #[test]
    fn haproxy_has_a_pipe_for_each_connection() {
        let settings = Settings { connections: vec![64], ..Settings::default() };
        let plan = plan(&settings, &Cpus::two()).unwrap();
        let at = Endpoint::Unix("at".into());
        let text = haproxy_text(&plan, &at, &at);
        let mut lines = text.lines().map(str::trim);
        let pipes = lines.find_map(|line| line.strip_prefix("maxpipes ")?.parse::<u32>().ok());
        assert!(pipes.is_some_and(|pipes| pipes >= 64), "{text}");
    }
}
