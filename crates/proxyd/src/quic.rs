//! HTTP/3 for clients, by quinn and h3, on tokio in a thread of its own.
//!
//! A body can't be spliced into QUIC: it is read into this process and encrypted here, so the
//! backend gets `Ntcopy-Reader: cpu`. The datagrams, which no program on this machine reads again,
//! leave by a socket that is marked for non-temporal copies, many at a time where the kernel has
//! GSO.
//!
//! One endpoint is one socket and one thread. That is what the measurements here need; more
//! sockets on the same port would need the kernel's help to find a connection that has moved.

mod bodies;
mod context;
mod exchange;
mod fields;
pub(crate) mod fuzzing;
mod message;
mod seats;
mod socket;
mod upstream;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h3::error::Code;
use h3::proto::frame::Frame;
use h3::quic::SendStream as _;
use h3::server::{RequestResolver, RequestStream};
use h3_quinn::BidiStream;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime, VarInt};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use self::context::Context;
use self::seats::{Presence, Seats, WINDOW_MIN, streams};
use self::socket::Hinted;
use crate::config::{Live, Timeouts};
use crate::metrics::{Counters, add};
use crate::worker::{LEAST_BYTES, Shared, Stop};

/// H3_NO_ERROR, RFC 9114, 8.1.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);
/// What has no event of its own, the log and connections that do nothing, is seen to this often.
const TICK: Duration = Duration::from_secs(1);

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

/// The connections of the endpoint, and who waits until there is room.
struct Hall {
    context: Arc<Context>,
    connections: JoinSet<u64>,
    seats: Seats,
    /// For each of these one was asked to leave.
    waiting: Vec<Incoming>,
    draining: watch::Receiver<bool>,
}

impl Hall {
    fn admit(&mut self, incoming: Incoming) {
        let live = self.context.shared.live().0;
        let client = crate::net::origin(incoming.remote_address().ip().to_canonical());
        let most = live.limits.connections_per_client;
        if most > 0 && !live.quic.trust_forwarded && self.seats.of(client) >= most {
            return self.refuse(incoming);
        }
        let room = self.seats.len() < live.limits.connections;
        let Some(share) = self.seats.share(live.limits.quic_bytes).filter(|_| room) else {
            if !self.seats.make_room() {
                return self.refuse(incoming);
            }
            add(&self.context.counters.connections_evicted, 1);
            return self.waiting.push(incoming);
        };
        let Ok(config) = server_config(&live, share.window) else {
            return self.refuse(incoming);
        };
        let (number, presence) = self.seats.take(share, client, Instant::now());
        let (context, draining) = (Arc::clone(&self.context), self.draining.clone());
        self.connections.spawn(async move {
            connection(incoming, config, context, &presence, draining).await;
            number
        });
    }

    fn refuse(&self, incoming: Incoming) {
        add(&self.context.counters.connections_refused, 1);
        incoming.refuse();
    }

    /// One has ended. One that panicked keeps its share: that is a mistake, and is in the log.
    fn ended(&mut self, number: Result<u64, JoinError>) {
        if let Ok(number) = number {
            self.seats.free(number);
        }
        self.admit_waiting();
    }

    /// Those who wait still do so if a client that was asked to leave had just asked for something.
    fn admit_waiting(&mut self) {
        for incoming in std::mem::take(&mut self.waiting) {
            self.admit(incoming);
        }
    }

    fn tick(&mut self) {
        self.context.flush_log();
        let timeouts = self.context.shared.live().0.timeouts;
        let least = LEAST_BYTES * TICK.as_millis() as u64 / timeouts.body_idle_ms.max(1);
        self.seats.look(Instant::now(), least.max(1), Timeouts::of(timeouts.keep_alive_ms));
        self.admit_waiting();
    }

    /// Takes up new settings.
    fn reload(&self, endpoint: &Endpoint) {
        self.context.reopen_log();
        match server_config(&self.context.shared.live().0, WINDOW_MIN) {
            Ok(config) => endpoint.set_server_config(Some(config)),
            Err(error) => tracing::error!(%error, "HTTP/3: the old certificate stays"),
        }
    }
}

async fn run(endpoint: Endpoint, context: Arc<Context>, mut woken: watch::Receiver<()>) {
    let mut generation = context.shared.generation();
    let (drain, draining) = watch::channel(false);
    let (connections, seats) = (JoinSet::new(), Seats::default());
    let waiting = Vec::new();
    let mut hall = Hall { context: Arc::clone(&context), connections, seats, waiting, draining };
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => hall.admit(incoming),
                None => break,
            },
            Some(ended) = hall.connections.join_next() => hall.ended(ended),
            _ = tick.tick() => hall.tick(),
            _ = woken.changed() => {
                if context.shared.stopping() != Stop::No {
                    break;
                }
                if generation != context.shared.generation() {
                    generation = context.shared.generation();
                    hall.reload(&endpoint);
                }
            }
        }
    }
    endpoint.set_server_config(None);
    hall.waiting.clear();
    let _ = drain.send(true);
    let within = Timeouts::of(context.shared.live().0.timeouts.shutdown_ms);
    let finished = async { while hall.connections.join_next().await.is_some() {} };
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

/// The handshake; `None` if nothing came of it in time.
async fn shake_hands(
    incoming: Incoming,
    config: ServerConfig,
    context: &Context,
) -> Option<quinn::Connection> {
    let within = Timeouts::of(context.shared.live().0.timeouts.handshake_ms);
    let connecting = incoming.accept_with(Arc::new(config)).ok()?;
    tokio::time::timeout(within, connecting).await.ok()?.ok()
}

/// Reads a request's head, in the time that it may take, and serves it.
async fn request(
    resolver: RequestResolver<h3_quinn::Connection, Bytes>,
    client: IpAddr,
    context: Arc<Context>,
) {
    let within = Timeouts::of(context.shared.live().0.timeouts.header_ms);
    match tokio::time::timeout(within, resolve(resolver, &context)).await {
        Ok(Some((request, stream))) => exchange::serve(request, stream, client, context).await,
        Ok(None) => {}
        // The crate has no way to answer without the head: the stream ends.
        Err(_) => add(&context.counters.timeouts, 1),
    }
}

async fn connection(
    incoming: Incoming,
    config: ServerConfig,
    context: Arc<Context>,
    presence: &Presence,
    mut draining: watch::Receiver<bool>,
) {
    let client = incoming.remote_address().ip().to_canonical();
    let Some(connected) = shake_hands(incoming, config, &context).await else {
        return add(&context.counters.handshakes_failed, 1);
    };
    presence.arrived(connected.clone());
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
        presence.has(exchanges.len());
        tokio::select! {
            accepted = h3.accept() => {
                let Ok(Some(resolver)) = accepted else { break };
                served = true;
                exchanges.spawn(request(resolver, client, Arc::clone(&context)));
            }
            Some(_) = exchanges.join_next() => {
                if drained && exchanges.is_empty() {
                    break;
                }
            }
            () = presence.told(), if exchanges.is_empty() => {
                if presence.leaves() {
                    return connected.close(NO_ERROR, b"");
                }
            }
            changed = draining.changed(), if !drained => {
                drained = true;
                // This asks the client to begin nothing more.
                if changed.is_err() || h3.shutdown(0).await.is_err() || exchanges.is_empty() {
                    break;
                }
            }
        }
    }
    while exchanges.join_next().await.is_some() {}
    // What was finished last may still be on its way, and nothing says when it has arrived. A
    // client that was asked to begin nothing more closes once it has it; the time that a stop may
    // take bounds that.
    if served {
        connected.closed().await;
    }
    connected.close(NO_ERROR, b"");
}
