//! Send buffers and open files, as far as the system allows.

use std::os::fd::AsFd;

use ntcopy_record::units::Bytes;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Failure;

/// Sets the send buffer and makes sure that the kernel took the whole number.
pub fn size_send_buffer(socket: impl AsFd, bytes: u64) -> Result<(), Failure> {
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
