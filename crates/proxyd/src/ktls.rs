//! TLS in the kernel: after the handshake the kernel gets the keys, and the connection is written
//! to, and spliced to, as if nothing were between.
//!
//! The kernel's own software TLS reads what is spliced in order to encrypt it, with the CPU and at
//! once. The backend therefore gets `Ntcopy-Reader: cpu`, as with TLS in this process: what it
//! writes ought to be in cache. What is saved is the copy into this process and the one out of it.
//! The ciphertext is made in the kernel and isn't copied from anywhere, so there is nothing left to
//! hint.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, mem};

use libc::{c_int, cmsghdr, iovec, msghdr};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustls::{ConnectionTrafficSecrets, ProtocolVersion, ServerConfig, ServerConnection};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

/// More than any `struct tls12_crypto_info_…` has.
const INFO_BYTES: usize = 64;
const ALERT: u8 = 21;
const CLOSE_NOTIFY: u8 = 0;
const WARNING: u8 = 1;
const RECORD_HEADER_BYTES: usize = 5;
/// How soon to look again at what the kernel holds back.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

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
    let attached = || -> io::Result<bool> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let _client = TcpStream::connect(listener.local_addr()?)?;
        Ok(attach(listener.accept()?.0.as_fd()).is_ok())
    };
    attached().unwrap_or(false)
}

fn set(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &[u8]) -> Result<(), Errno> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the
    // descriptor is open.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
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

fn attach(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    set(socket, libc::SOL_TCP, libc::TCP_ULP, b"tls")
}

/// Gives the kernel a connection after its [`handshake`].
pub(crate) fn hand_over(socket: impl AsFd, tls: ServerConnection) -> Result<(), Errno> {
    let version = match tls.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => libc::TLS_1_3_VERSION,
        _ => libc::TLS_1_2_VERSION,
    };
    let secrets = tls.dangerous_extract_secrets().map_err(|error| {
        tracing::debug!(%error, "kTLS");
        Errno::PROTO
    })?;
    let socket = socket.as_fd();
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

/// Reads application data; 0 is the end, and so is any other record, which the kernel hands to
/// nobody who does not ask for its type: an alert, a goodbye for the most part, or a key update, for
/// which there are no new keys.
pub(crate) fn recv(socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    match rustix::net::recv(socket, into, RecvFlags::DONTWAIT) {
        Ok((bytes, _)) => Ok(bytes),
        Err(Errno::IO) => Ok(0),
        Err(errno) => Err(errno),
    }
}

/// Waits until the kernel may hold back no record any more; false if the client took nothing of
/// what was before it in each `patience`.
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
pub(crate) async fn drained(socket: impl AsFd, patience: Duration) -> bool {
    let buffer = rustix::net::sockopt::socket_send_buffer_size(&socket).unwrap_or(0) as u64;
    let (mut least, mut until) = (u64::MAX, Instant::now() + patience);
    loop {
        let waiting = httpd::unacknowledged(&socket);
        if waiting <= buffer / 4 {
            return true;
        }
        if waiting < least {
            (least, until) = (waiting, Instant::now() + patience);
        } else if Instant::now() >= until {
            return false;
        }
        // No event tells.
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Says goodbye. Only once all is [`drained`] is it with TCP then.
pub(crate) fn close(socket: &OwnedFd) -> Result<(), Errno> {
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
    // SAFETY: a msghdr of zeroes is one without name, data and control.
    let mut message: msghdr = unsafe { mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut vector, 1);
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = mem::size_of::<RecordType>();
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the message points to `vector`, which describes `alert`, and to `control`; all
    // outlive the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    if sent >= 0 { Ok(()) } else { Err(last_error()) }
}

/// A handshake in which no byte of the record behind its last one is taken from the socket, and all
/// that the server says is with TCP: the kernel would miss the one and number the other wrong.
pub async fn handshake(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    config: Arc<ServerConfig>,
) -> io::Result<ServerConnection> {
    let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
    let (mut record, mut answer) = (Vec::new(), Vec::new());
    loop {
        while tls.wants_write() {
            tls.write_tls(&mut answer)?;
        }
        socket.write_all(&answer).await?;
        answer.clear();
        if !tls.is_handshaking() {
            return Ok(tls);
        }
        record.resize(RECORD_HEADER_BYTES, 0);
        socket.read_exact(&mut record).await?;
        let len = usize::from(u16::from_be_bytes([record[3], record[4]]));
        record.resize(RECORD_HEADER_BYTES + len, 0);
        socket.read_exact(&mut record[RECORD_HEADER_BYTES..]).await?;
        let mut rest = &record[..];
        while !rest.is_empty() {
            // It takes nothing behind a goodbye.
            if tls.read_tls(&mut rest)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if let Err(error) = tls.process_new_packets() {
            // The alert that says why.
            while tls.wants_write() {
                tls.write_tls(&mut answer)?;
            }
            let _ = socket.write_all(&answer).await;
            return Err(io::Error::other(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_laid_out_as_the_kernel_wants_them() {
        let sizes = [
            mem::size_of::<libc::tls12_crypto_info_aes_gcm_256>(),
            mem::size_of::<libc::tls12_crypto_info_chacha20_poly1305>(),
        ];
        let iv = || rustls::crypto::cipher::Iv::copy(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let key = || rustls::crypto::cipher::AeadKey::from([7; 32]);
        let all = [
            ConnectionTrafficSecrets::Aes256Gcm { key: key(), iv: iv() },
            ConnectionTrafficSecrets::Chacha20Poly1305 { key: key(), iv: iv() },
        ];
        for (keys, size) in all.iter().zip(sizes) {
            let info = crypto_info(libc::TLS_1_3_VERSION, 0x0102, keys).unwrap();
            assert_eq!(info.len(), size);
            assert_eq!(info[..2], libc::TLS_1_3_VERSION.to_ne_bytes());
            assert_eq!(info.capacity(), INFO_BYTES, "it has not grown");
            assert_eq!(info[info.len() - 8..], [0, 0, 0, 0, 0, 0, 1, 2]);
        }
        let gcm = crypto_info(libc::TLS_1_3_VERSION, 0, &all[0]).unwrap();
        assert_eq!(
            (&gcm[4..12], &gcm[44..48]),
            (&[5, 6, 7, 8, 9, 10, 11, 12][..], &[1, 2, 3, 4][..])
        );
    }
}
