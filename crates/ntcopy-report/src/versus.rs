//! What tables share: their form, a mode beside the baseline in words and for programs, and what a
//! cell's parameters say.

use ntcopy_record::Params;
use ntcopy_record::stats::Versus;
pub(crate) use ntcopy_record::{number, word};
use serde_json::{Value, json};

use crate::text;

/// One table: what its rows have in common, its columns, its rows.
pub(crate) struct Grid {
    pub heading: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// `1.31x`.
pub(crate) fn short(versus: Option<&Versus>) -> String {
    versus.map_or_else(String::new, |versus| text::ratio(versus.ratio))
}

/// `1.31x (1.28-1.35)`.
pub(crate) fn ratio(versus: Option<&Versus>) -> String {
    versus.map_or_else(String::new, |versus| {
        format!("{} ({})", text::ratio(versus.ratio), text::interval(versus.ci))
    })
}

pub(crate) fn verdict(versus: Option<&Versus>, is_baseline: bool) -> String {
    match versus {
        Some(versus) => versus.verdict().as_str(),
        None if is_baseline => "baseline",
        None => "too few pairs",
    }
    .to_owned()
}

/// A comparison, for programs.
pub(crate) fn compared(versus: &Option<Versus>) -> Value {
    match versus {
        Some(versus) => json!({
            "ratio": versus.ratio,
            "ci": [versus.ci.0, versus.ci.1],
            "verdict": versus.verdict(),
        }),
        None => Value::Null,
    }
}

/// What two kernels were booted for, if cells are of two.
pub(crate) fn boots(params: &Params) -> Option<String> {
    let form = word(params, "form").filter(|form| form.starts_with("boots"));
    word(params, "boots").or(form)?;
    let of = word(params, "sends").map_or_else(String::new, |sends| format!(" for {sends} sends"));
    Some(format!("two kernels booted in turns{of}"))
}
