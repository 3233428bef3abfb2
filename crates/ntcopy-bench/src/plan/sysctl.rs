//! Limits of the kernel that what is in flight has to fit.

/// Size of a page in the unit of these limits, on every machine that this program runs on.
const PAGE_BYTES: u64 = 4096;
/// Room beside what the plan puts in flight.
const SLACK_BYTES: u64 = 64 << 20;

/// A limit on the memory of all sockets of a protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// Its name, with dots.
    pub name: &'static str,
    pub pages: u64,
}

impl Sysctl {
    /// What TCP needs for this payload in flight.
    pub fn for_tcp(in_flight_bytes: u64) -> Sysctl {
        Sysctl { name: "net.ipv4.tcp_mem", pages: pages(in_flight_bytes) }
    }

    /// What UDP needs for it.
    pub fn for_udp(in_flight_bytes: u64) -> Sysctl {
        Sysctl { name: "net.ipv4.udp_mem", pages: pages(in_flight_bytes) }
    }

    /// The value to set: no pressure below the limit.
    pub fn value(&self) -> String {
        format!("{0} {0} {0}", self.pages)
    }
}

/// The pages for this payload in flight.
///
/// The kernel books an skb with its own part and with the pages that the
/// payload does not fill, at the sender until it is acknowledged and at the
/// receiver until it is read: four times the payload covers both.
fn pages(in_flight_bytes: u64) -> u64 {
    (in_flight_bytes * 4 + SLACK_BYTES) / PAGE_BYTES
}
