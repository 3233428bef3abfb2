//! The host's terminal, lent to a shell in the guest.

use std::io::IsTerminal;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::spec::Size;
use crate::error::{Context, Result};

/// What a guest sees where the host has no terminal, for a script fed to `shell`.
const DEFAULT_SIZE: Size = Size { rows: 24, columns: 80 };

/// Standard input, raw while this lives when it is a terminal: the guest's terminal does the
/// editing, the echo and the signals.
pub(super) struct Terminal {
    saved: Option<Termios>,
}

impl Terminal {
    /// Makes the terminal raw.
    pub(super) fn take() -> Result<Self> {
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Ok(Self { saved: None });
        }
        let saved = tcgetattr(&stdin).doing("reading the settings of", "the terminal")?;
        let mut raw = saved.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Flush, &raw).doing("setting up", "the terminal")?;
        Ok(Self { saved: Some(saved) })
    }

    /// Its size now.
    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(std::io::stdin()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Size { rows: size.ws_row, columns: size.ws_col }
            }
            _ => DEFAULT_SIZE,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            // A terminal that is gone needs no settings.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, saved);
        }
    }
}
