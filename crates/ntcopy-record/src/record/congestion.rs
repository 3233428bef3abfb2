//! TCP's congestion control where TCP was measured.

use super::{Params, Record, word};

impl Record {
    /// The congestion controls of the cells whose bytes went over TCP, each once. A cell's own goes
    /// before the machine's; none of records from before either was noted.
    #[must_use]
    pub fn tcp_congestion_controls(&self) -> Vec<&str> {
        let of_machine = self.machine.tcp_congestion_control.as_deref();
        let mut names: Vec<&str> = self
            .cells
            .iter()
            .filter(|cell| has_tcp(&cell.params))
            .filter_map(|cell| word(&cell.params, "congestion").or(of_machine))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn has_tcp(params: &Params) -> bool {
    let is = |name: &str, of_tcp: fn(&str) -> bool| word(params, name).is_some_and(of_tcp);
    is("family", |family| family.starts_with("tcp"))
        // Between client and proxy, or between proxy and backend.
        || is("scheme", |scheme| scheme != "h3")
        || is("transport", |transport| transport != "unix")
}

#[cfg(test)]
mod tests {
    use crate::record::testing;

    #[test]
    fn it_is_told_of_cells_with_tcp_and_their_own_goes_first() {
        let of = |machine: Option<&str>, cells: [&[(&str, &str)]; 2]| {
            let mut record = testing::record(&["copy", "nt"], &[&[], &[]]);
            record.machine.tcp_congestion_control = machine.map(str::to_owned);
            for (cell, params) in record.cells.iter_mut().zip(cells) {
                for (name, value) in params {
                    cell.params.insert((*name).into(), (*value).into());
                }
            }
            record.tcp_congestion_controls().join(" ")
        };
        let http = [("scheme", "plain"), ("transport", "unix")];
        let h3 = [("scheme", "h3"), ("transport", "unix")];
        let h3_tcp = [("scheme", "h3"), ("transport", "tcp")];
        let chosen = [("scheme", "tls"), ("transport", "unix"), ("congestion", "reno")];
        assert_eq!(of(Some("bbr"), [&http, &http]), "bbr");
        assert_eq!(of(None, [&http, &http]), "", "an old record does not say");
        assert_eq!(of(Some("bbr"), [&h3, &h3]), "", "QUIC has its own");
        assert_eq!(of(Some("bbr"), [&h3_tcp, &chosen]), "bbr reno");
        assert_eq!(of(Some("bbr"), [&chosen, &h3]), "reno");
        assert_eq!(of(Some("bbr"), [&[("family", "unix")], &[("family", "udp6")]]), "");
        assert_eq!(of(Some("bbr"), [&[("family", "unix")], &[("family", "tcp6")]]), "bbr");
    }
}
