//! Many datagrams with one system call.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;

use crate::experiment::DATAGRAM_BYTES;

/// Datagrams that one call takes at most.
const BATCH: usize = 64;

/// Sends the bytes as datagrams of [`DATAGRAM_BYTES`], the last one shorter;
/// gives how many bytes of whole datagrams were taken.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], flags: u32) -> Result<usize, Errno> {
    let mut pieces: Vec<libc::iovec> = bytes
        .chunks(DATAGRAM_BYTES as usize)
        .take(BATCH)
        .map(|piece| libc::iovec {
            iov_base: piece.as_ptr().cast_mut().cast(),
            iov_len: piece.len(),
        })
        .collect();
    let mut messages: Vec<libc::mmsghdr> =
        pieces.iter_mut().map(|piece| message(ptr::from_mut(piece), 1)).collect();
    // At most BATCH.
    let count = messages.len() as libc::c_uint;
    // SAFETY: each header names one iovec of `pieces`, which names bytes of `bytes`; all three
    // outlive the call, and a send only reads the bytes. The descriptor is borrowed.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count, flags.cast_signed())
    };
    done(sent).map(|sent| messages[..sent].iter().map(|message| message.msg_len as usize).sum())
}

/// Takes datagrams out of the socket without copying a byte of them, and
/// without waiting; gives how many bytes they had. What a program does that
/// wants only the lengths: an empty buffer, and `MSG_TRUNC`.
pub fn discard(socket: BorrowedFd<'_>) -> Result<usize, Errno> {
    let mut messages = [const { message(ptr::null_mut(), 0) }; BATCH];
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: the headers name no buffer at all and outlive the call; no time limit is given.
    // The descriptor is borrowed.
    let got = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            BATCH as libc::c_uint,
            flags,
            ptr::null_mut(),
        )
    };
    done(got).map(|got| messages[..got].iter().map(|message| message.msg_len as usize).sum())
}

const fn message(pieces: *mut libc::iovec, count: usize) -> libc::mmsghdr {
    // SAFETY: an mmsghdr is integers and pointers, for which zero is a value: no name, no
    // control data, no flags.
    let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
    message.msg_hdr.msg_iov = pieces;
    message.msg_hdr.msg_iovlen = count;
    message
}

fn done(result: libc::c_int) -> Result<usize, Errno> {
    usize::try_from(result)
        .map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::experiment::Family;
    use crate::run::inet;

    #[test]
    fn an_object_is_sent_in_pieces_and_discarded_by_its_length() {
        let bytes = vec![7; 3 * DATAGRAM_BYTES as usize + 100];
        let (ours, theirs) = inet::pair(Family::Udp, bytes.len() as u64).unwrap();
        assert_eq!(send(ours.as_fd(), &bytes, 0), Ok(bytes.len()));
        assert_eq!(discard(theirs.as_fd()), Ok(bytes.len()));
        assert_eq!(discard(theirs.as_fd()), Err(Errno::AGAIN));
    }

    #[test]
    fn a_large_object_takes_several_calls() {
        let bytes = vec![7; (BATCH + 1) * DATAGRAM_BYTES as usize];
        let (ours, theirs) = inet::pair(Family::Udp, bytes.len() as u64).unwrap();
        let first = send(ours.as_fd(), &bytes, 0).unwrap();
        assert_eq!(first, BATCH * DATAGRAM_BYTES as usize);
        assert_eq!(discard(theirs.as_fd()), Ok(first));
    }
}
