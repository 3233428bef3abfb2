//! TLS for clients, by rustls in this process. Certificates and keys come from PEM files.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use httpd::Stream;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::conn::Conn;

/// Ciphertext that may wait for a slow client: two records.
const PENDING_BYTES: usize = 34 << 10;

/// What clients are offered: the certificate chain, and HTTP/1.1 by ALPN.
pub fn server_config(certificate: &Path, key: &Path) -> anyhow::Result<ServerConfig> {
    let in_file = |path: &Path, what| format!("{}: no {what} can be read from it", path.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| in_file(certificate, "certificate"))?;
    ensure!(!chain.is_empty(), in_file(certificate, "certificate"));
    let private = PrivateKeyDer::from_pem_file(key).with_context(|| in_file(key, "private key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("{} and {}", certificate.display(), key.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A client's connection after its handshake.
pub(crate) async fn accept(socket: Stream, config: Arc<ServerConfig>) -> io::Result<Conn> {
    let limit = |tls: &mut rustls::ServerConnection| tls.set_buffer_limit(Some(PENDING_BYTES));
    let stream = TlsAcceptor::from(config).accept_with(socket, limit).await?;
    Ok(Conn::Tls(Box::new(stream)))
}
