//! Whether TCP spread its packets over time, which says more than what was compared.

use crate::record::Record;

/// A warning where TCP that paces was between processes that were measured.
///
/// Over a loopback an acknowledgement takes about a microsecond, and what BBR makes of that is up
/// to whether the reader happened to be awake: a timer for each packet, or none.
pub(super) fn sentence(record: &Record) -> Option<String> {
    let names = record.tcp_congestion_controls();
    let name = names.iter().find(|name| name.starts_with("bbr"))?;
    let remedy = match record.header.experiment.as_str() {
        "http" => " With --congestion reno it does not.",
        _ => "",
    };
    Some(format!(
        "TCP's congestion control was {name}, which paces: on one machine its estimate of the \
         bandwidth decides what goes through and what that costs, and differs by chance from one \
         connection to the next.{remedy}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing;

    #[test]
    fn pacing_is_told_and_what_to_do_about_it_where_that_can_be_had() {
        let mut record = testing::record(&["copy", "nt"], &[&[]]);
        record.cells[0].params.insert("family".into(), "tcp".into());
        record.machine.tcp_congestion_control = Some("cubic".into());
        assert_eq!(sentence(&record), None);
        record.machine.tcp_congestion_control = Some("bbr".into());
        let told = sentence(&record).unwrap();
        assert!(told.contains("bbr, which paces") && !told.contains("--congestion"), "{told}");
        record.header.experiment = "http".into();
        assert!(sentence(&record).is_some_and(|told| told.contains("--congestion reno")));
    }
}
