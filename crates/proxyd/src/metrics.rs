//! What the workers count, and its text for Prometheus.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

macro_rules! counters {
    ($($name:ident, $kind:literal, $help:literal;)*) => {
        /// What one worker counts. Each has its own, so that no line is written by two.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $(#[doc = $help] pub $name: AtomicU64,)*
            /// Answers by the first digit of their status, 1 to 5.
            pub responses: [AtomicU64; 5],
            /// Exchanges by duration; see `BOUNDS`.
            durations: [AtomicU64; BOUNDS.len() + 1],
            duration_micros: AtomicU64,
        }

        const PLAIN: &[(&str, &str, &str, fn(&Counters) -> &AtomicU64)] = &[
            $((stringify!($name), $kind, $help, |counters| &counters.$name),)*
        ];
    };
}

counters! {
    connections_accepted, "counter", "Client connections accepted.";
    connections_open, "gauge", "Client connections open.";
    connections_refused, "counter", "Client connections that a limit closed unserved.";
    connections_evicted, "counter", "Idle client connections closed to make room for others.";
    handshakes_failed, "counter", "TLS handshakes that failed.";
    requests, "counter", "Requests whose head was read.";
    requests_refused, "counter", "Requests that the proxy answered with a 4xx or 501 itself.";
    request_body_bytes, "counter", "Bytes of request bodies passed on.";
    response_body_bytes, "counter", "Bytes of response bodies passed on.";
    spliced_bytes, "counter", "Body bytes that went through a pipe, untouched.";
    copied_bytes, "counter", "Body bytes that went through a buffer.";
    exchanges_aborted, "counter", "Exchanges cut short after the first byte of the response.";
    clients_gone, "counter", "Exchanges whose client went away.";
    timeouts, "counter", "Phases that took too long.";
    backend_connections, "counter", "Connections to backends opened.";
    backend_reuses, "counter", "Exchanges on a backend connection that had served before.";
    backend_failures, "counter", "Connections and exchanges that failed by a backend's fault.";
    backend_retries, "counter", "Exchanges that were given to another backend connection.";
    backend_idle, "gauge", "Idle connections to backends.";
    pipes_open, "gauge", "Pipes open, idle ones included.";
}

/// Upper bounds of the duration buckets.
const BOUNDS: [Duration; 12] = [
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_millis(2500),
    Duration::from_millis(10_000),
];

/// Adds to a counter. Only its own worker writes, so nothing has to be ordered.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Sets a gauge.
pub fn set(gauge: &AtomicU64, value: u64) {
    gauge.store(value, Ordering::Relaxed);
}

impl Counters {
    /// Counts an exchange that was answered, by the proxy or a backend.
    pub fn answered(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        add(&self.responses[class], 1);
        let bucket = BOUNDS.iter().position(|bound| took <= *bound).unwrap_or(BOUNDS.len());
        add(&self.durations[bucket], 1);
        add(&self.duration_micros, took.as_micros() as u64);
    }
}

/// The text of all workers' counters, and of the kernel's where it counts.
pub fn render(workers: &[Arc<Counters>], mode: &crate::net::Applied) -> String {
    let mut text = String::new();
    for (name, kind, help, pick) in PLAIN {
        let suffix = if *kind == "counter" && !name.ends_with("_total") { "_total" } else { "" };
        let _ = writeln!(text, "# HELP proxyd_{name}{suffix} {help}");
        let _ = writeln!(text, "# TYPE proxyd_{name}{suffix} {kind}");
        for (worker, counters) in workers.iter().enumerate() {
            let value = pick(counters).load(Ordering::Relaxed);
            let _ = writeln!(text, "proxyd_{name}{suffix}{{worker=\"{worker}\"}} {value}");
        }
    }
    let _ = writeln!(text, "# HELP proxyd_responses_total Answers by class of status.");
    let _ = writeln!(text, "# TYPE proxyd_responses_total counter");
    for class in 0..5 {
        let count = sum(workers, |worker| &worker.responses[class]);
        let _ = writeln!(text, "proxyd_responses_total{{class=\"{}xx\"}} {count}", class + 1);
    }
    render_durations(&mut text, workers);
    render_kernel(&mut text, mode);
    text
}

fn sum(workers: &[Arc<Counters>], pick: impl Fn(&Counters) -> &AtomicU64) -> u64 {
    workers.iter().map(|worker| pick(worker).load(Ordering::Relaxed)).sum()
}

fn render_durations(text: &mut String, workers: &[Arc<Counters>]) {
    let name = "proxyd_request_duration_seconds";
    let _ = writeln!(text, "# HELP {name} From the head's first byte to the answer's last.");
    let _ = writeln!(text, "# TYPE {name} histogram");
    let mut total = 0;
    for bucket in 0..=BOUNDS.len() {
        total += sum(workers, |worker| &worker.durations[bucket]);
        let bound = BOUNDS.get(bucket).map(|bound| bound.as_secs_f64().to_string());
        let bound = bound.as_deref().unwrap_or("+Inf");
        let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {total}");
    }
    let micros = sum(workers, |worker| &worker.duration_micros);
    let _ = writeln!(text, "{name}_sum {}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let _ = writeln!(text, "{name}_count {total}");
}

/// What mode was asked for, whether anybody honours it, and what the kernel did.
fn render_kernel(text: &mut String, mode: &crate::net::Applied) {
    let _ = writeln!(text, "# HELP proxyd_mode_info How clients are sent to, and who honours it.");
    let _ = writeln!(text, "# TYPE proxyd_mode_info gauge");
    let (asked, support) = (mode.asked.name(), mode.support.name());
    let _ = writeln!(text, "proxyd_mode_info{{mode=\"{asked}\",honoured_by=\"{support}\"}} 1");
    if let Ok(Some(counters)) = ntcopy::socket::counters() {
        let name = "ntcopy_kernel_bytes_total";
        let _ = writeln!(text, "# HELP {name} Hinted bytes of this network namespace, by fate.");
        let _ = writeln!(text, "# TYPE {name} counter");
        for (fate, bytes) in counters.as_map() {
            let _ = writeln!(text, "{name}{{fate=\"{fate}\"}} {bytes}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Mode;

    #[test]
    fn workers_are_told_apart_and_histograms_add_up() {
        let workers = [Arc::new(Counters::default()), Arc::new(Counters::default())];
        add(&workers[1].requests, 3);
        workers[0].answered(200, Duration::from_micros(80));
        workers[1].answered(404, Duration::from_secs(60));
        let text = render(&workers, &Mode::Copy.applied());
        for line in [
            "proxyd_requests_total{worker=\"0\"} 0",
            "proxyd_requests_total{worker=\"1\"} 3",
            "proxyd_responses_total{class=\"2xx\"} 1",
            "proxyd_responses_total{class=\"4xx\"} 1",
            "proxyd_request_duration_seconds_bucket{le=\"0.0001\"} 1",
            "proxyd_request_duration_seconds_bucket{le=\"10\"} 1",
            "proxyd_request_duration_seconds_bucket{le=\"+Inf\"} 2",
            "proxyd_request_duration_seconds_sum 60.000080",
            "proxyd_request_duration_seconds_count 2",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is missing:\n{text}");
        }
    }
}
