//! The daemon's settings: its command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};
use httpd::options::{INSTEAD, seconds, size};
use httpd::{Options, is_handed_sockets};

use crate::send::Mode;

/// An object store daemon: HTTP/1.1 on unix sockets and TCP
#[derive(Debug, Parser)]
#[command(name = "storaged", version, args_override_self = true)]
#[command(mut_arg("listen", |arg| match is_handed_sockets() {
    true => arg,
    false => arg.required_unless_present_any(["create", "rebuild"]),
}))]
#[command(
    after_help = "Signals: SIGTERM and SIGINT end what is in flight, then the daemon; a second \
                        one ends it at once. SIGHUP does nothing.\n\nExit codes: 0 done; 1 failed; \
                        2 usage."
)]
pub struct Config {
    #[command(flatten)]
    pub options: Options,
    /// Folder of the objects; made if it isn't there and no --config says that it must be
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// How bodies are sent
    #[arg(long, default_value = "auto")]
    pub mode: Mode,
    /// With `--mode nt`: the shortest body that is hinted
    #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = size)]
    pub min_bytes: u64,
    /// Largest object: a number of bytes, or one with KiB, MiB or GiB
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = size)]
    pub object_max: u64,
    /// Lists the keys to whoever may connect, through a proxy or not
    #[arg(long)]
    pub public_lists: bool,
    /// Objects that stay open; fewer where descriptors are few
    #[arg(long, value_name = "N", default_value = "1024", value_parser = value_parser!(u16).range(1..=60_000))]
    pub open_objects: u16,
    /// For each 16 KiB of a response to leave
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub send_timeout: Duration,
    /// Makes a store of --data, a folder that is empty or not there, then ends
    #[arg(long, help_heading = INSTEAD, conflicts_with_all = ["check", "rebuild"])]
    pub create: bool,
    /// Makes the index of --data anew, of what its files say of themselves, then ends; files that it
    /// can't name are moved to lost/
    #[arg(long, help_heading = INSTEAD, conflicts_with = "check")]
    pub rebuild: bool,
}
