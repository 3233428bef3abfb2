//! TLS in the kernel: after the handshake the kernel gets the keys, and the connection is written
//! to, and spliced to, as if nothing were between.
//!
//! The kernel's own software TLS reads what is spliced in order to encrypt it, with the CPU and at
//! once. The backend therefore gets `Ntcopy-Reader: cpu`, as with TLS in this process: what it
//! writes ought to be in cache. What is saved is the copy into this process and the one out of it.
//! The ciphertext is made in the kernel and isn't copied from anywhere, so there is nothing left to
//! hint.

use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use libc::{c_int, c_void, cmsghdr, iovec, msghdr};
use rustix::io::Errno;
use rustls::{ConnectionTrafficSecrets, ExtractedSecrets, ProtocolVersion};
use zeroize::Zeroizing;

use crate::net::{Io, Raw};

/// More than any `struct tls12_crypto_info_…` has.
const INFO_BYTES: usize = 64;
const ALERT: u8 = 21;
const APPLICATION_DATA: u8 = 23;
const CLOSE_NOTIFY: u8 = 0;
const WARNING: u8 = 1;

/// A control message with one byte of data: a record's type.
#[repr(C, align(8))]
struct RecordType {
    header: cmsghdr,
    kind: u8,
    padding: [u8; 7],
}

/// Whether the kernel has TLS, asked with a throw-away connection: the protocol can only be put
/// over an established one.
pub fn is_available() -> bool {
    crate::splice::tcp_pair().is_ok_and(|(socket, _peer)| attach(&socket).is_ok())
}

fn set(socket: &OwnedFd, level: c_int, option: c_int, value: &[u8]) -> Result<(), Errno> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the
    // descriptor is open.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn attach(socket: &OwnedFd) -> Result<(), Errno> {
    set(socket, libc::SOL_TCP, libc::TCP_ULP, b"tls")
}

/// Gives the kernel a connection whose handshake is done and whose records are all handed over.
///
/// # Errors
///
/// The kernel has no TLS, or not this cipher; the connection can't be used then.
pub(crate) fn hand_over(
    socket: &OwnedFd,
    version: ProtocolVersion,
    secrets: ExtractedSecrets,
) -> Result<(), Errno> {
    let version = match version {
        ProtocolVersion::TLSv1_3 => libc::TLS_1_3_VERSION,
        _ => libc::TLS_1_2_VERSION,
    };
    attach(socket)?;
    for (option, (sequence, keys)) in [(libc::TLS_TX, secrets.tx), (libc::TLS_RX, secrets.rx)] {
        let info = crypto_info(version, sequence, &keys).ok_or(Errno::OPNOTSUPP)?;
        set(socket, libc::SOL_TLS, option, &info)?;
    }
    Ok(())
}

/// `struct tls12_crypto_info_…` of `<linux/tls.h>`, field by field: version, cipher, iv, key,
/// salt, sequence number. The first four bytes of a GCM nonce are its salt. It is wiped when it is
/// dropped; rustls wipes its own.
fn crypto_info(
    version: u16,
    sequence: u64,
    keys: &ConnectionTrafficSecrets,
) -> Option<Zeroizing<Vec<u8>>> {
    let (cipher, key, iv, salt_bytes) = match keys {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
            (libc::TLS_CIPHER_AES_GCM_128, key, iv, 4)
        }
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => {
            (libc::TLS_CIPHER_AES_GCM_256, key, iv, 4)
        }
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            (libc::TLS_CIPHER_CHACHA20_POLY1305, key, iv, 0)
        }
        _ => return None,
    };
    let (salt, iv) = iv.as_ref().split_at(salt_bytes);
    // There is room for all of it: what grows leaves a copy behind that is not wiped.
    let mut info = Zeroizing::new(Vec::with_capacity(INFO_BYTES));
    info.extend_from_slice(&version.to_ne_bytes());
    info.extend_from_slice(&cipher.to_ne_bytes());
    for part in [iv, key.as_ref(), salt, &sequence.to_be_bytes()] {
        info.extend_from_slice(part);
    }
    Some(info)
}

/// Reads application data. An alert is the end, if it is a goodbye. A key update ends the
/// connection with an error: the kernel has no new keys for it.
pub(crate) fn recv(socket: &mut Raw<'_>, into: &mut [u8]) -> Result<Io, Errno> {
    if !socket.readable {
        return Ok(Io::Blocked);
    }
    let mut vector = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control = RecordType {
        header: cmsghdr { cmsg_len: 0, cmsg_level: 0, cmsg_type: 0 },
        kind: APPLICATION_DATA,
        padding: [0; 7],
    };
    let mut message = message(&raw mut vector, &raw mut control);
    let received = rustix::io::retry_on_intr(|| {
        // SAFETY: the message points to `vector`, which describes `into`, and to `control`; all
        // outlive the call, and nothing else refers to them meanwhile.
        match unsafe { libc::recvmsg(socket.fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) }
        {
            bytes if bytes >= 0 => Ok(bytes as usize),
            _ => Err(last_error()),
        }
    });
    let is_typed = message.msg_controllen > 0
        && control.header.cmsg_level == libc::SOL_TLS
        && control.header.cmsg_type == libc::TLS_GET_RECORD_TYPE;
    let kind = if is_typed { control.kind } else { APPLICATION_DATA };
    match received {
        Ok(0) => Ok(Io::End),
        Ok(bytes) if kind == APPLICATION_DATA => Ok(Io::Done(bytes)),
        Ok(2..) if kind == ALERT && into[1] == CLOSE_NOTIFY => Ok(Io::End),
        Ok(_) => Err(Errno::PROTO),
        Err(Errno::AGAIN) => {
            socket.readable = false;
            Ok(Io::Blocked)
        }
        Err(errno) => Err(errno),
    }
}

/// Bytes that were sent and not acknowledged yet, if the kernel may hold back records behind them:
/// `None` if it doesn't.
///
/// A send that doesn't wait counts as taken what was encrypted, also where TCP had no room for all
/// of the record (`tls_sw_sendmsg_locked()` goes on after EAGAIN). A worker of the kernel's hands
/// the rest over as room comes; but after a shutdown TCP refuses it, and a close throws it away.
/// With room, both a close and the next record hand over all that is held back first, and it is
/// never more than a record: new ones are refused while TCP has no room.
///
/// Room is three quarters of the send buffer. The kernel counts what the memory of the packets is,
/// which for small records is up to twice their bytes; then the half that is left holds a record
/// of 16 KiB also in the smallest buffer that TCP gives a connection by itself, of ten packets.
pub(crate) fn held_up(socket: &OwnedFd) -> Option<u64> {
    let buffer = rustix::net::sockopt::socket_send_buffer_size(socket).unwrap_or(0) as u64;
    unacknowledged(socket).filter(|bytes| *bytes > buffer / 4)
}

/// Bytes that were sent and not acknowledged yet.
pub(crate) fn unacknowledged(socket: &OwnedFd) -> Option<u64> {
    let mut bytes: c_int = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int to the pointer; the descriptor is open.
    let asked = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    u64::try_from(bytes).ok().filter(|_| asked == 0)
}

/// Says goodbye; false if the socket doesn't take it yet. Only without anything
/// [held up](held_up) is it with TCP then.
pub(crate) fn close(socket: &mut Raw<'_>) -> bool {
    let mut alert = [WARNING, CLOSE_NOTIFY];
    let mut vector = iovec { iov_base: alert.as_mut_ptr().cast(), iov_len: alert.len() };
    let mut control = RecordType {
        header: cmsghdr {
            // A header and one byte, without the padding.
            cmsg_len: mem::offset_of!(RecordType, padding),
            cmsg_level: libc::SOL_TLS,
            cmsg_type: libc::TLS_SET_RECORD_TYPE,
        },
        kind: ALERT,
        padding: [0; 7],
    };
    let message = message(&raw mut vector, &raw mut control);
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the message points to `vector`, which describes `alert`, and to `control`; all
    // outlive the call.
    let sent = unsafe { libc::sendmsg(socket.fd.as_raw_fd(), &raw const message, flags) };
    // Whatever else is wrong, another try would not mend it.
    sent >= 0 || last_error() != Errno::AGAIN
}

fn message(vector: *mut iovec, control: *mut RecordType) -> msghdr {
    // SAFETY: a msghdr of zeroes is one without name, data and control.
    let mut message: msghdr = unsafe { mem::zeroed() };
    message.msg_iov = vector;
    message.msg_iovlen = 1;
    message.msg_control = control.cast::<c_void>();
    message.msg_controllen = mem::size_of::<RecordType>();
    message
}

/// How many bytes may be read while the handshake runs, so that no byte of the record behind its
/// last one is taken from the socket: the kernel would miss it.
#[derive(Debug, Default)]
pub(crate) struct RecordReader {
    header: [u8; 5],
    have: usize,
    left: usize,
}

impl RecordReader {
    pub(crate) fn limit(&self) -> usize {
        if self.have < self.header.len() { self.header.len() - self.have } else { self.left }
    }

    pub(crate) fn took(&mut self, bytes: &[u8]) {
        if self.have < self.header.len() {
            self.header[self.have..self.have + bytes.len()].copy_from_slice(bytes);
            self.have += bytes.len();
            if self.have == self.header.len() {
                self.left = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
            }
        } else {
            self.left -= bytes.len();
        }
        if self.have == self.header.len() && self.left == 0 {
            self.have = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stop_at_the_end_of_a_record() {
        let records = [&[22, 3, 1, 0, 3, 7, 7, 7][..], &[23, 3, 3, 0, 0], &[21, 3, 3, 0, 1, 9]];
        for step in 1..9 {
            let mut reader = RecordReader::default();
            for record in records {
                let mut at = 0;
                while at < record.len() {
                    let take = reader.limit().min(step);
                    assert!(take > 0 && at + take <= record.len());
                    reader.took(&record[at..at + take]);
                    at += take;
                }
                assert_eq!(reader.limit(), 5, "the next begins with a header");
            }
        }
    }

    #[test]
    fn keys_are_laid_out_as_the_kernel_wants_them() {
        let sizes = [
            mem::size_of::<libc::tls12_crypto_info_aes_gcm_128>(),
            mem::size_of::<libc::tls12_crypto_info_aes_gcm_256>(),
            mem::size_of::<libc::tls12_crypto_info_chacha20_poly1305>(),
        ];
        let (iv, nonce) =
            (|| rustls::crypto::cipher::Iv::copy(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), 8);
        let key = || rustls::crypto::cipher::AeadKey::from([7; 32]);
        let all = [
            None,
            Some(ConnectionTrafficSecrets::Aes256Gcm { key: key(), iv: iv() }),
            Some(ConnectionTrafficSecrets::Chacha20Poly1305 { key: key(), iv: iv() }),
        ];
        for (keys, size) in all.iter().zip(sizes) {
            let Some(keys) = keys else { continue };
            let info = crypto_info(libc::TLS_1_3_VERSION, 0x0102, keys).unwrap();
            assert_eq!(info.len(), size);
            assert_eq!(info[..2], libc::TLS_1_3_VERSION.to_ne_bytes());
            assert_eq!(info.capacity(), INFO_BYTES, "it has not grown");
            assert_eq!(info[info.len() - nonce..], [0, 0, 0, 0, 0, 0, 1, 2]);
        }
        let gcm = crypto_info(libc::TLS_1_3_VERSION, 0, all[1].as_ref().unwrap()).unwrap();
        assert_eq!(
            (&gcm[4..12], &gcm[44..48]),
            (&[5, 6, 7, 8, 9, 10, 11, 12][..], &[1, 2, 3, 4][..])
        );
    }
}
