//! TLS towards PostgreSQL, by rustls. The server's certificate is always verified, name included.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Takes what the client library does not know out of a URL: the modes that verify become
/// `require`, which verifies here anyway; `sslrootcert` is given back apart.
pub fn options(url: &str) -> Result<(String, Option<PathBuf>), String> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let mut roots = None;
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
            Some(("sslmode", "allow")) => {
                return Err("sslmode=allow is not to be had: say prefer, require or disable".into());
            }
            Some(("sslrootcert", file)) => roots = Some(PathBuf::from(unescaped(file)?)),
            Some((name @ ("sslcert" | "sslkey" | "sslcrl" | "passfile" | "service"), _)) => {
                return Err(format!("{name} in the URL is not supported"));
            }
            _ => kept.push(pair),
        }
    }
    let url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    Ok((url, roots))
}

/// Undoes `%2F` and its like.
fn unescaped(text: &str) -> Result<String, String> {
    let wrong = || format!("sslrootcert={text}: a % that is not followed by two hex digits");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first == b'%' {
            let digits = tail.get(..2).and_then(|digits| str::from_utf8(digits).ok());
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.ok_or_else(wrong)?);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// What connects by TLS: trusts the authorities in the file, or else the system's.
pub fn connector(roots: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(file) => {
            let told = |why: String| format!("sslrootcert={}: {why}", file.display());
            let pem = fs::read(file).map_err(|error| told(error.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| told(error.to_string()))?;
                store.add(certificate).map_err(|error| told(error.to_string()))?;
            }
            if store.is_empty() {
                return Err(told("there is no certificate in it".to_owned()));
            }
        }
        // Some of a system's are always odd; without any, the server's is refused in due course,
        // and a server without TLS or on a local socket needs none.
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_made_fit_for_the_client_library() {
        let (url, roots) =
            options("postgresql://h/d?sslmode=verify-full&sslrootcert=%2Fa%20b&x=y").unwrap();
        assert_eq!(url, "postgresql://h/d?sslmode=require&x=y");
        assert_eq!(roots, Some(PathBuf::from("/a b")));
        assert_eq!(options("postgresql://h/d").unwrap(), ("postgresql://h/d".to_owned(), None));
        assert_eq!(options("postgresql://h/d?sslrootcert=a").unwrap().0, "postgresql://h/d");
    }

    #[test]
    fn what_is_not_supported_is_refused_and_not_ignored() {
        assert!(options("postgresql://h/d?sslmode=allow").is_err());
        assert!(options("postgresql://h/d?sslkey=k").unwrap_err().contains("sslkey"));
        assert!(options("postgresql://h/d?sslrootcert=%2").is_err());
    }

    #[test]
    fn a_file_without_a_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots.pem");
        assert!(connector(Some(&file)).is_err_and(|why| why.contains("roots.pem")));
        fs::write(&file, "nothing").unwrap();
        assert!(connector(Some(&file)).is_err_and(|why| why.contains("no certificate")));
    }
}
