httpd::counters! {
    /// What one worker counts of exchanges. Each has its own, so that no line is written by two.
    #[repr(align(128))]
    pub struct Counters {
        handshakes_failed: "counter" "handshakes_failed_total" "TLS handshakes that failed.",
        requests: "counter" "requests_total" "Requests whose head was read.",
        requests_refused: "counter" "requests_refused_total" "Requests that the proxy answered with a 4xx or 501 itself.",
        request_body_bytes: "counter" "request_body_bytes_total" "Bytes of request bodies passed on.",
        response_body_bytes: "counter" "response_body_bytes_total" "Bytes of response bodies passed on.",
        spliced_bytes: "counter" "spliced_bytes_total" "Body bytes that went through a pipe, untouched.",
        copied_bytes: "counter" "copied_bytes_total" "Body bytes that went through a buffer.",
        exchanges_aborted: "counter" "exchanges_aborted_total" "Exchanges cut short after the first byte of the response.",
        clients_gone: "counter" "clients_gone_total" "Exchanges whose client went away.",
        backend_connections: "counter" "backend_connections_total" "Connections to the backend opened.",
        backend_reuses: "counter" "backend_reuses_total" "Exchanges on a backend connection that had served before.",
        backend_failures: "counter" "backend_failures_total" "Connections and exchanges that failed by the backend's fault.",
        backend_retries: "counter" "backend_retries_total" "Exchanges that were given to another backend connection.",
        backend_idle: "gauge" "backend_idle" "Idle connections to the backend.",
        pipes_open: "gauge" "pipes_open" "Pipes open, idle ones included.",
    }
}
