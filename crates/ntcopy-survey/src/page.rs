//! The report over a fleet: as text, as JSON, and as one self-contained page.
//!
//! Pure functions of an [`crate::analysis::Analysis`]: the same fleet gives the same bytes.

pub mod html;
pub mod json;
mod models;
pub mod text;
mod words;

use crate::analysis::Analysis;
use crate::analysis::advice::ModelAdvice;

/// What a report shows.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The fleet, judged.
    pub analysis: &'a Analysis,
    /// What models want, where that was asked for.
    pub advice: &'a [ModelAdvice],
}

impl Report<'_> {
    /// The advice for a model, if there is any.
    fn advice_of(&self, signature: &str) -> Option<&ModelAdvice> {
        self.advice.iter().find(|advice| advice.signature == signature)
    }
}
