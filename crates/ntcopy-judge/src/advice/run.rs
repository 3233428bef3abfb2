//! What an unmodified program sends.

use super::{Advice, Decision, Topic, Value};
use ntcopy_record::units::Bytes;

/// `ntcopy run` and `ntcopy set`: the number that the sends' advice has, for a program that cannot be
/// changed.
pub fn advice(sends: &Advice) -> Advice {
    let setting = match sends.value {
        Some(Value::Option { value, .. }) => {
            let bytes = Bytes(value).argument();
            format!("ntcopy run --min-bytes {bytes} -- PROGRAM")
        }
        _ => "ntcopy run".to_owned(),
    };
    let setting = (sends.decision != Decision::NoEvidence).then_some(setting);
    Advice { topic: Topic::RUN, about: None, value: None, costs: None, setting, ..sends.clone() }
}
