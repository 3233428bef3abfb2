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
mod message;
mod socket;
mod upstream;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

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
        let config = server_config(&shared.live().0)?;
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

fn server_config(live: &Live) -> io::Result<ServerConfig> {
    let tls = live.tls.as_ref().ok_or_else(|| io::Error::other("no certificate"))?;
    let crypto = QuicServerConfig::try_from(Arc::clone(&tls.quic)).map_err(io::Error::other)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    let idle = Duration::from_millis(live.timeouts.keep_alive_ms);
    transport.max_idle_timeout(Some(idle.try_into().map_err(io::Error::other)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

async fn run(endpoint: Endpoint, context: Arc<Context>, mut woken: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    let mut generation = context.shared.generation();
    let (drain, draining) = watch::channel(false);
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                let limit = context.shared.live().0.limits.connections;
                if connections.len() >= limit {
                    add(&context.counters.connections_refused, 1);
                    incoming.refuse();
                } else {
                    connections.spawn(connection(incoming, Arc::clone(&context), draining.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
            _ = tick.tick() => context.flush_log(),
            _ = woken.changed() => {
                if context.shared.stopping() != Stop::No {
                    break;
                }
                if generation != context.shared.generation() {
                    generation = context.shared.generation();
                    context.reopen_log();
                    match server_config(&context.shared.live().0) {
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

async fn connection(
    incoming: Incoming,
    context: Arc<Context>,
    mut draining: watch::Receiver<bool>,
) {
    let client = incoming.remote_address().ip().to_canonical();
    let handshake = Timeouts::of(context.shared.live().0.timeouts.handshake_ms);
    let connected = match tokio::time::timeout(handshake, incoming).await {
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
                    match tokio::time::timeout(within, resolver.resolve_request()).await {
                        Ok(Ok((request, stream))) => {
                            exchange::serve(request, stream, client, context).await;
                        }
                        Ok(Err(_)) => {}
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
