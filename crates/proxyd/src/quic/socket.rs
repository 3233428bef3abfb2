//! The UDP socket of HTTP/3.
//!
//! A hint could travel with each send, but quinn's trait hands over a datagram batch, not the
//! flags of a call, and sending by hand would mean to write quinn-udp's GSO and ECN control
//! messages again. The socket option can hint every send of a socket, so the socket is marked and
//! quinn-udp goes on sending. What is wrapped here is the trait, to count what leaves.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller};

use crate::metrics::{Counters, add};
use crate::net::Applied;

/// quinn's own socket, marked and counted.
#[derive(Debug)]
pub(super) struct Hinted {
    inner: Arc<dyn AsyncUdpSocket>,
    counters: Arc<Counters>,
}

impl Hinted {
    /// Marks the socket for the mode. It must be called within tokio.
    pub(super) fn new(
        socket: std::net::UdpSocket,
        mode: &Applied,
        counters: Arc<Counters>,
    ) -> io::Result<Hinted> {
        mode.mark(&socket)?;
        Ok(Hinted { inner: TokioRuntime.wrap_udp_socket(socket)?, counters })
    }
}

impl AsyncUdpSocket for Hinted {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)?;
        add(&self.counters.quic_batches, 1);
        add(&self.counters.quic_bytes, transmit.contents.len() as u64);
        Ok(())
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(context, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}
