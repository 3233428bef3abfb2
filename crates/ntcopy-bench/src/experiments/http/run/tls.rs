//! A certificate for an afternoon, and clients that believe it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::body_reader::{Received, errno};
use super::wire::{Certificate, Handshake, Session};
use crate::run::Failure;

const NAME: &str = "localhost";

/// Makes one, with its file in the folder.
pub fn make_certificate(folder: &Path) -> Result<Certificate, Failure> {
    let failed = |what: String| Failure::Answer(format!("no certificate: {what}"));
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])
        .map_err(|error| failed(error.to_string()))?;
    let client = client(made.cert.der()).map_err(|error| failed(error.to_string()))?;
    let file = folder.join("certificate.pem");
    std::fs::write(&file, made.cert.pem() + &made.signing_key.serialize_pem())
        .map_err(Failure::io(format!("cannot write {}", file.display())))?;
    Ok(Certificate { file, client: Arc::new(TlsClient(Arc::new(client))) })
}

fn client(certificate: &CertificateDer<'static>) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // One version for all stacks: what they negotiate must not be what is compared.
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[derive(Debug)]
struct TlsClient(Arc<ClientConfig>);

impl Handshake for TlsClient {
    fn shake(
        &self,
        mut socket: TcpStream,
        patience: Duration,
    ) -> Result<Box<dyn Session>, Failure> {
        let failed = |what: String| Failure::Answer(format!("the TLS handshake failed: {what}"));
        let name = server_name().map_err(failed)?;
        let mut session =
            ClientConnection::new(Arc::clone(&self.0), name).map_err(|e| failed(e.to_string()))?;
        for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
            set(&socket, Some(patience)).map_err(Failure::io("cannot set a time-out"))?;
        }
        while session.is_handshaking() {
            session.complete_io(&mut socket).map_err(|e| failed(e.to_string()))?;
        }
        Ok(Box::new(TlsSession { socket, session }))
    }
}

struct TlsSession {
    socket: TcpStream,
    session: ClientConnection,
}

impl Session for TlsSession {
    fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn send(&mut self, request: &[u8]) -> std::io::Result<usize> {
        self.session.writer().write_all(request)?;
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Ok(request.len())
    }

    fn read(&mut self, into: &mut [u8]) -> Result<Received, Errno> {
        loop {
            match self.session.reader().read(into) {
                Ok(0) => return Ok(Received::End),
                Ok(bytes) => return Ok(Received::Bytes(bytes)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Received::End),
                Err(error) => return Err(errno(error)),
            }
            match self.session.read_tls(&mut self.socket) {
                Ok(0) => return Ok(Received::End),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Received::Blocked);
                }
                Err(error) => return Err(errno(error)),
            }
            // A record that can't be deciphered is no byte that was sent.
            self.session.process_new_packets().map_err(|_| Errno::BADMSG)?;
        }
    }
}

fn server_name() -> Result<ServerName<'static>, String> {
    ServerName::try_from(NAME).map_err(|error| error.to_string())
}
