//! nginx and HAProxy: how they are started, as they come, and under `ntcopy run`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::Program;
use super::setup::Setup;
use crate::experiments::http::{HttpMode, OUTPUT_BUFFERS, PROXY_BUFFERS};
use crate::experiments::turns::program::Endpoint;
use crate::run::Failure;

/// Requests that a connection may carry: as many as there are.
const NO_LIMIT: u32 = 2_000_000_000;
/// Beside those of the client: the looks whether it listens.
const SPARE_CONNECTIONS: u32 = 64;

/// A program of a stack. Before a backend that hints by itself it is as it is everywhere.
fn program(setup: &Setup<'_>, program: Program) -> Result<Command, Failure> {
    let path = program.find().map_err(Failure::Limit)?;
    let hints_itself = setup.way.stack.hints_itself();
    Ok(if hints_itself { Command::new(path) } else { hinted(setup.way.mode, &path) })
}

/// A program, hinted if the mode says so.
pub fn hinted(mode: HttpMode, program: &Path) -> Command {
    let mut command;
    match mode {
        HttpMode::Nt | HttpMode::Adaptive => {
            // The link in /proc, not the name behind it: the file may have been replaced since.
            command = Command::new("/proc/self/exe");
            command
                .args(["run", "--family", "unix,tcp", "--mode", mode.as_str(), "--"])
                .arg(program);
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
fn nginx_settings(folder: &Path, (workers, files): (u32, u64), http: &str) -> String {
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
    let text = nginx_settings(&folder, (setup.plan.workers, setup.open_files), http);
    let file = write(&folder, "nginx.conf", &text)?;
    let mut command = program(setup, Program::Nginx)?;
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
    let server = match backend {
        Endpoint::Unix(path) => format!("unix@{}", path.display()),
        Endpoint::Tcp(address) => address.to_string(),
    };
    let pipes = setup
        .plan
        .settings
        .haproxy_pipe_bytes
        .map_or(String::new(), |bytes| format!("  tune.pipesize {bytes}\n"));
    let splice = if setup.plan.settings.without_splice { "" } else { "  option splice-response\n" };
    let text = format!(
        "global\n  nbthread {}\n  maxconn {}\n{pipes}\
         defaults\n  mode http\n{splice}  http-reuse always\n  \
         timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n  \
         timeout http-keep-alive 1h\n\
         frontend clients\n  bind {}\n  default_backend backend\n\
         backend backend\n  server one {server} pool-max-conn -1 pool-purge-delay 1h\n",
        setup.plan.workers,
        setup.plan.most_connections() + SPARE_CONNECTIONS,
        nginx_at(at)
    );
    let file = write(setup.folder, "haproxy.cfg", &text)?;
    let mut command = program(setup, Program::Haproxy)?;
    command.args(["-db", "-f"]).arg(file);
    Ok(command)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let file = folder.join(name);
    fs::write(&file, text).map_err(Failure::io(format!("cannot write {}", file.display())))?;
    Ok(file)
}
