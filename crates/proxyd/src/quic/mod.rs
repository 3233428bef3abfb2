//! HTTP/3 for clients, by quinn and h3, on tokio in a thread of its own.
//!
//! A body can't be spliced into QUIC: it is read into this process and encrypted here, so the
//! backend is told `cpu`. The datagrams, which nobody on this machine reads again, leave by a
//! socket that is marked for non-temporal copies, many at a time where the kernel has GSO.
//!
//! One endpoint is one socket and one thread. That is what the measurements here need; more
//! sockets on the same port would need the kernel's help to find a connection that has moved.

mod bodies;
mod context;
mod exchange;
mod fields;
pub(crate) mod fuzzing;
mod message;
mod socket;
mod upstream;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use h3::error::Code;
use h3::proto::frame::Frame;
use h3::quic::SendStream as _;
use h3::server::{RequestResolver, RequestStream};
use h3_quinn::BidiStream;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime, VarInt};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::context::Context;
use self::socket::Hinted;
use crate::config::{Live, Timeouts};
use crate::metrics::{Counters, add};
use crate::worker::{Shared, Stop};

/// H3_NO_ERROR, RFC 9114, 8.1.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// The endpoint.
#[derive(Debug)]
pub struct QuicServer {
    address: SocketAddr,
    wake: watch::Sender<()>,
}

impl QuicServer {
    /// Binds the socket, and serves in a thread until the shared state says to stop.
    ///
    /// # Errors
    ///
    /// The address can't be bound, the certificate can't be used, or a thread can't be had.
    pub fn start(
        at: SocketAddr,
        shared: Arc<Shared>,
        counters: Arc<Counters>,
    ) -> io::Result<(QuicServer, JoinHandle<()>)> {
        let udp = UdpSocket::bind(at)?;
        let address = udp.local_addr()?;
        let config = server_config(&shared.live().0, WINDOW_MIN)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let endpoint = {
            let _within = runtime.enter();
            let socket = Arc::new(Hinted::new(udp, &shared.mode, Arc::clone(&counters))?);
            let (own, runtime) = (EndpointConfig::default(), Arc::new(TokioRuntime));
            Endpoint::new_with_abstract_socket(own, Some(config), socket, runtime)?
        };
        let context = Arc::new(Context::new(shared, counters)?);
        let (wake, woken) = watch::channel(());
        let thread = std::thread::Builder::new()
            .name("quic".to_owned())
            .spawn(move || runtime.block_on(run(endpoint, context, woken)))?;
        Ok((QuicServer { address, wake }, thread))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Something was asked of the workers.
    pub fn wake(&self) {
        let _ = self.wake.send(());
    }
}

fn server_config(live: &Live, window: u64) -> io::Result<ServerConfig> {
    let tls = live.tls.as_ref().ok_or_else(|| io::Error::other("no certificate"))?;
    let crypto = QuicServerConfig::try_from(Arc::clone(&tls.quic)).map_err(io::Error::other)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    let idle = Duration::from_millis(live.timeouts.keep_alive_ms);
    transport.max_idle_timeout(Some(idle.try_into().map_err(io::Error::other)?));
    limit(&mut transport, window);
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// What is read from a backend for a stream, and what waits to be sent of it.
const STREAM_BYTES: u64 = 2 * bodies::PIECE_BYTES as u64;
/// Windows that a connection may have.
const WINDOW_MIN: u64 = 64 << 10;
const WINDOW_MAX: u64 = 1 << 20;

/// A connection's share of the memory for HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    window: u64,
    /// What the connection can make this process hold: what it sends and nobody reads, what it
    /// asks for and does not take, and for each stream what is on its way from the backend.
    bytes: u64,
}

impl Share {
    /// Of so many bytes, of which so many are given away; the less is left, the less is given.
    /// `None` if nothing of use is left.
    fn of(total: u64, taken: u64) -> Option<Share> {
        let left = total.saturating_sub(taken);
        let window = (left / 1024).clamp(WINDOW_MIN, WINDOW_MAX);
        let bytes = 2 * window + streams(window) * STREAM_BYTES;
        (bytes <= left).then_some(Share { window, bytes })
    }
}

/// Requests that a connection with that window may have at one time.
fn streams(window: u64) -> u64 {
    (window / (32 << 10)).max(4)
}

/// Bounds what a peer can make this process hold.
fn limit(transport: &mut quinn::TransportConfig, window: u64) {
    let bytes = VarInt::from_u64(window).unwrap_or(VarInt::MAX);
    transport.receive_window(bytes);
    transport.stream_receive_window(bytes);
    transport.send_window(window);
    transport.max_concurrent_bidi_streams(VarInt::from_u64(streams(window)).unwrap_or(VarInt::MAX));
    // HTTP/3 has one for control and two for QPACK; a client may grease.
    transport.max_concurrent_uni_streams(8_u32.into());
    transport.datagram_receive_buffer_size(None);
}

async fn run(endpoint: Endpoint, context: Arc<Context>, mut woken: watch::Receiver<()>) {
    let mut connections: JoinSet<(u64, IpAddr)> = JoinSet::new();
    let mut taken = 0;
    let mut clients: HashMap<IpAddr, usize> = HashMap::new();
    let mut generation = context.shared.generation();
    let (drain, draining) = watch::channel(false);
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                let live = context.shared.live().0;
                let client = crate::net::origin(incoming.remote_address().ip().to_canonical());
                let most = live.limits.connections_per_client;
                let held = clients.get(&client).copied().unwrap_or(0);
                let room = connections.len() < live.limits.connections
                    && (most == 0 || live.quic.trust_forwarded || held < most);
                let share = Share::of(live.limits.quic_bytes, taken);
                match share.filter(|_| room).map(|share| (share, server_config(&live, share.window))) {
                    Some((share, Ok(config))) => {
                        taken += share.bytes;
                        *clients.entry(client).or_insert(0) += 1;
                        let context = Arc::clone(&context);
                        let serving = connection(incoming, config, context, draining.clone());
                        connections.spawn(async move {
                            serving.await;
                            (share.bytes, client)
                        });
                    }
                    _ => {
                        add(&context.counters.connections_refused, 1);
                        incoming.refuse();
                    }
                }
            }
            Some(ended) = connections.join_next() => {
                // A task that panicked keeps its share: that is a mistake, and is in the log.
                if let Ok((bytes, client)) = ended {
                    taken -= bytes;
                    clients.entry(client).and_modify(|held| *held -= 1);
                    clients.retain(|_, held| *held > 0);
                }
            }
            _ = tick.tick() => context.flush_log(),
            _ = woken.changed() => {
                if context.shared.stopping() != Stop::No {
                    break;
                }
                if generation != context.shared.generation() {
                    generation = context.shared.generation();
                    context.reopen_log();
                    match server_config(&context.shared.live().0, WINDOW_MIN) {
                        Ok(config) => endpoint.set_server_config(Some(config)),
                        Err(error) => tracing::error!(%error, "HTTP/3: the old certificate stays"),
                    }
                }
            }
        }
    }
    endpoint.set_server_config(None);
    let _ = drain.send(true);
    let within = Timeouts::of(context.shared.live().0.timeouts.shutdown_ms);
    let finished = async { while connections.join_next().await.is_some() {} };
    let at_once =
        async { while context.shared.stopping() != Stop::Now && woken.changed().await.is_ok() {} };
    tokio::select! {
        _ = tokio::time::timeout(within, finished) => {}
        () = at_once => {}
    }
    endpoint.close(NO_ERROR, b"");
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    context.flush_log();
}

/// Reads a request's head; `None` if there is none, or one that could be read in two ways.
async fn resolve(
    mut resolver: RequestResolver<h3_quinn::Connection, Bytes>,
    context: &Context,
) -> Option<(http::Request<()>, RequestStream<BidiStream<Bytes>, Bytes>)> {
    let frame = std::future::poll_fn(|cx| resolver.frame_stream.poll_next(cx)).await;
    if let Ok(Some(Frame::Headers(section))) = &frame
        && fields::is_ambiguous(section)
    {
        add(&context.counters.requests_refused, 1);
        tracing::warn!("HTTP/3: a request with two pseudo-header fields of a name is refused");
        resolver.frame_stream.reset(Code::H3_MESSAGE_ERROR.value());
        return None;
    }
    resolver.accept_with_frame(frame).ok()?.resolve().await.ok()
}

async fn connection(
    incoming: Incoming,
    config: ServerConfig,
    context: Arc<Context>,
    mut draining: watch::Receiver<bool>,
) {
    let client = incoming.remote_address().ip().to_canonical();
    let handshake = Timeouts::of(context.shared.live().0.timeouts.handshake_ms);
    let Ok(connecting) = incoming.accept_with(Arc::new(config)) else {
        add(&context.counters.handshakes_failed, 1);
        return;
    };
    let connected = match tokio::time::timeout(handshake, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(_)) | Err(_) => {
            add(&context.counters.handshakes_failed, 1);
            return;
        }
    };
    add(&context.counters.connections_accepted, 1);
    let limit = context.shared.live().0.http.head_bytes as u64;
    let built = h3::server::builder()
        .max_field_section_size(limit)
        .build(h3_quinn::Connection::new(connected.clone()))
        .await;
    let Ok(mut h3) = built else { return };
    let mut exchanges = JoinSet::new();
    let mut served = false;
    let mut drained = *draining.borrow();
    loop {
        tokio::select! {
            accepted = h3.accept() => {
                let Ok(Some(resolver)) = accepted else { break };
                let context = Arc::clone(&context);
                served = true;
                exchanges.spawn(async move {
                    let within = Timeouts::of(context.shared.live().0.timeouts.header_ms);
                    match tokio::time::timeout(within, resolve(resolver, &context)).await {
                        Ok(Some((request, stream))) => {
                            exchange::serve(request, stream, client, context).await;
                        }
                        Ok(None) => {}
                        // The crate has no way to answer without the head: the stream ends.
                        Err(_) => add(&context.counters.timeouts, 1),
                    }
                });
            }
            Some(_) = exchanges.join_next() => {
                if drained && exchanges.is_empty() {
                    break;
                }
            }
            changed = draining.changed(), if !drained => {
                drained = true;
                // The client is told to begin nothing more.
                if changed.is_err() || h3.shutdown(0).await.is_err() || exchanges.is_empty() {
                    break;
                }
            }
        }
    }
    while exchanges.join_next().await.is_some() {}
    // What was finished last may still be on its way, and nothing says when it has arrived. A
    // client that was told to begin nothing more closes once it has it; the time that a stop may
    // take bounds that.
    if served {
        connected.closed().await;
    }
    connected.close(NO_ERROR, b"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_smaller_and_never_add_up_to_more_than_there_is() {
        let total = 64 << 20;
        let (mut taken, mut windows) = (0, Vec::new());
        while let Some(share) = Share::of(total, taken) {
            taken += share.bytes;
            windows.push(share.window);
        }
        assert!(taken <= total && windows.len() >= 100, "{} of {taken}", windows.len());
        assert!(windows.is_sorted_by(|one, two| one >= two));
        assert_eq!(Share::of(1 << 30, 0).unwrap().window, WINDOW_MAX);
        assert_eq!(Share::of(100 << 10, 0), None);
    }
}
