//! The sockets of a cell.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

use super::super::CellPlan;
use crate::experiment::Family;
use crate::run::sockets::{allow_files, size_send_buffer};
use crate::run::{Failure, inet};

/// Files that a process has open beside the sockets: plenty.
const OTHER_FILES: u64 = 64;

/// Lets this process have so many pairs of sockets.
pub fn allow(sockets: u32) -> Result<(), Failure> {
    allow_files(2 * u64::from(sockets) + OTHER_FILES, "fewer --sockets").map(drop)
}

/// The send buffer to ask for: the cell's own, or one that takes a whole object.
///
/// The kernel doubles what is asked for, which covers its own part of the
/// buffers; the fixed part is for small objects, whose part is larger than they are.
pub fn sndbuf_bytes(cell: &CellPlan) -> u64 {
    // TCP keeps what is not acknowledged, the end of the object before it for one.
    let slack_bytes = if cell.family == Family::Unix { 64 << 10 } else { 256 << 10 };
    cell.sndbuf_bytes.unwrap_or(cell.object_bytes + slack_bytes)
}

pub fn make(cell: &CellPlan, patience: Duration) -> Result<Vec<(OwnedFd, OwnedFd)>, Failure> {
    allow(cell.sockets())?;
    (0..cell.sockets()).map(|_| make_one(cell, patience)).collect()
}

fn make_one(cell: &CellPlan, patience: Duration) -> Result<(OwnedFd, OwnedFd), Failure> {
    let (ours, theirs) = match cell.family {
        Family::Unix => {
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .map_err(Failure::os("cannot make a socket pair"))?
        }
        family => inet::pair(family, cell.object_bytes)?,
    };
    size_send_buffer(&ours, sndbuf_bytes(cell))?;
    if cell.form.holds_objects() {
        // A round is over in one go or not at all: never wait for the reader.
        fcntl_getfl(&ours)
            .and_then(|flags| fcntl_setfl(&ours, flags | OFlags::NONBLOCK))
            .map_err(Failure::os("cannot set O_NONBLOCK"))?;
    } else {
        sockopt::set_socket_timeout(&ours, sockopt::Timeout::Send, Some(patience))
            .map_err(Failure::os("cannot set SO_SNDTIMEO"))?;
    }
    Ok((ours, theirs))
}
