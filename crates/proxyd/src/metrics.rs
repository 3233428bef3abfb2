//! What the workers count, and its text for Prometheus.

use httpd::Counts;
use httpd::metrics::{Counter, Family, Histogram, Text};

use crate::mode::Applied;

httpd::counters! {
    /// What one worker counts of exchanges.
    pub struct Plain {
        handshakes_failed: "counter" "handshakes_failed_total" "TLS handshakes that failed.",
        requests: "counter" "requests_total" "Requests whose head was read.",
        requests_refused: "counter" "requests_refused_total" "Requests that the proxy answered with a 4xx or 501 itself.",
        request_body_bytes: "counter" "request_body_bytes_total" "Bytes of request bodies passed on.",
        response_body_bytes: "counter" "response_body_bytes_total" "Bytes of response bodies passed on.",
        spliced_bytes: "counter" "spliced_bytes_total" "Body bytes that went through a pipe, untouched.",
        copied_bytes: "counter" "copied_bytes_total" "Body bytes that went through a buffer.",
        exchanges_aborted: "counter" "exchanges_aborted_total" "Exchanges cut short after the first byte of the response.",
        clients_gone: "counter" "clients_gone_total" "Exchanges whose client went away.",
        timeouts: "counter" "timeouts_total" "Phases that took too long.",
        backend_connections: "counter" "backend_connections_total" "Connections to backends opened.",
        backend_reuses: "counter" "backend_reuses_total" "Exchanges on a backend connection that had served before.",
        backend_failures: "counter" "backend_failures_total" "Connections and exchanges that failed by a backend's fault.",
        backend_retries: "counter" "backend_retries_total" "Exchanges that were given to another backend connection.",
        backend_idle: "gauge" "backend_idle" "Idle connections to backends.",
        pipes_open: "gauge" "pipes_open" "Pipes open, idle ones included.",
    }
}

/// What is counted of connections, and the names under which it is published.
const CONNECTIONS: [Family; 4] = [
    ("counter", "connections_accepted_total", "Client connections accepted."),
    ("gauge", "connections_open", "Client connections open."),
    ("counter", "connections_refused_total", "Client connections that a limit closed unserved."),
    (
        "counter",
        "connections_evicted_total",
        "Idle client connections closed to make room for others.",
    ),
];

/// What one worker counts. Each has its own, so that no line is written by two.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    pub plain: Plain,
    /// Answers by the first digit of their status, 1 to 5.
    pub responses: [Counter; 5],
    pub durations: Histogram,
}

impl std::ops::Deref for Counters {
    type Target = Plain;

    fn deref(&self) -> &Plain {
        &self.plain
    }
}

fn of(one: &Counts) -> Vec<&Counter> {
    vec![&one.accepted, &one.open, &one.turned_away, &one.evicted]
}

/// The text of all workers' counters, and of the kernel's where it counts.
pub(crate) fn render<'c>(
    connections: &[&Counts],
    workers: impl Iterator<Item = &'c Counters> + Clone,
    mode: &Applied,
) -> String {
    let mut text = Text::new("proxyd");
    text.workers(&CONNECTIONS, &connections.iter().map(|one| of(one)).collect::<Vec<_>>());
    let plain: Vec<_> = workers.clone().map(|worker| worker.all()).collect();
    text.workers(Plain::FAMILIES, &plain);
    text.family(("counter", "responses_total", "Answers by class of status."));
    for class in 0..5 {
        let count: u64 = workers.clone().map(|worker| worker.responses[class].get()).sum();
        text.sample("responses_total", &format!("class=\"{}xx\"", class + 1), count);
    }
    let durations: Vec<_> = workers.map(|worker| &worker.durations).collect();
    let help = "From a request's head to the answer's last byte.";
    text.histogram("request_duration_seconds", help, &durations);
    // What mode was asked for, and whether anybody honours it.
    text.family(("gauge", "mode_info", "How clients are sent to, and who honours it."));
    let (asked, support) = (mode.asked.name(), mode.support.name());
    text.sample("mode_info", &format!("mode=\"{asked}\",honoured_by=\"{support}\""), 1);
    text.end() + &render_kernel()
}

/// What the kernel did.
fn render_kernel() -> String {
    let Ok(Some(counters)) = ntcopy::socket::counters() else { return String::new() };
    let mut text = Text::new("ntcopy");
    let help = "Hinted bytes of this network namespace, by fate.";
    text.family(("counter", "kernel_bytes_total", help));
    for (fate, bytes) in counters.as_map() {
        text.sample("kernel_bytes_total", &format!("fate=\"{fate}\""), bytes);
    }
    text.end()
}
