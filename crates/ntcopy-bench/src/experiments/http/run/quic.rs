//! A client that speaks HTTP/3, by quinn and h3 on tokio, in this thread.
//!
//! A connection has one request under way, as those over TCP have. What is measured of it is the
//! same; what it costs the client is more, since it deciphers every packet.

mod drive;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use tokio::runtime::{Builder, Runtime};

use self::drive::Drive;
use super::body_reader::BodyReader;
use super::data;
use super::load::{Meter, Window};
use super::tls::{NAME, QuicConfig};
use super::wire::Target;
use crate::experiments::http::plan::HttpCell;
use crate::run::schedule::Schedule;
use crate::run::{Failure, Stop};

/// Connections are driven on for this long after a run: the last packets are acknowledged.
const SETTLING: Duration = Duration::from_millis(5);

/// One connection's way to ask.
type Asker = SendRequest<OpenStreams, Bytes>;

/// Connections over QUIC to one proxy.
pub struct QuicClient {
    runtime: Runtime,
    endpoint: quinn::Endpoint,
    conns: Vec<Asker>,
    target: Target,
    paths: Vec<String>,
    next: u64,
    object_bytes: u64,
    stop: Stop,
}

impl QuicClient {
    /// Connects as often as the cell says.
    pub fn connect(
        target: Target,
        config: QuicConfig,
        cell: &HttpCell,
        stop: &Stop,
    ) -> Result<QuicClient, Failure> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::io("cannot start tokio"))?;
        let endpoint = {
            let _within = runtime.enter();
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let made = quinn::Endpoint::client(any);
            let mut endpoint = made.map_err(Failure::io("cannot make a UDP socket"))?;
            endpoint.set_default_client_config(config);
            endpoint
        };
        let mut client = QuicClient {
            runtime,
            endpoint,
            conns: Vec::new(),
            target,
            paths: (0..cell.objects()).map(data::path).collect(),
            next: 0,
            object_bytes: cell.object_bytes,
            stop: stop.clone(),
        };
        let begun = Instant::now();
        while client.conns.len() < cell.connections as usize {
            stop.check()?;
            match client.runtime.block_on(open(&client.endpoint, &client.target)) {
                Ok(conn) => client.conns.push(conn),
                // A proxy that has just been started may not listen yet, and UDP does not tell.
                Err(_) if client.conns.is_empty() && begun.elapsed() < client.target.patience => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(client)
    }

    /// The same as `Client::check`.
    pub fn check(&mut self, objects: u64, look: BodyReader) -> Result<u64, Failure> {
        let mut drive = Drive::new(self, look);
        let bytes = self.runtime.block_on(drive.check(objects))?;
        self.next = drive.next();
        Ok(bytes)
    }

    /// The same as `Client::closed`.
    pub fn closed(
        &mut self,
        warm_up: Duration,
        clocked: Duration,
        meter: Meter<'_>,
    ) -> Result<Window, Failure> {
        let mut drive = Drive::new(self, BodyReader::discarding());
        let window = self.runtime.block_on(drive.closed(warm_up, clocked, meter))?;
        self.next = drive.next();
        self.settle();
        Ok(window)
    }

    /// The same as `Client::open`.
    pub fn open(&mut self, schedule: &Schedule, meter: Meter<'_>) -> Result<Window, Failure> {
        let mut drive = Drive::new(self, BodyReader::discarding());
        let window = self.runtime.block_on(drive.open(schedule, meter))?;
        self.next = drive.next();
        self.settle();
        Ok(window)
    }

    fn settle(&self) {
        // Made within the runtime, whose clock it needs.
        self.runtime.block_on(async { tokio::time::sleep(SETTLING).await });
    }
}

impl Drop for QuicClient {
    fn drop(&mut self) {
        self.endpoint.close(quinn::VarInt::from_u32(0x100), b"");
        // The proxy need not wait for connections of which it has heard that they are over.
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(SETTLING, self.endpoint.wait_idle()).await;
        });
    }
}

async fn open(endpoint: &quinn::Endpoint, target: &Target) -> Result<Asker, Failure> {
    let failed =
        |what: String| Failure::Answer(format!("no QUIC connection to {}: {what}", target.address));
    let connecting =
        endpoint.connect(target.address, NAME).map_err(|error| failed(error.to_string()))?;
    let connected = tokio::time::timeout(Duration::from_secs(2), connecting).await;
    let connection = match connected {
        Ok(connection) => connection.map_err(|error| failed(error.to_string()))?,
        Err(_) => return Err(failed("no answer".to_owned())),
    };
    let (mut driver, send) = h3::client::new(h3_quinn::Connection::new(connection))
        .await
        .map_err(|error| failed(error.to_string()))?;
    tokio::spawn(async move { driver.wait_idle().await });
    Ok(send)
}
