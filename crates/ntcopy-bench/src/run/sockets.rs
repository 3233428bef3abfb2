//! The sockets that the bytes go through.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ntcopy_record::units::Bytes;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Failure, inet};
use crate::experiment::Family;
use crate::plan::CellPlan;

/// Files that a process has open beside the sockets: plenty.
const OTHER_FILES: u64 = 64;

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

/// Sets the send buffer and makes sure that the kernel took the whole number.
fn size_send_buffer(socket: impl AsFd, bytes: u64) -> Result<(), Failure> {
    set_send_buffer(socket, bytes, true, "a smaller --object or --sndbuf")
}

/// The same of a program that is told its buffer, and may force it or does not.
pub fn can_have_send_buffer(bytes: u64, may_force: bool) -> Result<(), Failure> {
    let (tried, _) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(Failure::os("cannot make a socket pair"))?;
    set_send_buffer(tried, bytes, may_force, "a smaller --sndbuf")
}

fn set_send_buffer(
    socket: impl AsFd,
    bytes: u64,
    may_force: bool,
    or: &str,
) -> Result<(), Failure> {
    let fd = socket.as_fd();
    let asked = usize::try_from(bytes).unwrap_or(usize::MAX);
    let forced = may_force && sockopt::set_socket_send_buffer_size_force(fd, asked).is_ok();
    if !forced {
        // Without CAP_NET_ADMIN; then net.core.wmem_max bounds it, without a word.
        sockopt::set_socket_send_buffer_size(fd, asked)
            .map_err(Failure::os("cannot set SO_SNDBUF"))?;
    }
    let got = sockopt::socket_send_buffer_size(fd).map_err(Failure::os("cannot ask SO_SNDBUF"))?;
    // The kernel doubles the number, and shows it doubled.
    if (got as u64) / 2 < bytes {
        return Err(Failure::Limit(format!(
            "a send buffer of {} is not to be had: net.core.wmem_max allows {}; {}set `sysctl -w \
             net.core.wmem_max={bytes}`, or use {or}",
            Bytes(bytes),
            Bytes(got as u64 / 2),
            if may_force && !forced { "run as root, " } else { "" }
        )));
    }
    Ok(())
}

/// Lets this process have so many pairs of sockets.
pub fn allow(sockets: u32) -> Result<(), Failure> {
    allow_files(2 * u64::from(sockets) + OTHER_FILES, "fewer --sockets").map(drop)
}

/// Lets this process, and what it starts, have so many files open, and gives how many it may have.
/// `or` is what to do where that is not allowed.
pub fn allow_files(needed: u64, or: &str) -> Result<u64, Failure> {
    let limit = getrlimit(Resource::Nofile);
    match (limit.current, limit.maximum) {
        (Some(current), _) if current >= needed => return Ok(current),
        (None, _) => return Ok(needed),
        (_, Some(most)) if most < needed => {
            return Err(Failure::Limit(format!(
                "{needed} open files are needed, and {most} are allowed: raise the limit (ulimit \
                 -Hn), or use {or}"
            )));
        }
        _ => {}
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(Failure::os("cannot raise the limit of open files"))?;
    Ok(needed)
}
