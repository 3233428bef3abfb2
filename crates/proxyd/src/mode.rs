//! How clients are sent to: for them, the copy into the kernel is the last time that this machine
//! looks at the bytes.

use std::os::fd::AsFd;

use ntcopy::socket::{Setting, Support, enable};
use rustix::io::Errno;

/// How sends to clients are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Plainly.
    Copy,
    /// Hinted, and the kernel obeys.
    Nt,
    /// Hinted, and the kernel's rule decides.
    Adaptive,
}

impl Mode {
    /// `copy`, `nt` or `adaptive`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Copy => "copy",
            Mode::Nt => "nt",
            Mode::Adaptive => "adaptive",
        }
    }

    /// The mode as it can be had here, with the kernel asked once.
    pub fn applied(self) -> Applied {
        let setting = match self {
            Mode::Copy => None,
            Mode::Nt => Some(Setting::Obey),
            Mode::Adaptive => Some(Setting::Every),
        };
        // The module attaches no TCP.
        let setting = setting.filter(|_| ntcopy::socket::kernel_support() == Support::Kernel);
        Applied { asked: self, setting }
    }
}

/// A mode, and what the kernel makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// The mode that was asked for.
    pub asked: Mode,
    setting: Option<Setting>,
}

impl Applied {
    pub fn is_hinted(&self) -> bool {
        self.setting.is_some()
    }

    /// Whether a hint was asked for and is not taken.
    pub fn is_plain_instead(&self) -> bool {
        self.asked != Mode::Copy && self.setting.is_none()
    }

    /// Opts a client's socket in, once: each of its sends is hinted from now on. It does nothing
    /// where sends are plain.
    pub fn mark(&self, socket: impl AsFd) -> Result<(), Errno> {
        match self.setting {
            Some(setting) => enable(socket, setting).map(|_| ()),
            None => Ok(()),
        }
    }
}
