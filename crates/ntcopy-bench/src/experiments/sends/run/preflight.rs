//! What can be known before anything is measured.

use std::fs;
use std::os::fd::AsFd;
use std::time::Duration;

use memmap2::Advice;
use ntcopy_record::units::Bytes;

use super::super::{CellPlan, Form, SendsPlan};
use super::sockets;
use crate::experiment::{Family, Mode};
use crate::plan::Sysctl;
use crate::run::send::Sender;
use crate::run::{Failure, Stop, inet, map};

/// Makes sure that there may be as many sockets as the plan wants, and that
/// every cell of rounds can put a whole object into one, so that a limit of the
/// system is reported before the first sample.
pub fn preflight(plan: &SendsPlan) -> Result<(), Failure> {
    let sockets = plan.cells.iter().map(CellPlan::sockets).max().unwrap_or(0);
    sockets::allow(sockets)?;
    plan.sysctls().iter().try_for_each(enough)?;
    let mut tried: Vec<(Family, u64, Option<u64>)> = Vec::new();
    for cell in &plan.cells {
        let what = (cell.family, cell.object_bytes, cell.sndbuf_bytes);
        if cell.form.holds_objects() && !tried.contains(&what) {
            tried.push(what);
            if inet::unavailable(cell.family)?.is_none() {
                whole_object_fits(cell, &plan.modes)?;
            }
        }
    }
    Ok(())
}

/// Whether a limit of the kernel leaves the room that the plan needs.
fn enough(needed: &Sysctl) -> Result<(), Failure> {
    let path = format!("/proc/sys/{}", needed.name.replace('.', "/"));
    // A kernel without the protocol has no limit either, and says so in its own place.
    let Ok(text) = fs::read_to_string(path) else { return Ok(()) };
    let pressure = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    if pressure.is_none_or(|pages| pages >= needed.pages) {
        return Ok(());
    }
    Err(Failure::Limit(format!(
        "{} lets the sockets hold too little for what is to be in flight: it is {}, and {} pages \
         are needed; use fewer --sockets, a smaller --object or --kernel um, or set `sysctl -w \
         {0}=\"{}\"`",
        needed.name,
        text.trim(),
        needed.pages,
        needed.value()
    )))
}

fn whole_object_fits(cell: &CellPlan, modes: &[Mode]) -> Result<(), Failure> {
    let one = CellPlan { form: Form::Rounds { sockets: 1 }, ..cell.clone() };
    let object = map(cell.object_bytes, Advice::Normal)?;
    let sender = Sender::new(cell.family, cell.object_bytes, Duration::ZERO, Stop::default())?;
    // How the kernel books a hinted send is how it books a plain one.
    for mode in modes.iter().filter(|mode| !mode.is_hinted()) {
        for (ours, _theirs) in sockets::make(&one, Duration::from_secs(1))? {
            let sent = sender.send(ours.as_fd(), *mode, &object);
            sent.map_err(|failure| {
                Failure::Limit(format!(
                    "a send buffer of {} does not take a whole object of {} ({failure}); a round \
                     needs that: use a larger --sndbuf or a smaller --object",
                    Bytes(sockets::sndbuf_bytes(cell)),
                    Bytes(cell.object_bytes)
                ))
            })?;
        }
    }
    Ok(())
}
