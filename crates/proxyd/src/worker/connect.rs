//! How an exchange gets its connection to a backend.

use std::sync::Arc;

use rustix::io::Errno;

use super::context::Context;
use super::exchange::Waits;
use super::session::{Phase, Session, Step};
use super::upstreams::Opened;
use crate::error::{Error, Kind, Source};

impl Session {
    /// Gets a connection to a backend.
    pub(super) fn connect(&mut self, context: &mut Context) -> Step {
        let Some(exchange) = self.exchange.as_mut() else { return Step::Close };
        if self.conn.is_hung_up() {
            return self.client_gone(context);
        }
        if exchange.up.is_some() {
            return self.connecting(context);
        }
        let again = match std::mem::replace(&mut exchange.waits, Waits::No) {
            Waits::Yes => {
                exchange.waits = Waits::Yes;
                return Step::Wait;
            }
            Waits::Called => true,
            Waits::No => false,
        };
        let backend = match &exchange.tried {
            Some(backend) if again => Arc::clone(backend),
            tried => {
                let tried = tried.clone();
                exchange.tries += 1;
                let picked = context.pick(tried.as_ref());
                exchange.address = picked.preferred();
                exchange.addresses_left = picked.place.addresses().len() - 1;
                picked
            }
        };
        exchange.tried = Some(Arc::clone(&backend));
        // A connection that failed may have had sisters that are as dead: the next is a new one.
        let reusable =
            if exchange.tries == 1 { context.upstreams.take(&backend, self.key) } else { None };
        exchange.reused = reusable.is_some();
        if let Some(upstream) = reusable {
            exchange.up = Some(upstream);
            return self.connected(context);
        }
        let limit = (context.shared.settings.limits.backend_connections, again);
        let to = (&backend, exchange.address);
        match context.upstreams.open(&context.poll, to, self.key, limit, context.now) {
            Ok(Opened::Ready(upstream)) => {
                exchange.up = Some(upstream);
                self.connected(context)
            }
            Ok(Opened::Pending(upstream)) => {
                exchange.up = Some(upstream);
                Step::Wait
            }
            Ok(Opened::Busy) => {
                exchange.waits = Waits::Yes;
                Step::Wait
            }
            Err(errno) => {
                context.upstreams.gates.call(&backend);
                self.connect_failed(errno, context)
            }
        }
    }

    pub(super) fn connect_failed(&mut self, errno: Errno, context: &mut Context) -> Step {
        let source = Source::of_connecting(errno);
        if source == Source::Upstream && self.try_next_address(context) {
            return Step::Again;
        }
        let to = self.exchange.as_ref().and_then(|e| e.tried.as_ref());
        let to = to.map(|backend| backend.place.to_string()).unwrap_or_default();
        self.fail(Error::new(source, Kind::Connect, to).because(errno).retryable(true), context)
    }

    /// Turns to an address of the same backend that was not tried, if there is one (RFC 1123, 2.3).
    pub(super) fn try_next_address(&mut self, context: &mut Context) -> bool {
        let Some(exchange) = self.exchange.as_mut() else { return false };
        let Some(backend) = exchange.tried.as_ref().filter(|_| exchange.addresses_left > 0) else {
            return false;
        };
        exchange.addresses_left -= 1;
        exchange.address = (exchange.address + 1) % backend.place.addresses().len();
        // The turn is still its own.
        exchange.waits = Waits::Called;
        if let Some(upstream) = exchange.up.take() {
            context.upstreams.close(upstream);
        }
        self.enter(Phase::Connect, context.now);
        true
    }

    /// An event may have said that the connection is there, or that it won't be.
    fn connecting(&mut self, context: &mut Context) -> Step {
        let upstream = self.exchange.as_ref().and_then(|exchange| exchange.up.as_ref());
        let Some(upstream) = upstream else { return Step::Close };
        if !upstream.conn.is_writable() {
            return Step::Wait;
        }
        match rustix::net::sockopt::socket_error(&upstream.conn) {
            Ok(Ok(())) => self.connected(context),
            Ok(Err(errno)) | Err(errno) => self.connect_failed(errno, context),
        }
    }

    /// The connection is there.
    fn connected(&mut self, context: &mut Context) -> Step {
        let splice = context.shared.splice && self.conn.can_splice_from();
        let Some(exchange) = self.exchange.as_mut() else { return Step::Close };
        if let Some(backend) = exchange.tried.as_ref().filter(|_| !exchange.reused) {
            backend.prefer(exchange.address);
        }
        exchange.rewind(context.shared.settings.http.body_bytes, splice);
        exchange.last = context.now;
        self.enter(Phase::Exchange, context.now);
        Step::Again
    }
}
