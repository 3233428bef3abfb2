//! Pairs of devices between proxy and backend, one for each way.

use std::net::SocketAddr;

use super::data::free_address;
use crate::experiments::http::plan::HttpPlan;
use crate::experiments::http::{HttpMode, Transport, Way};
use crate::run::Failure;
use crate::run::netns::{self, Namespaces};

/// The devices of all ways. Dropped, they are gone.
pub struct Links {
    namespaces: Namespaces,
}

impl Links {
    /// Makes what the plan wants, if it wants any. This thread, and what it starts, is then in
    /// another network namespace than before: the clients' and proxies'. The same holds where the
    /// plan names a congestion control, which belongs to a namespace.
    pub fn make(plan: &HttpPlan, ways: &[Way]) -> Result<Option<Links>, Failure> {
        if plan.transport != Transport::Veth {
            if let Some(name) = &plan.congestion {
                netns::go_alone()?;
                netns::set_congestion(name)?;
            }
            return Ok(None);
        }
        let links = Links { namespaces: Namespaces::make()? };
        if let Some(name) = &plan.congestion {
            links.namespaces.set_congestion(name)?;
        }
        for (number, way) in (0..).zip(ways) {
            links.namespaces.join(number, plan.mtu_bytes, false)?;
            if way.mode == HttpMode::Nocache {
                links.namespaces.set_nocache(number, true)?;
            }
        }
        Ok(Some(links))
    }

    /// Those of a way, by its place among the ways.
    #[must_use]
    pub fn link(&self, number: u8) -> Link<'_> {
        Link { namespaces: &self.namespaces, number }
    }
}

#[derive(Clone, Copy)]
pub struct Link<'a> {
    namespaces: &'a Namespaces,
    number: u8,
}

impl Link<'_> {
    /// Does something on the backend's side: what is made or started meanwhile stays there.
    pub fn at_backend<T>(self, what: impl FnOnce() -> T) -> Result<T, Failure> {
        self.namespaces.at_server(what)
    }

    /// An address of the backend's end that is free.
    pub fn free_address(self) -> Result<SocketAddr, Failure> {
        let [_, backend] = self.namespaces.addresses(self.number, false);
        self.at_backend(|| free_address(backend))?
    }

    /// An error if the devices are not as a mode says.
    pub fn is_as(self, mode: HttpMode) -> Result<(), Failure> {
        self.namespaces.check_nocache(self.number, mode == HttpMode::Nocache, mode)
    }
}
