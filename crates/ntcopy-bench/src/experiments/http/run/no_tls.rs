//! What stands in for TLS and HTTP/3 in a program that is built without the feature `tls`.
//!
//! No value of these types exists: a certificate cannot be made, and all else follows from one.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use super::body_reader::{BodyReader, Received};
use super::load::{Meter, Window};
use super::wire::Target;
use crate::experiments::http::plan::HttpCell;
use crate::run::schedule::Schedule;
use crate::run::{Failure, Stop};

/// Why TLS and HTTP/3 are not to be had in this program, if so.
pub const MISSING: Option<&str> =
    Some("this ntcopy was built without TLS and HTTP/3; `make program` builds one with them");

/// A read of a TLS session never gets this far.
pub const TLS_PIECE_BYTES: usize = 0;

/// How a client speaks TLS.
#[derive(Debug, Clone)]
pub enum TlsConfig {}

/// How a client speaks HTTP/3.
#[derive(Debug, Clone)]
pub enum QuicConfig {}

/// A certificate.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate's file, PEM.
    pub certificate: PathBuf,
    /// Its key's file, PEM.
    pub key: PathBuf,
    /// Both in one file, as HAProxy wants them.
    pub both: PathBuf,
    /// For clients that speak HTTP/1.1.
    pub client: TlsConfig,
    /// For clients that speak HTTP/3.
    pub quic: QuicConfig,
}

impl Certificate {
    /// Says that there is none.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn make(_folder: &Path) -> Result<Certificate, Failure> {
        Err(Failure::Limit(MISSING.unwrap_or_default().to_owned()))
    }
}

/// A TLS session and its socket.
pub enum TlsWire {}

impl TlsWire {
    pub fn open(_: TcpStream, config: &TlsConfig, _: Duration) -> Result<TlsWire, Failure> {
        match *config {}
    }

    pub fn socket(&self) -> &TcpStream {
        match *self {}
    }

    pub fn send(&mut self, _: &[u8]) -> std::io::Result<usize> {
        match *self {}
    }

    pub fn read(&mut self, _: &mut [u8]) -> Result<Received, Errno> {
        match *self {}
    }
}

/// Connections over QUIC to one proxy.
pub enum QuicClient {}

impl QuicClient {
    pub fn connect(
        _: Target,
        config: QuicConfig,
        _: &HttpCell,
        _: &Stop,
    ) -> Result<QuicClient, Failure> {
        match config {}
    }

    pub fn check(&mut self, _: u64, _: BodyReader) -> Result<u64, Failure> {
        match *self {}
    }

    pub fn closed(&mut self, _: Duration, _: Duration, _: Meter<'_>) -> Result<Window, Failure> {
        match *self {}
    }

    pub fn open(&mut self, _: &Schedule, _: Meter<'_>) -> Result<Window, Failure> {
        match *self {}
    }
}
