//! The settings as workers use them.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;

use super::{Config, ConfigError, Limits, Timeouts, TlsBy};
use crate::backend::{Backend, HealthRule};
use crate::http;
use crate::policy::Edges;
use crate::tls::server_config;

#[derive(Debug)]
pub struct Settings {
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
}

impl Settings {
    /// Checks the values.
    pub fn new(config: &Config) -> Result<Settings, ConfigError> {
        config.check()?;
        Ok(Settings {
            edges: config.edges()?,
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
        })
    }
}

impl Config {
    /// What clients of TLS are offered, from the files that are named; `None` if none are.
    pub fn offered(&self) -> Result<Option<Arc<ServerConfig>>, ConfigError> {
        let (Some(certificate), Some(key)) = (&self.tls.certificate, &self.tls.key) else {
            return Ok(None);
        };
        let mut offered = server_config(certificate, key)?;
        // The kernel is given secrets only where it was asked for.
        offered.enable_secret_extraction = self.tls.by == TlsBy::Ktls;
        Ok(Some(Arc::new(offered)))
    }
}
