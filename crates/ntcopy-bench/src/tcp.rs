//! What TCP is set to in this thread's network namespace.

use std::fs;

/// Congestion control for connections that don't choose.
pub const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Those that users, and namespaces beside the first one, may choose.
pub const ALLOWED_CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Congestion control for connections that don't choose; none in a kernel without TCP.
pub fn congestion_control() -> Option<String> {
    Some(fs::read_to_string(CONGESTION_CONTROL).ok()?.trim().to_owned())
}
