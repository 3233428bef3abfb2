//! TLS in this process. The plaintext is read into the cache and encrypted there; the
//! ciphertext, which no program on this machine reads again, leaves by the sends of a socket that
//! is marked for non-temporal copies.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustls::{ServerConfig, ServerConnection};

use super::kernel::{self, RecordReader};
use crate::net::{Io, Raw};

/// Ciphertext that may wait for a slow client: 16 records.
const PENDING_BYTES: usize = 256 << 10;

/// One client's TLS.
#[derive(Debug)]
pub struct Session {
    tls: ServerConnection,
    /// Present if the kernel takes over after the handshake: nothing may be read beyond it.
    exact: Option<RecordReader>,
    /// Whether the goodbye is with rustls.
    closing: bool,
}

impl Session {
    /// A session before its handshake. `for_kernel` says that the kernel takes over after it; the
    /// configuration must then allow that the secrets are taken out.
    ///
    /// # Errors
    ///
    /// The configuration can't be used.
    pub fn new(config: Arc<ServerConfig>, for_kernel: bool) -> Result<Session, rustls::Error> {
        let mut tls = ServerConnection::new(config)?;
        tls.set_buffer_limit(Some(PENDING_BYTES));
        Ok(Session { tls, exact: for_kernel.then(RecordReader::default), closing: false })
    }

    /// Whether the kernel takes over after the handshake.
    pub(crate) fn is_for_kernel(&self) -> bool {
        self.exact.is_some()
    }

    /// Gives the kernel the keys. The handshake is done and nothing waits to be written.
    pub(crate) fn hand_over(self, socket: &OwnedFd) -> Result<(), Errno> {
        let version = self.tls.protocol_version().ok_or(Errno::PROTO)?;
        let secrets = self.tls.dangerous_extract_secrets().map_err(|error| {
            tracing::debug!(%error, "kTLS");
            Errno::PROTO
        })?;
        kernel::hand_over(socket, version, secrets)
    }

    pub(crate) fn handshake(&mut self, socket: &mut Raw<'_>) -> Result<bool, Errno> {
        loop {
            let flushed = self.flush(socket)?;
            if !self.tls.is_handshaking() {
                return Ok(true);
            }
            if !flushed || !socket.readable {
                return Ok(false);
            }
            self.read_records(socket)?;
        }
    }

    pub(crate) fn recv(&mut self, socket: &mut Raw<'_>, into: &mut [u8]) -> Result<Io, Errno> {
        loop {
            match self.tls.reader().read(into) {
                Ok(0) => return Ok(Io::End),
                Ok(bytes) => return Ok(Io::Done(bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The connection closed without a close_notify: what is framed notices.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Io::End),
                Err(_) => return Err(Errno::PROTO),
            }
            if !socket.readable {
                return Ok(Io::Blocked);
            }
            self.read_records(socket)?;
        }
    }

    /// Reads once and decrypts what is complete.
    fn read_records(&mut self, socket: &mut Raw<'_>) -> Result<(), Errno> {
        match self.tls.read_tls(&mut Records(socket, self.exact.as_mut())) {
            // The end stays readable: without an error the handshake would be tried for ever.
            Ok(0) if self.tls.is_handshaking() => return Err(Errno::CONNRESET),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::PROTO)),
        }
        let processed = self.tls.process_new_packets();
        // An alert, a ticket or a key update may be the answer.
        let flushed = self.flush(socket);
        if let Err(error) = processed {
            tracing::debug!(%error, "TLS");
            return Err(Errno::PROTO);
        }
        flushed.map(|_| ())
    }

    pub(crate) fn send(&mut self, socket: &mut Raw<'_>, bytes: &[u8]) -> Result<Io, Errno> {
        self.flush(socket)?;
        let taken = self.tls.writer().write(bytes).map_err(|_| Errno::PROTO)?;
        self.flush(socket)?;
        // Nothing is taken only while what waits for the socket fills the buffer.
        Ok(if taken == 0 { Io::Blocked } else { Io::Done(taken) })
    }

    pub(crate) fn flush(&mut self, socket: &mut Raw<'_>) -> Result<bool, Errno> {
        while self.tls.wants_write() {
            if !socket.writable {
                return Ok(false);
            }
            match self.tls.write_tls(&mut Records(socket, None)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            }
        }
        Ok(true)
    }

    /// Says goodbye; false if the socket doesn't take it yet.
    pub(crate) fn close(&mut self, socket: &mut Raw<'_>) -> bool {
        if !std::mem::replace(&mut self.closing, true) {
            self.tls.send_close_notify();
        }
        self.flush(socket).unwrap_or(true)
    }
}

/// The socket as rustls wants it.
struct Records<'r, 'c>(&'r mut Raw<'c>, Option<&'r mut RecordReader>);

fn as_io(result: Result<Io, Errno>) -> std::io::Result<usize> {
    match result {
        Ok(Io::Done(bytes)) => Ok(bytes),
        Ok(Io::End) => Ok(0),
        Ok(Io::Blocked) => Err(ErrorKind::WouldBlock.into()),
        Err(errno) => Err(errno.into()),
    }
}

impl Read for Records<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let Some(exact) = &mut self.1 else { return as_io(self.0.recv(into)) };
        let limit = exact.limit().min(into.len());
        let bytes = as_io(self.0.recv(&mut into[..limit]))?;
        exact.took(&into[..bytes]);
        Ok(bytes)
    }
}

impl Write for Records<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> std::io::Result<usize> {
        as_io(self.0.send(slices, false))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
