//! The settings that workers use, and that a reload replaces as a whole.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;

use super::{Config, ConfigError, Limits, Timeouts, TlsBy};
use crate::backend::{Backend, HealthRule};
use crate::http;
use crate::policy::Edges;
use crate::tls::server_config;

/// What can change while the proxy runs.
#[derive(Debug)]
pub struct Live {
    /// Where requests go; never empty.
    pub backends: Vec<Arc<Backend>>,
    /// When one is passed over.
    pub health: HealthRule,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// How much of everything.
    pub limits: Limits,
    /// Those that concern heads and bodies.
    pub http: http::Limits,
    /// What listeners let in.
    pub edges: Edges,
    /// Present if TLS is offered.
    pub tls: Option<Arc<ServerConfig>>,
}

impl Live {
    /// Checks the values, and reads the files that they name.
    ///
    /// # Errors
    ///
    /// A value makes no sense, or a file can't be used.
    pub fn new(config: &Config) -> Result<Live, ConfigError> {
        config.check()?;
        let tls = match (&config.tls.certificate, &config.tls.key) {
            (Some(certificate), Some(key)) => {
                Some(Arc::new(tcp_config(config, server_config(certificate, key)?)))
            }
            _ => None,
        };
        let edges = config.edges()?;
        Ok(Live {
            edges,
            backends: config
                .backends
                .iter()
                .cloned()
                .map(|to| Arc::new(Backend::new(to)))
                .collect(),
            health: HealthRule {
                failures: config.health.failures,
                down_for: Duration::from_millis(config.health.down_ms),
            },
            timeouts: config.timeouts,
            limits: config.limits,
            http: config.limits.http(),
            tls,
        })
    }
}

/// The kernel is given secrets only where it was asked for.
fn tcp_config(config: &Config, mut tls: ServerConfig) -> ServerConfig {
    tls.enable_secret_extraction = config.tls.by == TlsBy::Ktls;
    tls
}
