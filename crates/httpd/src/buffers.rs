//! Send buffers. The kernel cuts what is asked for without an error, so that it is read back.

use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket, sockopt};

/// The send buffer that connections are given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendBuffer {
    bytes: usize,
    /// Whether this process may exceed `net.core.wmem_max`.
    is_forced: bool,
}

impl SendBuffer {
    /// Tried on a socket; says so where the kernel gives less.
    pub(crate) fn of(bytes: u64) -> SendBuffer {
        let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
        let tried = SendBuffer::tried(wanted);
        let had = tried.map(|(_, had)| had).unwrap_or(0);
        if had < wanted {
            tracing::warn!(
                asked = wanted,
                had,
                "send buffers are smaller than --sndbuf: net.core.wmem_max bounds them; set \
                 `sysctl -w net.core.wmem_max={bytes}`"
            );
        }
        SendBuffer { bytes: wanted, is_forced: tried.is_ok_and(|(is_forced, _)| is_forced) }
    }

    /// Whether it can be forced, and what is had.
    fn tried(bytes: usize) -> Result<(bool, usize), Errno> {
        let tried = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        let is_forced = sockopt::set_socket_send_buffer_size_force(&tried, bytes).is_ok();
        if !is_forced {
            sockopt::set_socket_send_buffer_size(&tried, bytes)?;
        }
        // The kernel doubles the number, and shows it doubled.
        Ok((is_forced, sockopt::socket_send_buffer_size(&tried)? / 2))
    }

    pub(crate) fn give(self, socket: impl AsFd) {
        // A connection works with another buffer as well, and it was said that it has one.
        let _ = match self.is_forced {
            true => sockopt::set_socket_send_buffer_size_force(socket, self.bytes),
            false => sockopt::set_socket_send_buffer_size(socket, self.bytes),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_the_kernel_cuts_is_known_by_what_is_had() {
        assert_eq!(SendBuffer::tried(64 << 10).unwrap().1, 64 << 10);
        // Whoever may exceed the limit gets no more than half of the largest int.
        assert!(SendBuffer::tried(i32::MAX as usize).unwrap().1 < i32::MAX as usize);
        let (given, _) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            rustix::net::SocketFlags::empty(),
            None,
        )
        .unwrap();
        SendBuffer::of(64 << 10).give(&given);
        assert_eq!(sockopt::socket_send_buffer_size(&given), Ok(128 << 10));
    }
}
