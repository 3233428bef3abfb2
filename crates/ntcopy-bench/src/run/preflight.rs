//! What can be known before anything is measured.

use std::os::fd::AsFd;
use std::time::Duration;

use ntcopy::socket::Support;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::memory::Buffer;
use super::send::{NO_MSG_NTCOPY, Sender};
use super::{Failure, Stop, sockets};
use crate::experiment::Mode;
use crate::plan::{CellPlan, Form, Plan};
use crate::units::Bytes;

/// Why a mode is not to be had on this kernel; none if it is.
///
/// # Errors
///
/// When the question could not be put.
pub fn unavailable(mode: Mode) -> Result<Option<String>, Failure> {
    match mode {
        Mode::Copy => Ok(None),
        Mode::Nt => match ntcopy::socket::probe() {
            Ok(Support::None) => Ok(Some(NO_MSG_NTCOPY.to_owned())),
            Ok(Support::Kernel | Support::Module) => Ok(None),
            Err(errno) => Err(Failure::os("cannot ask for SO_NTCOPY")(errno)),
        },
        Mode::Vmsplice => {
            let buffer = Buffer::new(4096)?;
            let (ours, _theirs) =
                socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                    .map_err(Failure::os("cannot make a socket pair"))?;
            let sender = Sender::new(4096, Duration::ZERO, Stop::default())?;
            let sent = sender.send(ours.as_fd(), mode, buffer.bytes(0..4096));
            Ok(sent.err().map(|failure| format!("this kernel does not do it: {failure}")))
        }
    }
}

/// Makes sure that there may be as many sockets as the plan wants, and that
/// every cell of rounds can put a whole object into one, so that a limit of the
/// system is reported before the first sample.
///
/// # Errors
///
/// [`Failure::Limit`], which names the limit and what to do.
pub fn preflight(plan: &Plan) -> Result<(), Failure> {
    let sockets = plan.cells.iter().map(CellPlan::sockets).max().unwrap_or(0);
    sockets::allow_files(sockets)?;
    let mut tried: Vec<(u64, Option<u64>)> = Vec::new();
    for cell in &plan.cells {
        let what = (cell.object_bytes, cell.sndbuf_bytes);
        if matches!(cell.form, Form::Rounds { .. }) && !tried.contains(&what) {
            tried.push(what);
            whole_object_fits(cell, &plan.modes)?;
        }
    }
    Ok(())
}

fn whole_object_fits(cell: &CellPlan, modes: &[Mode]) -> Result<(), Failure> {
    let one = CellPlan { form: Form::Rounds { sockets: 1 }, ..cell.clone() };
    let buffer = Buffer::new(cell.object_bytes)?;
    let sender = Sender::new(cell.object_bytes, Duration::ZERO, Stop::default())?;
    // How the kernel books a hinted send is how it books a plain one.
    for mode in modes.iter().filter(|mode| **mode != Mode::Nt) {
        for (ours, _theirs) in sockets::make(&one, Duration::from_secs(1))? {
            let sent = sender.send(ours.as_fd(), *mode, buffer.bytes(0..buffer.len()));
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
