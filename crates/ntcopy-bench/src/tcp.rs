//! What TCP is set to in this thread's network namespace.

use std::fs;

/// Congestion control for connections that don't choose; none in a kernel without TCP.
pub fn congestion_control() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(name.trim().to_owned())
}
