//! What a worker counts of requests.

use crate::send::Mode;

httpd::counters! {
    pub struct Counters {
        received: "counter" "received_body_bytes_total" "Body bytes of PUTs.",
        copied: "counter" "sent_copy_bytes_total" "Body bytes sent with --mode copy.",
        nontemporal: "counter" "sent_nt_bytes_total" "Body bytes sent with --mode nt.",
        adaptive: "counter" "sent_adaptive_bytes_total" "Body bytes sent with --mode adaptive.",
        by_sendfile: "counter" "sent_sendfile_bytes_total" "Body bytes sent with --mode sendfile.",
        by_vmsplice: "counter" "sent_vmsplice_bytes_total" "Body bytes sent with --mode vmsplice.",
        aborted: "counter" "aborted_responses_total" "Responses cut off: peer gone, time out, bad disk.",
        timeouts: "counter" "timeouts_total" "Connections ended by a time-out while busy.",
        damaged: "counter" "damaged_total" "Requests answered 500 because a file was gone or too short.",
    }
}

impl Counters {
    pub fn sent(&self, mode: Mode, bytes: u64) {
        let counter = match mode {
            Mode::Auto | Mode::Copy => &self.copied,
            Mode::Nt => &self.nontemporal,
            Mode::Adaptive => &self.adaptive,
            Mode::Sendfile => &self.by_sendfile,
            Mode::Vmsplice => &self.by_vmsplice,
        };
        counter.add(bytes);
    }
}
