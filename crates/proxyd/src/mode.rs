//! How clients are sent to.

use ntcopy::socket::{Setting, Support, kernel_support};

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
    /// What a client's socket is set to, if the kernel takes that; the module attaches no TCP.
    pub fn setting(self) -> Option<Setting> {
        let setting = match self {
            Mode::Copy => None,
            Mode::Nt => Some(Setting::Obey),
            Mode::Adaptive => Some(Setting::Every),
        };
        setting.filter(|_| kernel_support() == Support::Kernel)
    }
}
