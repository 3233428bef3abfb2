//! Plots as SVG whose colours are the page's.
//!
//! The plotting crate writes fixed colours into the SVG. A page with a light and a dark side
//! needs names instead, so each role is drawn in a colour of its own that no plot would use, and
//! that colour is then replaced by a class; the page's style sheet gives the class its look.

mod axis;
mod chart;
mod compact;
pub(crate) mod curves;
mod draw;

pub(crate) use chart::{Chart, Line, crossover, headline, ratios};
pub(crate) use draw::{NARROW, Size, WIDE, draw};

use crate::model::KNOWN_MODES;

/// A plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw a plot: {0}")]
pub struct PlotError(String);

/// How many looks of lines there are; further modes begin anew.
pub(crate) const SLOTS: usize = 9;

/// The look of a mode: the same on every page, whichever modes a record has.
pub(crate) fn slot(mode: &str, index: usize) -> usize {
    // The remaining looks are for modes that this version does not know.
    let others = KNOWN_MODES.len() + index % (SLOTS - KNOWN_MODES.len());
    KNOWN_MODES.iter().position(|name| *name == mode).unwrap_or(others)
}
